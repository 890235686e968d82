"""What is known of whole columns changes no summary, and clamps stay where values lie outside of bounds."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from idios.core.domain import LIMIT
from idios.core.statistics import KthLargest, KthSmallest, Mean, Median
from idios.core.summary import Summary
from idios.data.backend import open_source
from idios.data.engines import duckdb
from idios.data.engines.duckdb import DuckDbBackend, DuckDbConnection
from idios.data.sql.selection import SelectStatement
from idios.declare.schema import Column, Dataset
from idios.expressions.predicates import ALWAYS, Among
from tests.conformance.plans import dataset, number, plan, whole

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [0, 3, 7, 10]),
    "at bounds": (pa.int64(), [-5, 50]),
    "below": (pa.int64(), [-6, 50]),
    "above": (pa.int64(), [-5, 51]),
    "with NULL": (pa.int64(), [None, 1, 2]),
    "far": (pa.int64(), [-LIMIT - 1, LIMIT + 1, 4]),
    "ends of the grid": (pa.int64(), [-LIMIT, LIMIT]),
    "unsigned": (pa.uint64(), [1, 2**64 - 1]),
    "small": (pa.int8(), [-3, 9]),
    "floats": (pa.float64(), [0.25, 7.5, -3.125]),
    "NaN": (pa.float64(), [math.nan, 1.5, 2.25, None]),
    "only NaN": (pa.float64(), [math.nan]),
    "infinite": (pa.float64(), [math.inf, -math.inf, 1.0]),
    "huge": (pa.float64(), [1e300, -1e300, 0.5]),
    "just outside": (pa.float64(), [50.005, -5.005, -5.0050001]),
    "nothing": (pa.int64(), [None]),
    "single": (pa.float32(), [0.1, 1e30, -0.0]),
}


@pytest.fixture(autouse=True)
def read_files_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "KEPT", 0)
    monkeypatch.setattr(DuckDbConnection, "in_process", False)


def write(path: Path, kind: str, name: str = "x") -> Path:
    held, values = VALUES[kind]
    chosen = random.Random(kind).choices(values, k=40) + values
    parquet.write_table(pa.table({name: pa.array(chosen, held)}), path, row_group_size=16)
    return path


def declare(kind: str) -> list[Column]:
    """Columns of every sort that can be declared of such values."""
    if pa.types.is_floating(VALUES[kind][0]):
        made = [number("x", "0.01", (-5, 50)), number("x", "0.01"), number("x", "4", (-8, 48))]
        return [*made, number("x", "0.01", (-5, 50), nullable=False)]
    return [whole("x", (-5, 50)), whole("x"), whole("x", (None, 50), nullable=False)]


def summarise(path: Path, data: Dataset) -> list[tuple[Summary, ...]]:
    found = []
    with open_source(path, data) as backend:
        for where in (ALWAYS, Among("x", ((1, None),))):
            asked = plan(data, (Mean(), "x"), (Median(), "x"), (KthLargest(2), "x"), where=where)
            found += [tuple(backend.summarise(each)[0]) for each in (asked, plan(data, (Mean(), "x"), where=where))]
    return found


@pytest.mark.parametrize("kind", VALUES)
def test_statistics_change_no_summary(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.parquet", kind)
    datasets = [dataset(column) for column in declare(kind)]
    with_statistics = [summarise(path, data) for data in datasets]
    monkeypatch.setattr(duckdb, "use_statistics", lambda connection, rows, metadata: rows)
    without = [summarise(path, data) for data in datasets]
    assert with_statistics == without
    monkeypatch.setattr(duckdb, "KEPT", 10**6)
    for in_process in (False, True):
        monkeypatch.setattr(DuckDbConnection, "in_process", in_process)
        assert [summarise(path, data) for data in datasets] == without


def read_column(path: Path, column: Column) -> Any:
    with open_source(path, dataset(column)) as backend:
        assert isinstance(backend, DuckDbBackend)
        return backend.columns["x"]


@pytest.mark.parametrize(
    ("kind", "ends", "compares"),
    [
        ("whole", (0, 10), False),
        ("at bounds", (-5, 50), False),
        ("below", (-5, 50), True),
        ("above", (-5, 50), True),
        ("with NULL", (1, 2), False),
        ("far", (-5, 50), True),
        ("unsigned", (1, 50), True),
        ("nothing", None, True),
    ],
)
def test_bounds_are_compared_where_values_lie_outside(
    kind: str, ends: tuple[int, int] | None, compares: bool, tmp_path: Path
) -> None:
    column = read_column(write(tmp_path / "t.parquet", kind), whole("x", (-5, 50)))
    assert (column.told, "CASE" in column.bounded) == (ends, compares)


@pytest.mark.parametrize("kind", ["whole", "floats"])
def test_nothing_is_tested_that_always_holds(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a small table all values are looked at; with a NULL, or NaN, each is tested again."""
    monkeypatch.setattr(duckdb, "KEPT", 10**6)
    column = read_column(write(tmp_path / "t.parquet", kind), declare(kind)[-1])
    assert column.complete
    assert "CASE" not in column.settle("p") + column.bounded
    for missing in ("with NULL", "NaN", "infinite", "nothing"):
        column = read_column(write(tmp_path / f"{missing}.parquet", missing), declare(missing)[-1])
        assert not column.complete
        assert "CASE" in column.settle("p"), missing


