"""Backups: made while the ledger is written, verified, put back, and old ones recognised as old."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text

from idios.errors import (
    InvalidInput,
    LedgerError,
    LedgerTampered,
    LedgerUnavailable,
    NotPermitted,
    WrongLedgerKey,
)
from idios.ledger import Anchor, Ledger, Reservation, restore
from idios.ledger.key import hold_exclusively
from idios.ledger.tables import FORMAT
from tests.ledger.ledger_place import Place, ask, people
from tests.ledger.ledger_worker import table
from tests.services import require_program
from tests.services.postgresql import programs


def fill(ledger: Ledger, questions: int = 3) -> None:
    ledger.declare(people(10**6))
    ledger.add_analyst("ada")
    ledger.grant("ada", "people")
    for number in range(questions):
        answered(ledger, f"question {number}")


def answered(ledger: Ledger, question: str) -> None:
    charge = ledger.reserve(ask(question, "1/10", analyst="ada"))
    assert isinstance(charge, Reservation)
    ledger.release(charge, table(json.dumps({"question": question})))


def moved_away(place: Place) -> None:
    ledger = Path(make_url(place.url).database or "")
    for path in ledger.parent.glob(f"{ledger.name}*"):
        path.rename(path.with_name(f"lost-{path.name}"))


def test_a_backup_is_verified_and_private(sqlite_place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "monday.db"
    copy.parent.mkdir()
    with sqlite_place.open() as ledger:
        fill(ledger)
        found = ledger.backup(copy)
        assert found.ok
        assert found.head == ledger.head()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert os.listdir(copy.parent) == ["monday.db"]
    assert sqlite_place.key_file.read_bytes() not in copy.read_bytes()


def test_nothing_is_overwritten(sqlite_place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "monday.db"
    with sqlite_place.open() as ledger:
        fill(ledger)
        copy.write_text("something else")
        with pytest.raises(InvalidInput, match="exists already"):
            ledger.backup(copy)
        assert copy.read_text() == "something else"
        with pytest.raises(InvalidInput, match="exists already"):
            ledger.backup(tmp_path / "ledger.db")
        with pytest.raises(LedgerUnavailable, match="cannot be written: No such file"):
            ledger.backup(tmp_path / "nowhere" / "monday.db")
        ledger.backup(tmp_path / "tuesday.db")
        with pytest.raises(InvalidInput, match="a ledger is never overwritten"):
            restore(sqlite_place.url, sqlite_place.key_file, tmp_path / "tuesday.db")
        assert ledger.verify().ok


def test_a_backup_while_others_write(sqlite_place: Place, tmp_path: Path) -> None:
    with sqlite_place.open() as ledger:
        fill(ledger)
        stop = threading.Event()
        failures: list[BaseException] = []

        def write(name: int) -> None:
            try:
                number = 0
                while not stop.is_set():
                    number += 1
                    answered(ledger, f"writer {name} {number}")
            except BaseException as error:
                failures.append(error)

        worker = sqlite_place.worker("spend", 7, 2, 100)  # another process, too
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
        writers = [threading.Thread(target=write, args=(name,)) for name in range(2)]
        for writer in writers:
            writer.start()
        anchors = []
        for number in range(8):
            anchors.append(ledger.backup(tmp_path / f"copy{number}.db").head)
            while ledger.head() == anchors[-1] and not failures:
                pass  # another process writes between any two copies
        stop.set()
        for writer in writers:
            writer.join()
        worker.communicate(timeout=60)
        assert failures == []
        assert worker.returncode == 0
        # The copies are states of one chain, one after the other, and the chain went on.
        numbers = [anchor.sequence for anchor in (*anchors, ledger.head())]
        assert numbers == sorted(set(numbers))
        assert all(ledger.verify(anchor).ok for anchor in anchors)
    moved_away(sqlite_place)
    restored = restore(sqlite_place.url, sqlite_place.key_file, tmp_path / "copy4.db", anchors[4])
    assert (restored.verification.head, restored.lost) == (anchors[4], 0)
    with sqlite_place.open(create=False) as ledger:
        assert ledger.verify(anchors[3]).ok


def test_a_restored_ledger_goes_on(sqlite_place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "monday.db"
    with sqlite_place.open() as ledger:
        fill(ledger)
        secret = ledger.issue_token("ada").secret
        old = ledger.head()
        answers = ledger.answers()
        ledger.backup(copy)
    moved_away(sqlite_place)
    restored = restore(sqlite_place.url, sqlite_place.key_file, copy, old)
    assert restored.verification.ok
    assert restored.lost == 0
    with sqlite_place.open(create=False) as ledger:
        assert ledger.answers() == answers
        assert ledger.authenticate(secret).name == "ada"
        assert ledger.balance("people").epsilon.spent == Fraction(3, 10)
        answered(ledger, "after")
        assert ledger.verify(old).ok
    assert copy.exists()


def test_lost_entries_are_counted_and_forfeited(sqlite_place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "monday.db"
    with sqlite_place.open() as ledger:
        fill(ledger)
        old = ledger.backup(copy).head
        answered(ledger, "since the backup")
        anchor = ledger.head()
    moved_away(sqlite_place)
    restored = restore(sqlite_place.url, sqlite_place.key_file, copy, anchor)
    assert restored.verification.ok
    assert restored.verification.head == old
    assert restored.lost == 2
    with sqlite_place.open() as ledger:
        found = ledger.verify(anchor)
        assert "it was cut off" in str(found)
        assert ledger.balance("people").epsilon.spent == Fraction(3, 10)
        ledger.forfeit("people", epsilon=Fraction(1, 10), reason="restored from Monday")
        assert ledger.balance("people").epsilon.spent == Fraction(4, 10)
        assert ledger.verify(old).ok


def test_a_bad_backup_is_not_restored(sqlite_place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "monday.db"
    with sqlite_place.open() as ledger:
        fill(ledger)
        head = ledger.backup(copy).head
    moved_away(sqlite_place)

    def refused(error: type[Exception], match: str, source: Path, anchor: Anchor | None = None) -> None:
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(error, match=match):
            restore(sqlite_place.url, sqlite_place.key_file, source, anchor)
        assert sorted(os.listdir(tmp_path)) == before

    refused(LedgerTampered, "the chain was rewritten", copy, Anchor(head.sequence, "0" * 64))
    changed = tmp_path / "changed.db"
    for statement, match in (
        ("UPDATE idios_entries SET payload = REPLACE(payload, '1/10', '1/99') WHERE sequence = 4", "entry 4"),
        ("UPDATE idios_datasets SET epsilon_spent = '0/1'", "the table of datasets is wrong"),
        ("UPDATE idios_datasets SET epsilon_spent = 'much'", "the table of datasets is wrong"),
    ):
        shutil.copy(copy, changed)
        with sqlite3.connect(changed) as connection:
            connection.execute(statement)
        connection.close()
        refused(LedgerTampered, f"was not restored, as it is not good: .*{match}", changed)
    changed.write_text("name,income\n" * 1000)
    refused(LedgerUnavailable, "cannot be copied: file is not a database", changed)
    changed.unlink()
    refused(InvalidInput, "there is no backup", changed)
    sqlite3.connect(changed).execute("CREATE TABLE t (x)").connection.close()
    refused(InvalidInput, "there is no ledger in", changed)
    key = sqlite_place.key_file.read_bytes()
    sqlite_place.key_file.write_bytes(b"k" * 32)
    refused(LedgerTampered, "entry 1", copy)
    sqlite_place.key_file.unlink()
    refused(WrongLedgerKey, "is missing; restore it first", copy)
    sqlite_place.key_file.write_bytes(key)
    (tmp_path / "ledger.db-wal").write_bytes(b"")
    refused(InvalidInput, "ledger.db-wal exists already", copy)


def test_a_ledger_that_is_not_good_has_no_backup(sqlite_place: Place, tmp_path: Path) -> None:
    with sqlite_place.open() as ledger:
        fill(ledger)
        sqlite_place.execute("UPDATE idios_entries SET time = '' WHERE sequence = 4")
        with pytest.raises(LedgerTampered, match=r"there is no backup.*entry 4"):
            ledger.backup(tmp_path / "monday.db")
    assert not [name for name in os.listdir(tmp_path) if "monday" in name]


def test_in_memory_there_is_nothing_to_copy(tmp_path: Path) -> None:
    with Ledger.open("sqlite://") as ledger, pytest.raises(InvalidInput, match="in memory"):
        ledger.backup(tmp_path / "monday.db")
    with pytest.raises(InvalidInput, match="in memory"):
        restore("sqlite://", None, tmp_path / "monday.db")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("written", [FORMAT - 1, FORMAT + 1])
def test_a_backup_of_another_format_is_not_put_back(sqlite_place: Place, tmp_path: Path, written: int) -> None:
    copy = tmp_path / "monday.db"
    with sqlite_place.open() as ledger:
        fill(ledger)
        ledger.backup(copy)
    with closing(sqlite3.connect(copy)) as base, base:
        base.execute(f"UPDATE idios_chain SET format = {written}")
    moved_away(sqlite_place)
    with pytest.raises(LedgerError, match=rf"the ledger .*monday\.db has format {written}, .*: use the version"):
        restore(sqlite_place.url, sqlite_place.key_file, copy)
    assert not (tmp_path / "ledger.db").exists()


def test_a_copy_with_a_strange_name(sqlite_place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "a b#c" / "d?mode=memory%20ä.db"
    copy.parent.mkdir()
    with sqlite_place.open() as ledger:
        fill(ledger)
        ledger.backup(copy)
    moved_away(sqlite_place)
    assert restore(sqlite_place.url, sqlite_place.key_file, copy).verification.entries == 9


def test_postgresql_is_copied_by_its_own_programs(postgresql_place: Place, tmp_path: Path) -> None:
    password = make_url(postgresql_place.url).password or ""

    def refused(action: Callable[[], object]) -> None:
        with pytest.raises(
            InvalidInput, match=r"(pg_dump|psql) --host=127\.0\.0\.1 --port=\d+ .*my copy\.sql'"
        ) as caught:
            action()
        assert password not in str(caught.value)

    def put_back() -> object:
        return restore(postgresql_place.url, postgresql_place.key_file, tmp_path / "my copy.sql")

    with postgresql_place.open() as ledger:
        refused(lambda: ledger.backup(tmp_path / "my copy.sql"))
        with pytest.raises(LedgerUnavailable, match=r"has the ledger .* open; stop it first") as caught:
            put_back()
        assert password not in str(caught.value)
    refused(put_back)
    assert not (tmp_path / "my copy.sql").exists()


def test_nothing_is_restored_while_the_ledger_is_open(sqlite_place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "monday.db"
    with sqlite_place.open() as ledger:
        fill(ledger)
        ledger.backup(copy)
        moved_away(sqlite_place)  # by an operator who does not know that the server still writes it
        with pytest.raises(LedgerUnavailable, match=r"has the ledger open whose key is .*; stop it first"):
            restore(sqlite_place.url, sqlite_place.key_file, copy)
        assert not (tmp_path / "ledger.db").exists()
        worker = subprocess.run(
            [sys.executable, "-c", RESTORE, sqlite_place.url, str(sqlite_place.key_file), str(copy)],
            capture_output=True,
            text=True,
        )
        assert "stop it first" in worker.stdout
    assert restore(sqlite_place.url, sqlite_place.key_file, copy).verification.ok
    with sqlite_place.open() as ledger:
        assert ledger.verify().ok


RESTORE = """
import sys
from idios.errors import LedgerUnavailable
from idios.ledger import restore
try:
    restore(*sys.argv[1:])
