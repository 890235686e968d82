"""The database fails: a clear error, and a ledger that is right afterwards."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text

from idios.errors import LedgerError, LedgerUnavailable
from idios.ledger import Ledger, Reservation
from tests.ledger.ledger_place import Place, ask, people
from tests.ledger.ledger_worker import table
from tests.services import require_package
from tests.services.postgresql import PostgresqlServer

NOBODY = 65534


def spend_until_it_fails(ledger: Ledger) -> tuple[int, LedgerError]:
    """Ask until the database fails; how many questions were charged before, and how it failed."""
    for number in range(10_000):
        try:
            ledger.reserve(ask(f"question {number} " + "x" * 500, "1/1000"))
        except LedgerError as error:
            return number, error
    raise AssertionError("the database never failed")


def assert_right(ledger: Ledger, charged: int) -> None:
    """Everything that was acknowledged is there, nothing else is, and the ledger goes on."""
    assert ledger.verify().ok
    assert ledger.balance("people").epsilon.spent == Fraction(charged, 1000)
    assert isinstance(ledger.reserve(ask("afterwards")), Reservation)
    assert ledger.verify().ok


def test_a_database_that_may_not_grow(sqlite_place: Place) -> None:
    with sqlite_place.open() as ledger:
        ledger.declare(people(100))
        limit_pages(ledger, 60)
        charged, error = spend_until_it_fails(ledger)
        assert isinstance(error, LedgerUnavailable)
        assert "has no room left; free some space on its disk; nothing was recorded" in str(error)
        limit_pages(ledger, 1_000_000)
        assert charged > 5
        assert_right(ledger, charged)


def limit_pages(ledger: Ledger, pages: int) -> None:
    with ledger._database.reading() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def test_a_file_that_cannot_be_written_further(sqlite_place: Place) -> None:
    with sqlite_place.open() as ledger:
        ledger.declare(people(100))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
        try:
            charged, error = spend_until_it_fails(ledger)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert isinstance(error, LedgerUnavailable)
        assert "look at the disk and its free space" in str(error)
        assert charged > 5
        assert_right(ledger, charged)


def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    try:
        with Ledger.open(f"sqlite:///{disk}/ledger.db", tmp_path / "ledger.key") as ledger:
            ledger.declare(people(100))
            charged, error = spend_until_it_fails(ledger)
            assert isinstance(error, LedgerUnavailable)
            assert "space" in str(error)
            subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
            assert charged > 5
            assert_right(ledger, charged)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Another process in the middle of writing."""
    url = make_url(place.url)
    if place.engine == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("BEGIN IMMEDIATE" if place.engine == "sqlite" else "BEGIN"))
        if place.engine == "postgresql":
            connection.execute(text("SELECT * FROM idios_chain FOR UPDATE"))
        yield
        connection.execute(text("ROLLBACK"))


def test_a_database_locked_by_another_process(place: Place) -> None:
    with place.open(timeout=0.2) as ledger:
        ledger.declare(people())
        with locked(place):
            with pytest.raises(LedgerUnavailable, match=r"is locked by another process; try again.*nothing was"):
                ledger.reserve(ask())
            assert ledger.balance("people").epsilon.spent == 0  # readers do not wait for writers
            assert ledger.verify().ok
            with place.open(timeout=0.2) as another:
                assert another.verify().ok
        assert_right(ledger, 0)


def test_a_server_that_ends_the_session_in_a_transaction(postgresql_place: Place) -> None:
    class Deadly:
        armed = False

        def __call__(self) -> datetime:
            if self.armed:
                self.armed = False
                # Only the ledger's: other tests may have sessions on this server.
                sessions = "FROM pg_stat_activity WHERE state LIKE 'idle in%' AND query LIKE '%idios\\_%'"
                postgresql_place.execute(f"SELECT pg_terminate_backend(pid) {sessions}")
            return datetime.now(UTC)

    clock = Deadly()
    with postgresql_place.open(clock=clock) as ledger:
        ledger.declare(people())
        clock.armed = True
        with pytest.raises(
            LedgerUnavailable, match=r"lost the connection to its server; .* no question is charged twice"
        ):
            ledger.reserve(ask("median(age)"))
        assert_right(ledger, 0)


