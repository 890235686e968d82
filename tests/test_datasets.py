"""Data sets: one declaration for the file and for Python, and a file that is no longer the one that was opened."""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from idios.config import read_configuration
from idios.core.calibration import Level, Protection
from idios.core.domain import Kind
from idios.core.statistics import FINE, Parameters
from idios.data.engines.duckdb import DuckDbBackend
from idios.data.formats.files import OpenedFile
from idios.datasets import (
    DATASET_KEYS,
    FORMER_KEYS,
    MIN_EPSILON,
    DatasetConfig,
    read_column,
    read_parameters,
)
from idios.declare.dates import since_1970
from idios.declare.schema import Budget
from idios.errors import AnswerFailed, ConfigurationError, DataChanged, InvalidInput, LedgerError, SourceError
from idios.ledger import ChargeRequest, Declaration, Ledger, Promise
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


def test_a_file_that_is_read_otherwise_is_another_version(tmp_path: Path) -> None:
    """Else an answer about what it was read as before would be shown again."""
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "12\n" * 50 + "99\n" * 30)

    def ask(**csv: Any) -> tuple[str, bool]:
        ledger = tmp_path / "ledger.db"
        with TrustedParty.open(path, name="people", columns=COLUMNS, budget=100, ledger=ledger, **csv) as party:
            return party.datasets["people"].dataset.version, party.query(SQL, 1).stored

    plain = ask()
    assert not plain[1]
    assert ask() == (plain[0], True)
    without = ask(csv={"nulls": ["99"]})
    assert without[0] != plain[0]
    assert not without[1]
    assert ask(csv={"nulls": ["99"]}) == (without[0], True)


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
    assert OpenedFile.list({"age": [1]}) == ()
    assert OpenedFile.list("postgresql://base?table=people") == ()
    assert OpenedFile.list("spark:people") == ()
    with TrustedParty.open({"age": [30, 40, 50] * 20}, name="people", columns=COLUMNS, budget=5) as party:
        party.query(SQL, 1)


# One declaration, two spellings.

