"""Opening a ledger: addresses, keys, formats, many processes at once."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from idios.errors import (
    IdiosError,
    InvalidInput,
    LedgerError,
    LedgerTampered,
    LedgerUnavailable,
    WrongLedgerKey,
)
from idios.ledger import Ledger, Reservation
from idios.ledger.facts import Begun
from idios.ledger.key import create_key
from idios.ledger.tables import FORMAT, metadata
from tests.ledger.ledger_place import Place, ask, finished, people


def test_a_new_ledger_gets_a_key_that_only_its_owner_reads(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(people())
    assert len(place.key_file.read_bytes()) == 32
    assert stat.S_IMODE(place.key_file.stat().st_mode) == 0o600
    assert {path.name for path in place.key_file.parent.iterdir()} <= {"ledger.key", "ledger.db"}


def test_a_schema_before_that_of_postgresql_shadows_nothing(postgresql_place: Place) -> None:
    """Whoever may create operators in the ledger's schema would else decide which rows a statement finds."""
    postgresql_place.execute("CREATE FUNCTION never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'")
    postgresql_place.execute("CREATE FUNCTION never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false'")
    postgresql_place.execute("CREATE FUNCTION never(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT false'")
    for held in ("text", "bigint", "int"):
        for operator in ("=", "<", ">"):
            postgresql_place.execute(
                f"CREATE OPERATOR {operator} (LEFTARG = {held}, RIGHTARG = {held}, FUNCTION = never)"
            )
    options = "%20-cstandard_conforming_strings%3Doff%20-cclient_encoding%3DLATIN1"
    hostile = Place("postgresql", f"{postgresql_place.url},pg_catalog{options}", postgresql_place.key_file)
    with hostile.open() as ledger:
        ledger.declare(people())
        ledger.add_analyst("日本")
        charge = ledger.reserve(ask())
        assert isinstance(charge, Reservation)
        assert ledger.balance("people").epsilon.spent > 0
        assert ledger.verify().ok
    with postgresql_place.open() as ledger:
        assert ledger.verify().ok
        assert ledger.balance("people").epsilon.spent > 0


def test_the_key_of_an_sqlite_ledger_lies_beside_it(tmp_path: Path) -> None:
    Ledger.open(f"sqlite:///{tmp_path}/budget.db").close()
    assert (tmp_path / "budget.key").exists()


def test_a_relative_path_is_fixed_when_the_ledger_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger.open("sqlite:///ledger.db") as ledger:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        ledger.declare(people())
        assert ledger.verify().ok
    assert list((tmp_path / "elsewhere").iterdir()) == []


def lose_tables(place: Place) -> None:
    for table in metadata.tables:
        place.execute(f"DROP TABLE {table}")


def lose_file(place: Place) -> None:
    for path in place.key_file.parent.glob("ledger.db*"):
        path.unlink()


def empty_file(place: Place) -> None:
    lose_file(place)
    (place.key_file.parent / "ledger.db").write_bytes(b"")


def test_lost_tables_are_not_begun_anew_by_accident(place: Place) -> None:
    check_that_a_loss_is_noticed(place, lose_tables)


@pytest.mark.parametrize("lose", [lose_file, empty_file])
def test_a_lost_file_is_not_begun_anew_by_accident(sqlite_place: Place, lose: Callable[[Place], None]) -> None:
    check_that_a_loss_is_noticed(sqlite_place, lose)


def check_that_a_loss_is_noticed(place: Place, lose: Callable[[Place], None]) -> None:
    with place.open() as ledger:
        ledger.declare(people())
        ledger.reserve(ask())
    key = place.key_file.read_bytes()
    lose(place)
    before = sorted(place.key_file.parent.iterdir())
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match=r"a ledger was lost.*`idios ledger restore`.*`idios ledger create"):
            place.open()
    assert sorted(place.key_file.parent.iterdir()) == before
    with Ledger.create(place.url, place.key_file, reason="the disk was lost") as ledger:
        (first,) = ledger.entries()
        assert first.fact == Begun("the disk was lost")
        assert ledger.verify().ok
        ledger.declare(people())
        assert ledger.balance("people").epsilon.spent == 0
    assert place.key_file.read_bytes() == key
    with place.open() as ledger:
        assert ledger.verify().entries == 2