except LedgerUnavailable as error:
    print(error)
"""


def test_a_ledger_is_not_opened_while_it_is_restored(sqlite_place: Place) -> None:
    sqlite_place.open().close()
    with (
        hold_exclusively(sqlite_place.key_file),
        pytest.raises(LedgerUnavailable, match="is being restored; try again"),
    ):
        sqlite_place.open()
    sqlite_place.open().close()


def test_pg_dump_and_psql_bring_a_ledger_back(
    postgresql_place: Place, postgresql_engine: Engine, tmp_path: Path
) -> None:
    pg_dump, psql = (require_program(str(programs() / name)) for name in ("pg_dump", "psql"))
    schema = postgresql_place.url.rpartition("%3D")[2]
    server = postgresql_place.url.partition("?")[0]
    dump = tmp_path / "ledger.sql"
    with postgresql_place.open() as ledger:
        fill(ledger)
        anchor = ledger.head()
        dumped = [pg_dump, f"--dbname={server}", f"--table={schema}.idios_*", f"--file={dump}"]
        subprocess.run(dumped, check=True, capture_output=True)
        answered(ledger, "since the backup")
        newer = ledger.head()
    with postgresql_engine.begin() as connection:
        connection.execute(text(f"DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}"))
    restoring = [psql, f"--dbname={server}", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--file={dump}"]
    subprocess.run(restoring, check=True, capture_output=True)
    with postgresql_place.open(create=False) as ledger:
        assert ledger.verify(anchor).ok
        assert "it was cut off" in str(ledger.verify(newer))
        assert ledger.balance("people").epsilon.spent == Fraction(3, 10)
        answered(ledger, "after")
        with pytest.raises(NotPermitted):
            ledger.authenticate("nobody's")
        assert ledger.verify(anchor).ok