def test_a_server_that_crashes_and_comes_back(postgresql_url: str, tmp_path: Path) -> None:
    server = PostgresqlServer(fsync=True)
    try:
        with Ledger.open(server.url, tmp_path / "ledger.key", timeout=5) as ledger:
            ledger.declare(people())
            charge = ledger.reserve(ask())
            assert isinstance(charge, Reservation)
            answer = ledger.release(charge, table('{"value": 1}'))
            lost = ledger.reserve(ask("max(age)"))
            assert isinstance(lost, Reservation)
            anchor = ledger.head()
            server.stop(crash=True)
            for refused in (
                lambda: ledger.release(lost, table("{}")),
                lambda: ledger.reserve(ask("min(age)")),
                lambda: ledger.balance("people"),
                lambda: ledger.verify(),
            ):
                with pytest.raises(LedgerUnavailable, match=r"cannot be reached .*nothing was recorded"):
                    refused()
            server.start()
            assert ledger.verify(anchor).ok
            assert ledger.head() == anchor
            assert ledger.reserve(ask()) == answer
            assert ledger.release(lost, table("{}")).text == "{}"
    finally:
        server.close()


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    require_package("psycopg", "postgres")
    with pytest.raises(LedgerUnavailable, match=r"postgresql://127\.0\.0\.1:1/nowhere cannot be reached") as caught:
        Ledger.open("postgresql://somebody:secret@127.0.0.1:1/nowhere", tmp_path / "ledger.key")
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "ledger.key").exists()


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"password": "guess"}, "password authentication failed"),
        ({"database": "nowhere"}, 'database "nowhere" does not exist'),
    ],
)
def test_a_server_that_refuses(postgresql_url: str, tmp_path: Path, part: dict[str, str], said: str) -> None:
    url = make_url(postgresql_url).set(**part).render_as_string(hide_password=False)  # type: ignore[arg-type]
    with pytest.raises(LedgerUnavailable, match=f"cannot be reached .*{said}") as caught:
        Ledger.open(url, tmp_path / "ledger.key")
    assert "guess" not in str(caught.value)
    assert not (tmp_path / "ledger.key").exists()


def test_a_user_who_may_only_read(postgresql_place: Place) -> None:
    with postgresql_place.open() as ledger:
        ledger.declare(people())
    schema = postgresql_place.url.rpartition("%3D")[2]
    for statement in (
        "CREATE ROLE reader LOGIN PASSWORD 'reader'",
        f"GRANT USAGE ON SCHEMA {schema} TO reader",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader",
    ):
        postgresql_place.execute(statement)
    url = make_url(postgresql_place.url).set(username="reader", password="reader")
    try:
        with Ledger.open(url.render_as_string(hide_password=False), postgresql_place.key_file) as ledger:
            assert ledger.verify().ok
            with pytest.raises(LedgerUnavailable, match="may not be written by this user"):
                ledger.reserve(ask())
    finally:
        postgresql_place.execute("DROP OWNED BY reader")
        postgresql_place.execute("DROP ROLE reader")


def test_a_read_only_server(postgresql_place: Place) -> None:
    with postgresql_place.open() as ledger:
        ledger.declare(people())
    url = postgresql_place.url + "%20-cdefault_transaction_read_only%3Don"
    with Ledger.open(url, postgresql_place.key_file) as ledger:
        assert ledger.verify().ok
        for refused in (lambda: ledger.reserve(ask()), ledger.check):
            with pytest.raises(LedgerUnavailable, match="is read-only; connect to a server that can be written"):
                refused()
    with postgresql_place.open() as ledger:
        assert_right(ledger, 0)


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """A directory another account can reach; pytest's own are closed to others."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may write read-only files; do as others would see it."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_file(public_directory: Path) -> None:
    url, key = f"sqlite:///{public_directory}/ledger.db", public_directory / "ledger.key"
    with Ledger.open(url, key) as ledger:
        ledger.declare(people())
    key.chmod(0o444)
    (public_directory / "ledger.db").chmod(0o444)
    public_directory.chmod(0o777)
    with without_privileges(), Ledger.open(url, key) as ledger:
        assert ledger.balance("people").epsilon.spent == 0
        for refused in (lambda: ledger.reserve(ask()), ledger.check):
            with pytest.raises(LedgerUnavailable, match="is read-only; give this process the right to write"):
                refused()
        assert ledger.verify().ok
    (public_directory / "ledger.db").chmod(0o644)
    with Ledger.open(url, key) as ledger:
        assert_right(ledger, 0)


def test_a_read_only_directory(public_directory: Path) -> None:
    url, key = f"sqlite:///{public_directory}/ledger.db", public_directory / "ledger.key"
    with Ledger.open(url, key) as ledger:
        ledger.declare(people())
    key.chmod(0o444)
    public_directory.chmod(0o555)
    with without_privileges(), pytest.raises(LedgerUnavailable, match=r"right to|may be written"):
        Ledger.open(url, key)
    with without_privileges(), pytest.raises(LedgerUnavailable, match="cannot be opened"):
        Ledger.open(f"sqlite:///{public_directory}/new.db")
    public_directory.chmod(0o755)
    with Ledger.open(url, key) as ledger:
        assert_right(ledger, 0)


def test_a_damaged_file(sqlite_place: Place, tmp_path: Path) -> None:
    with sqlite_place.open() as ledger:
        ledger.declare(people(100))
        for number in range(50):
            ledger.reserve(ask(f"question {number} " + "x" * 500, "1/1000"))
    path = tmp_path / "ledger.db"
    content = bytearray(path.read_bytes())
    content[4096 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4096)
    path.write_bytes(content)
    with pytest.raises(LedgerUnavailable, match="is damaged; restore it from a backup"):
        sqlite_place.open().verify()


def test_an_interrupted_writer_leaves_the_ledger_free(place: Place) -> None:
    class Interrupted:
        armed = False

        def __call__(self) -> datetime:
            if self.armed:
                self.armed = False
                raise KeyboardInterrupt
            return datetime.now(UTC)

    clock = Interrupted()
    with place.open(clock=clock, timeout=1) as ledger:
        ledger.declare(people())
        clock.armed = True
        with pytest.raises(KeyboardInterrupt):
            ledger.reserve(ask("median(age)"))
        assert_right(ledger, 0)