def test_the_ends_of_the_grid_are_compared(tmp_path: Path) -> None:
    """A point at an end may have been moved there from beyond."""
    assert "CASE" in read_column(write(tmp_path / "t.parquet", "ends of the grid"), whole("x")).bounded
    assert "CASE" in read_column(write(tmp_path / "u.parquet", "huge"), number("x", "0.01")).bounded
    assert "CASE" not in read_column(write(tmp_path / "v.parquet", "floats"), number("x", "0.01")).bounded


def test_without_statistics_nothing_is_told(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2, 3]})
    parquet.write_table(table, tmp_path / "t.parquet", write_statistics=False)
    column = read_column(tmp_path / "t.parquet", whole("x", (-5, 50)))
    assert (column.told, "CASE" in column.bounded) == (None, True)


def test_counts_of_all_records_are_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, run = [], DuckDbConnection.run

    def record(self: DuckDbConnection, statement: SelectStatement) -> pa.Table:
        texts.append(statement.text)
        return run(self, statement)

    monkeypatch.setattr(DuckDbConnection, "run", record)
    monkeypatch.setattr("idios.data.engines.sql_backend.SMALL", 10)
    data = dataset(number("x", "0.01"), number("y", "0.01"))
    pair = pa.table({"x": [0.5, 1.5, math.nan] * 20, "y": [float(i) for i in range(60)]})
    parquet.write_table(pair, tmp_path / "t.parquet")
    second, first = (plan(data, (KthLargest(2), name)) for name in ("y", "x"))
    both = plan(data, (KthLargest(2), "y"), (KthLargest(2), "x"))
    with open_source(tmp_path / "t.parquet", data) as backend:
        (alone,) = backend.summarise(second)[0]
        texts.clear()
        assert list(backend.summarise(second)[0]) == [alone]
        assert not any("COUNT" in text for text in texts)
        (other,) = backend.summarise(first)[0]
        assert (alone.windows[0].values[-1], other.windows[0].values[-1]) == (5900, 150)
        assert list(backend.summarise(both)[0]) == [alone, other], "names in a relation differ from plan to plan"


@pytest.mark.parametrize("seed", range(4))
def test_outermost_values_are_found_in_few_row_groups(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ties at the ends, negative numbers, NaN and NULL, and where guesses are wrong."""
    monkeypatch.setattr("idios.data.engines.sql_backend.SMALL", 10)
    chance, data = random.Random(seed), dataset(number("x", "0.01"), whole("n", nullable=False))
    reals = [round(chance.gauss(0, 3), chance.choice([0, 2])) for _ in range(400)]
    reals += [None, math.nan] if seed % 2 else []
    wholes = [chance.randint(-3, 3) if seed < 2 else chance.randint(-(10**6), 10**6) for _ in reals]
    table = pa.table({"x": pa.array(reals, pa.float64()), "n": wholes})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=16)
    readable = sorted(round(value * 100) for value in reals if value is not None and not math.isnan(value))
    with open_source(tmp_path / "t.parquet", data) as backend:
        assert isinstance(backend, DuckDbBackend)
        for guesses in (None, (("-1",) * 6, ("1",) * 6), (("-99",) * 6, ("99",) * 6)):
            if guesses is not None:
                backend.columns = {name: replace(each, guesses=guesses) for name, each in backend.columns.items()}
            assert [len(column.guesses[1]) for column in backend.columns.values()] == [6, 6]
            for k in (1, 2, 4, 6):
                for name, values in (("x", readable), ("n", sorted(wholes))):
                    (high,) = backend.summarise(plan(data, (KthLargest(k), name)))[0]
                    (low,) = backend.summarise(plan(data, (KthSmallest(k), name)))[0]
                    for window in (*high.windows, *low.windows):
                        assert window.values == tuple(values[window.first - 1 :][: len(window.values)])
                        assert len(window.values) > 1


def test_a_field_of_a_struct_may_be_called_as_a_column_is(tmp_path: Path) -> None:
    """DuckDB writes the path of a nested field as text, and its ends are not numbers."""
    data = dataset(whole("s, a"))
    pair = pa.table({"s": [{"a": "secret"}] * 40, "s, a": pa.array(range(40), pa.int64())})
    parquet.write_table(pair, tmp_path / "t.parquet", row_group_size=5)
    with open_source(tmp_path / "t.parquet", data) as backend:
        (found,) = backend.summarise(plan(data, (KthLargest(2), "s, a")))[0]
    assert found.windows[0].values[-2:] == (38, 39)
