"""A file that is no longer the one that was opened is noticed before a charge, and after computing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from idios.backends.duckdb import DuckDbBackend
from idios.errors import AnswerFailed, DataChanged
from idios.holding import OpenedFile
from idios.party import TrustedParty

COLUMNS = {"age": {"type": "integer", "bounds": [0, 120], "nullable": False}}
SQL = "SELECT MEDIAN(age) FROM people"


def replaced(path: Path) -> None:
    other = path.with_suffix(".new")
    shutil.copy2(path, other)  # the same size, content and time
    other.rename(path)


def appended(path: Path) -> None:
    with path.open("a") as file:
        file.write("7\n")


def rewritten(path: Path) -> None:
    before = path.stat()
    path.write_text(path.read_text())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "30\n40\n50\n" * 20)
    return path


@pytest.mark.parametrize("change", [replaced, appended, rewritten, Path.unlink])
def test_a_changed_file_is_noticed_before_the_charge(people: Path, change: Callable[[Path], None]) -> None:
    with TrustedParty.open(people, columns=COLUMNS, budget=5) as party:
        party.query(SQL, 1)
        head = party.ledger.head()
        change(people)
        for ask in (party.query, party.inspect, party.costs):
            with pytest.raises(DataChanged, match=r"'people' has changed since it was opened.*open it again"):
                ask(SQL, 1)
        assert party.ledger.head() == head
        assert party.quote("SELECT COUNT(*) FROM people WHERE age > 3", 1).cost == 1, "what touches no data goes on"


def test_a_file_that_is_only_read_has_not_changed(people: Path) -> None:
    with TrustedParty.open(people, columns=COLUMNS, budget=5) as party:
        people.read_text()
        party.query(SQL, 1)  # does not raise
        party.inspect(SQL, 1)  # does not raise


def test_a_file_replaced_meanwhile_gives_no_answer(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = DuckDbBackend.summarise

    def summarise(*given: Any) -> Any:
        found = original(*given)
        replaced(people)
        return found

    monkeypatch.setattr(DuckDbBackend, "summarise", summarise)
    with TrustedParty.open(people, columns=COLUMNS, budget=5) as party:
        with pytest.raises(AnswerFailed):
            party.query(SQL, 1)
        assert party.ledger.balance("people").epsilon.spent == 1


def test_what_is_no_file_never_changes(tmp_path: Path) -> None:
    assert OpenedFile.of({"age": [1]}) is None
    assert OpenedFile.of("postgresql://base?table=people") is None
    assert OpenedFile.of("spark:people") is None
    with TrustedParty.open({"age": [30, 40, 50] * 20}, name="people", columns=COLUMNS, budget=5) as party:
        party.query(SQL, 1)
