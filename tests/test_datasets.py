"""Data sets: one declaration for the file and for Python, and a file that is no longer the one that was opened."""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from idios.backends.duckdb import DuckDbBackend
from idios.config import read_configuration
from idios.core.domain import Kind
from idios.datasets import DATASET_KEYS, DatasetConfig, OpenedFile, read_column, read_parameters
from idios.errors import AnswerFailed, ConfigurationError, DataChanged, InvalidInput
from idios.party import TrustedParty
from idios.query.calendar import since_1970

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
    original = DuckDbBackend.open_snapshot

    @contextmanager
    def open_snapshot(*given: Any) -> Iterator[Any]:
        with original(*given) as snapshot:
            replaced(people)
            yield snapshot

    monkeypatch.setattr(DuckDbBackend, "open_snapshot", open_snapshot)
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


# One declaration, two spellings.

DECLARED: dict[str, Any] = {
    "csv": {"delimiter": ";"},
    "version": "2026-11",
    "neighbours": "add-remove",
    "protection": "differential",
    "analysts": "trusted",
    "delta": "1e-6",
    "delta_budget": "1e-5",
    "floor": 2,
    "fineness": 1000,
    "width": 1000000,
    "budget": "2.5",
    "min_epsilon": "0.1",
    "max_groups": 50,
    "parameters": {"quantile": 0.1, "k": [2, 4], "trim": False},
    "release_seconds": "0.5",
    "columns": COLUMNS,
}


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"').replace("False", "false")


def from_file(folder: Path, source: Path, declared: dict[str, Any]) -> DatasetConfig:
    lines = [f"{key} = {toml(value)}" for key, value in {"source": str(source), **declared}.items()]
    (folder / "idios.toml").write_text("\n".join(["[datasets.people]", *lines]) + "\n")
    return read_configuration(folder / "idios.toml", {}).datasets["people"]


def from_python(source: Path, declared: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> DatasetConfig:
    configs: list[DatasetConfig] = []

    def keep(given: list[DatasetConfig], *_: object, **__: object) -> dict[str, Any]:
        configs.extend(given)
        return {}

    with monkeypatch.context() as patch:
        patch.setattr("idios.party.open_datasets", keep)
        TrustedParty.open(source, **declared).close()
    return configs[0]


def test_python_can_declare_what_the_file_can() -> None:
    parameters = set(inspect.signature(TrustedParty.open).parameters)
    # several data sets over one source are a matter of a file that declares several
    assert parameters - {"name", "ledger", "progress"} == set(DATASET_KEYS) - {"shares_source"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"protection": "group", "group": 5, "delta": None},
        {"protection": "group", "group": [1, 1.5, "1.5"], "delta": None},
        {"protection": "group", "group": {"size": 5, "growth": "flat"}, "delta": None},
        dict.fromkeys(set(DECLARED) - {"budget", "columns"}),
    ],
)
def test_both_spellings_declare_the_same(
    people: Path, tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {key: value for key, value in (DECLARED | changes).items() if value is not None}
    in_file = from_file(tmp_path, people, declared)
    assert in_file == from_python(people, declared, monkeypatch)
    assert in_file.budget == Fraction(5, 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("budget", -1),
        ("columns", {}),
        ("columns", {"age": {"type": "integer", "bounds": [5, 2]}}),
        ("neighbours", "swap"),
        ("protection", "strong"),
        ("analysts", "all"),
        ("group", 5),
        ("group", [2, 1]),
        ("group", {"size": 5, "growth": "none"}),
        ("delta", 2),
        ("delta_budget", "much"),
        ("floor", -1),
        ("fineness", 0),
        ("width", "wide"),
        ("min_epsilon", 0),
        ("max_groups", "many"),
        ("parameters", {"median": 1}),
        ("release_seconds", 61),
        ("csv", {"delimiter": ";;"}),
    ],
)
def test_both_spellings_refuse_the_same(people: Path, tmp_path: Path, key: str, value: Any) -> None:
    declared = DECLARED | {key: value}
    with pytest.raises(ConfigurationError) as in_file:
        from_file(tmp_path, people, declared)
    with pytest.raises(InvalidInput) as in_python:
        TrustedParty.open(people, **declared)
    assert str(in_file.value) == str(in_python.value)
    assert str(in_file.value).startswith("[datasets.people]: ")


def test_columns_and_parameters_from_python() -> None:
    assert read_column("x", "integer").kind is Kind.INTEGER
    for bad in (5, {}, {"step": 1}):
        with pytest.raises(InvalidInput, match="must be a table with a type"):
            read_column("x", bad)
    assert read_parameters({}).quantile == Fraction(1, 20)
    with pytest.raises(InvalidInput, match="must be a table"):
        read_parameters([1])


def test_timestamps_with_a_zone_are_utc() -> None:
    assert since_1970("1970-01-01T02:00:00+02:00", Kind.TIMESTAMP) == 0
    first = since_1970("0001-01-01T00:00:00", Kind.TIMESTAMP)
    assert since_1970("0001-01-01T00:00:00+01:00", Kind.TIMESTAMP) == first - 3600 * 10**6


def test_bounds_beyond_what_is_told_apart_are_refused() -> None:
    read_column("x", {"type": "integer", "bounds": [-(2**62), 2**62]})
    for declared in ({"type": "integer", "bounds": [0, 2**62 + 1]}, {"type": "number", "bounds": [0, "5e12"]}):
        with pytest.raises(InvalidInput, match=r"^column 'x': bounds must lie within 2\^62 steps"):
            read_column("x", declared)