DECLARED: dict[str, Any] = {
    "csv": {"delimiter": ";"},
    "version": "2026-11",
    "neighbours": "add-remove",
    "protection": "differential",
    "analysts": "trusted",
    "floor": 2,
    "fineness": 1000,
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
    # several data sets over one source are a matter of a file that declares several, and what is public is linked
    assert parameters - {"name", "ledger", "progress", "linked"} == set(DATASET_KEYS) - {"shares_source", "public"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"protection": "group", "group": 5},
        {"protection": "group", "group": [1, 1.5, "1.5"]},
        {"protection": "group", "group": {"size": 5, "growth": "flat"}},
        {"columns": {"age": {"type": "integer", "centre": 40}}},
        dict.fromkeys(set(DECLARED) - {"budget", "columns"}),
    ],
)
def test_both_spellings_declare_the_same(
    people: Path, tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {key: value for key, value in (DECLARED | changes).items() if value is not None}
    in_file = from_file(tmp_path, people, declared)
    assert in_file == from_python(people, declared, monkeypatch)
    assert in_file.dataset.budget == Budget(Fraction(5, 2))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("accounting", "exact"),
        ("accounting", "concentrated"),
        ("budget", -1),
        ("budget", {"epsilon": 5, "delta": "1e-6"}),
        ("budget", {"delta": "1e-6"}),
        ("budget", {"epsilon": 5, "rho": 1}),
        ("columns", {}),
        ("columns", {"age": {"type": "integer", "bounds": [5, 2]}}),
        ("columns", {"age": {"type": "integer", "centre": "middle"}}),
        ("neighbours", "swap"),
        ("protection", "strong"),
        ("analysts", "all"),
        ("group", 5),
        ("group", [2, 1]),
        ("group", {"size": 5, "growth": "none"}),
        ("floor", -1),
        ("fineness", 0),
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
    with pytest.raises(InvalidInput, match="must be a table"):
        read_parameters([1], Level.INDIVIDUAL)


def test_values_from_arrays_and_columns() -> None:
    listed = read_column("x", {"values": [1, 2], "missing": [9]})
    for kind in (np.array, pd.Series, pd.Index, pl.Series):
        assert read_column("x", {"values": kind([1, 2]), "missing": kind([9])}) == listed
    assert read_column("x", {"values": np.array([1.0, 2.0]), "missing": [9]}) == listed
    for bad, message in (
        ({1, 2}, "a set has none: write a list"),
        (np.array([1.0, np.nan]), "a declared value is text, a number or true or false, got nan"),
        (np.array([[1, 2]]), r"got \[1, 2\]"),
        ([None], "got None"),
        (np.array(1), "a category column declares its values"),
    ):
        with pytest.raises(InvalidInput, match=message):
            read_column("x", {"values": bad})


def test_parameters_are_public_sets_unless_answers_are_differentially_private() -> None:
    for level in Level:
        fine = level is Level.DIFFERENTIAL
        assert read_parameters({}, level) == (FINE if fine else Parameters())
        some = read_parameters({"quantile": 0.1, "k": False}, level)
        assert some == Parameters(Fraction(1, 10), None, FINE.trim if fine else Parameters().trim)
        assert read_parameters({"quantile": 0.05, "k": [1, 2, 3, 5, 10, 20], "trim": 0.05}, level) == Parameters()
        assert read_parameters({"quantile": False, "trim": False}, level).quantile is None


def test_timestamps_with_a_zone_are_utc() -> None:
    assert since_1970("1970-01-01T02:00:00+02:00", Kind.TIMESTAMP) == 0
    first = since_1970("0001-01-01T00:00:00", Kind.TIMESTAMP)
    assert since_1970("0001-01-01T00:00:00+01:00", Kind.TIMESTAMP) == first - 3600 * 10**6


def test_bounds_beyond_what_is_told_apart_are_refused() -> None:
    read_column("x", {"type": "integer", "bounds": [-(2**62), 2**62]})
    for declared in ({"type": "integer", "bounds": [0, 2**62 + 1]}, {"type": "number", "bounds": [0, "5e12"]}):
        with pytest.raises(InvalidInput, match=r"^column 'x': bounds must lie within 2\^62 steps"):
            read_column("x", declared)


# A public guess of where values lie.


def test_a_centre_is_a_point_of_the_grid() -> None:
    assert read_column("x", {"type": "number", "step": "0.01", "centre": 30}).grid.centre == 3000
    assert read_column("x", {"type": "integer", "bounds": [0, 120], "centre": 40}).grid.centre == 40
    assert read_column("x", {"type": "integer", "bounds": [18, 120]}).grid.centre == 0, "0 unless declared"
    for written in ("1970-01-03", date(1970, 1, 3)):
        assert read_column("x", {"type": "date", "centre": written}).grid.centre == 2
        assert read_column("x", {"type": "timestamp", "centre": written}).grid.centre == 2 * 86_400_000_000
    assert read_column("x", {"type": "date", "bounds": ["2020-01-01", None]}).grid.centre == 0


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"type": "category", "values": ["a"], "centre": 1}, "centre belongs to numeric columns"),
        ({"type": "integer", "centre": "middle"}, "centre must be a finite number"),
        ({"type": "integer", "bounds": [18, 120], "centre": 0}, "centre must lie within the bounds, got 0"),
        ({"type": "integer", "bounds": [None, 120], "centre": 121}, "centre must lie within the bounds, got 121"),
        ({"type": "integer", "centre": 2**62 + 1}, r"centre must lie within 2\^62 steps of 0"),
        ({"type": "number", "centre": 10**400 + 1}, "centre must be between -1e400 and 1e400"),
        ({"type": "date", "centre": 5}, "centre must be a date such as 2026-01-31, got 5"),
    ],
)
def test_what_no_centre_can_be(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^column 'x': {message}"):
        read_column("x", declared)


# How many records there are.


@pytest.mark.parametrize(("neighbours", "size"), [("replace", 60), ("add-remove", None)])
def test_the_number_of_records_is_known_where_it_is_public(people: Path, neighbours: str, size: int | None) -> None:
    with TrustedParty.open(people, columns=COLUMNS, budget=5, neighbours=neighbours) as party:
        assert party.datasets["people"].dataset.size == size


def test_what_cannot_be_counted_is_closed(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[DuckDbBackend] = []
    original = DuckDbBackend.close

    def count_units(_: DuckDbBackend) -> int:
        raise SourceError("lost")

    def close(backend: DuckDbBackend) -> None:
        closed.append(backend)
        original(backend)

    monkeypatch.setattr(DuckDbBackend, "count_units", count_units)
    monkeypatch.setattr(DuckDbBackend, "close", close)
    with pytest.raises(SourceError):
        TrustedParty.open(people, columns=COLUMNS, budget=5)
    assert len(closed) == 1


def test_the_level_is_differential_wherever_none_is_named(people: Path, tmp_path: Path) -> None:
    """In the file, in Python and in the mathematics; the paper's levels are one word away."""
    table = {key: value for key, value in DECLARED.items() if key not in ("protection", "group")}
    assert Protection().level == Protection.declare().level == Level.DIFFERENTIAL
    for keys, level in (({}, Level.DIFFERENTIAL), ({"protection": "individual"}, Level.INDIVIDUAL)):
        assert from_file(tmp_path, people, table | keys).dataset.protection.level is level
    with TrustedParty.open(people, columns=COLUMNS, budget=9) as party:
        assert party.query(SQL, 1).guarantee.notation == "1-DP"
        assert party.query(SQL, 2).check_rows, "the level's check comes with it"
    with TrustedParty.open(people, columns=COLUMNS, budget=9, protection="individual") as party:
        assert party.query(SQL, 1).guarantee.notation == "1-iDP"


# Declarations of earlier versions.


@pytest.mark.parametrize("key", FORMER_KEYS)
def test_a_key_that_nothing_needs_any_more_is_told_apart_from_a_mistake(people: Path, tmp_path: Path, key: str) -> None:
    message = rf"^\[datasets.people\]: remove {key}, which nothing needs any more: .* without bounds and without δ$"
    with pytest.raises(ConfigurationError, match=message):
        from_file(tmp_path, people, DECLARED | {key: "1e-6"})


def test_a_ledger_that_knows_a_budget_of_delta_opens_without_one(people: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    options: dict[str, Any] = {"columns": COLUMNS, "budget": 5, "version": "1", "ledger": path}
    options["protection"] = "individual"
    with Ledger.open(f"sqlite:///{path}") as ledger:
        promise = Promise("replace", "individual")
        ledger.declare(Declaration("people", "1", Fraction(5), Fraction("1e-4"), MIN_EPSILON, promise=promise))
        amounts = Fraction(1), Fraction("1e-6")
        ledger.reserve(ChargeRequest("people", "1", None, "an earlier question", *amounts, promise=promise))
        before = ledger.head()
    with TrustedParty.open(people, **options) as party:
        assert party.ledger.head() == before, "nothing has changed"
        balance = party.ledger.balance("people")
        assert (balance.delta.budget, balance.delta.spent) == (Fraction("1e-4"), Fraction("1e-6"))
        assert party.query(SQL, 1).remaining == 3
        party.ledger.raise_budget("people", epsilon=Fraction(6))
    for budget, version in ((5, "2"), (6, "3"), (6, "3")):
        with TrustedParty.open(people, **options | {"budget": budget, "version": version}) as party:
            assert party.ledger.balance("people").epsilon.budget == 6
            assert party.ledger.balance("people").delta.budget == Fraction("1e-4")
            assert party.ledger.verify().ok
    with pytest.raises(LedgerError, match="idios ledger raise"):
        TrustedParty.open(people, **options | {"budget": 7})