def test_a_ledger_is_created_where_there_is_none(place: Place) -> None:
    with Ledger.create(place.url, place.key_file, reason="the first one") as ledger:
        assert ledger.head().sequence == 1
    with pytest.raises(InvalidInput, match=r"there is a ledger in .* already"):
        Ledger.create(place.url, place.key_file, reason="another")
    with pytest.raises(InvalidInput, match="reason"):
        Ledger.create(place.url, place.key_file, reason=" ")


def test_a_first_use_that_fails_leaves_no_key(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    # A key without a ledger would look like a loss.
    def full(*_: object) -> None:
        raise LedgerUnavailable("no room")

    with monkeypatch.context() as patch:
        patch.setattr("idios.ledger.opening.write_proof", full)
        with pytest.raises(LedgerUnavailable, match="no room"):
            place.open()
    assert not place.key_file.exists()
    place.open().close()


def test_in_memory_a_key_may_be_there(tmp_path: Path) -> None:
    for _ in range(2):
        with Ledger.open("sqlite://", tmp_path / "ledger.key") as ledger:
            ledger.declare(people())
            assert ledger.verify().ok
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.key"]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o277, 0o777])
def test_files_are_their_owners_alone(sqlite_place: Place, tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        with sqlite_place.open() as ledger:
            ledger.declare(people())
            ledger.backup(tmp_path / "copy.db")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.key", "copy.db"], 0o600)


def test_a_file_that_is_moved_or_replaced_is_noticed(sqlite_place: Place, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with sqlite_place.open() as ledger:
        ledger.declare(people())
        ledger.backup(tmp_path / "copy.db")
        ledger.reserve(ask())
        path.rename(tmp_path / "elsewhere.db")
        for _ in ("gone", "replaced"):
            for refused in (lambda: ledger.reserve(ask("fresh")), lambda: ledger.balance("people"), ledger.check):
                with pytest.raises(LedgerUnavailable, match="was moved or replaced while this process had it open"):
                    refused()
            shutil.copy(tmp_path / "copy.db", path)
        path.unlink()
        (tmp_path / "elsewhere.db").rename(path)
        assert isinstance(ledger.reserve(ask("fresh")), Reservation)
        assert ledger.verify().ok


def test_the_first_of_two_new_keys_wins(tmp_path: Path) -> None:
    first, made = create_key(tmp_path / "ledger.key")
    assert made
    assert create_key(tmp_path / "ledger.key") == (first, False)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.key"]


def test_a_missing_key_is_not_replaced(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(people())
    place.key_file.unlink()
    with pytest.raises(WrongLedgerKey, match=r"has 1 entry, but its key file .* is missing; restore"):
        place.open()
    assert not place.key_file.exists()


def test_a_wrong_or_damaged_key_is_refused(place: Place) -> None:
    with place.open() as ledger:
        ledger.declare(people())
        ledger.reserve(ask())
    place.key_file.write_bytes(b"k" * 32)
    with pytest.raises(WrongLedgerKey, match="is not the one that signed"):
        place.open()
    place.key_file.write_bytes(b"k" * 31)
    with pytest.raises(WrongLedgerKey, match="holds 31 bytes, a key has 32"):
        place.open()
    place.key_file.unlink()
    place.key_file.mkdir()
    with pytest.raises(WrongLedgerKey, match="cannot be read"):
        place.open()


def test_a_key_that_cannot_be_written_is_an_error(place: Place, tmp_path: Path) -> None:
    with pytest.raises(WrongLedgerKey, match="cannot be created"):
        Ledger.open(place.url, tmp_path / "nowhere" / "ledger.key")


def test_two_keys_cannot_sign_one_chain(place: Place, tmp_path: Path) -> None:
    # A second machine that opens the same ledger, even an empty one, needs the key of the first.
    with place.open() as first:
        with pytest.raises(WrongLedgerKey, match="is missing; restore the key file"):
            Ledger.open(place.url, tmp_path / "other.key")
        assert not (tmp_path / "other.key").exists()
        (tmp_path / "other.key").write_bytes(b"k" * 32)
        with (
            Ledger.open(place.url, tmp_path / "other.key") as second,
            pytest.raises(LedgerTampered, match="the proof of the ledger's tables is not the one of entry 0"),
        ):
            second.declare(people())
        first.declare(people())
        with pytest.raises(WrongLedgerKey, match="is not the one that signed"):
            Ledger.open(place.url, tmp_path / "other.key")
        assert first.verify().ok


@pytest.mark.slow
def test_many_processes_create_one_ledger(place: Place) -> None:
    workers = [place.worker("open") for _ in range(4)]
    assert [finished(worker) for worker in workers] == ["0:" + "0" * 64] * 4
    with place.open() as ledger:
        ledger.declare(people())
        assert ledger.verify().ok


def test_in_memory_needs_nothing_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger.open("sqlite://") as one, Ledger.open("sqlite:///:memory:") as other:
        one.declare(people())
        assert other.datasets() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ledger.db",
        "mysql://u:secret@h/d",
        "postgresql+psycopg2://u:secret@h/d",
        "sqlite:///file:x?mode=ro&uri=true",
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Ledger.open(url)
    assert "secret" not in str(caught.value)


def test_a_postgresql_ledger_names_its_key_file(postgresql_place: Place) -> None:
    with pytest.raises(InvalidInput, match="needs key_file"):
        Ledger.open(postgresql_place.url)


def test_a_timeout_is_positive() -> None:
    with pytest.raises(InvalidInput, match="timeout"):
        Ledger.open("sqlite://", timeout=0)


def test_nothing_is_created_when_only_an_existing_ledger_will_do(place: Place, tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="there is no ledger in"):
        place.open(create=False)
    assert list(tmp_path.iterdir()) == []
    place.open().close()
    place.open(create=False).close()


@pytest.mark.parametrize("written", [FORMAT - 1, FORMAT + 1])
def test_another_format_is_refused(place: Place, written: int) -> None:
    with place.open() as ledger:
        ledger.declare(people())
    place.execute(f"UPDATE idios_chain SET format = {written}")
    before = place.copied()
    told = (
        f"has format {written}, this version of Idios reads format {FORMAT}: use the version that wrote it, or move it "
        "and its key away, begin a new ledger with `idios ledger create"
    )
    for create in (True, False):
        with pytest.raises(LedgerError, match=told):
            place.open(create=create)
    assert place.copied() == before


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM idios_chain", "has format none, this version"),
        (f"INSERT INTO idios_chain VALUES ({FORMAT + 1})", f"has format {FORMAT}, {FORMAT + 1}, this version"),
    ],
)
def test_a_ledger_has_one_format(place: Place, statement: str, told: str) -> None:
    place.open().close()
    place.execute(statement)
    with pytest.raises(LedgerError, match=told):
        place.open()


def test_something_else_than_a_database(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("name,income\n" * 1000)
    with pytest.raises(LedgerUnavailable, match="is not an SQLite database"):
        Ledger.open(f"sqlite:///{tmp_path}/ledger.db")
    with pytest.raises(LedgerUnavailable, match="cannot be opened; check that its directory exists"):
        Ledger.open(f"sqlite:///{tmp_path}/nowhere/ledger.db")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_opens_its_own(ledger: Ledger) -> None:
    child = os.fork()
    if child == 0:
        try:
            ledger.balance("people")
        except IdiosError as error:
            os._exit(0 if "open it again in each process" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_commits_are_on_disk_whatever_the_defaults(place: Place) -> None:
    url = place.url + ("%20-csynchronous_commit%3Doff" if place.engine == "postgresql" else "")
    with Ledger.open(url, place.key_file) as ledger, ledger._database.writing() as connection:
        if place.engine == "sqlite":
            settings = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
            ]
            assert settings == ["wal", 2]
        else:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
