"""A small table says the same whether its columns are fetched or asked about, and kept or read from where they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from idios import TrustedParty
from idios.core.domain import LIMIT
from idios.core.statistics import Median
from idios.data import summarise
from idios.data.backend import open_source
from idios.data.engines import duckdb
from idios.data.engines.duckdb import DuckDbConnection
from idios.data.fetched_columns import FetchedColumn, FetchedColumns
from idios.data.scan import Need
from idios.data.sql.selection import ONLY, SelectStatement
from idios.errors import DataChanged
from idios.expressions.predicates import Among
from tests.conformance.plans import dataset, number, plan, whole
from tests.conformance.test_statistics import COLUMNS, TYPES, made, plans, same

WAYS: dict[str, Mapping[str, Any]] = {
    "kept and fetched": {},
    "kept and asked about": {"in_process": False},
    "fetched from where it is": {"kept": 0},
    "asked about where it is": {"in_process": False, "kept": 0},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_says_the_same(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "KEPT", WAYS[way].get("kept", duckdb.KEPT))
    monkeypatch.setattr(DuckDbConnection, "in_process", WAYS[way].get("in_process", True))
    for seed, neighbours in enumerate(("replace", "add-remove")):
        table, data = made(1 + 40 * seed, seed), dataset(*COLUMNS, neighbours=neighbours)
        frame, file = pa.table(table, schema=TYPES), tmp_path / f"{seed}.parquet"
        parquet.write_table(frame, file)
        for source in (frame, file):
            with open_source(source, data) as backend:
                for asked in plans(data).values():
                    same(backend, asked, table)


def test_a_small_table_takes_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, run = [], DuckDbConnection.run

    def record(self: DuckDbConnection, statement: SelectStatement) -> pa.Table:
        texts.append(statement.text)
        return run(self, statement)

    columns = {"x": {"type": "integer", "nullable": False}}
    with TrustedParty.open({"x": list(range(1000))}, name="t", budget=9, columns=columns) as party:
        monkeypatch.setattr(DuckDbConnection, "run", record)
        for asked in ("MEDIAN(x)", "IQR(x), MEDIAN(x)", "COUNT(DISTINCT x), MEDIAN(x)", "COUNT(*)"):
            texts.clear()
            party.query(f"SELECT {asked} FROM t WHERE x > 7", epsilon=1)
            assert len(texts) == 1, asked
        monkeypatch.setattr(summarise, "SMALL", 999)
        texts.clear()
        party.query("SELECT MEDIAN(x) FROM t WHERE x > 8", epsilon=1)
        assert len(texts) > 1, "more records than are fetched"


def test_a_kept_file_that_changes_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": list(range(100))}), file)
    with TrustedParty.open(file, budget=9, columns={"x": {"type": "integer", "nullable": False}}) as party:
        assert party.datasets["t"].backend.points("x").to_pylist() == list(range(100))
        parquet.write_table(pa.table({"x": list(range(200))}), file)
        with pytest.raises(DataChanged):
            party.query("SELECT MEDIAN(x) FROM t", epsilon=1)


def test_a_frame_is_kept_as_it_was_opened() -> None:
    values = np.arange(100)
    with TrustedParty.open({"x": values}, name="t", budget=9, columns={"x": {"type": "integer"}}) as party:
        values[:] = 0
        assert party.datasets["t"].backend.points("x").to_pylist() == list(range(100))


@pytest.mark.parametrize("in_process", [True, False])
def test_what_cannot_be_read_is_counted(
    in_process: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(DuckDbConnection, "in_process", in_process)
    data = dataset(number("income", "0.01", nullable=False), whole("age", nullable=False))
    source = pa.table({"income": [1.5, None, math.nan, math.inf, 2.0], "age": pa.array([1, 2, None, 4, 5], pa.int64())})
    with open_source(source, data) as backend:
        backend.summarise(plan(data, (Median(), "income"), (Median(), "age"), where=Among("age", ((None, 4),))))
    found = {record.args[0]: record.args[2] for record in caplog.records if isinstance(record.args, tuple)}
    assert found == {"income": 3, "age": 1}


def test_sums_of_far_points_are_exact() -> None:
    points = [LIMIT, LIMIT, -LIMIT, LIMIT, 3]
    column = FetchedColumn(np.array(points, np.int64), unread=1)
    known = column.know(Need(total=True, squares=True))
    assert (known.size, known.total, known.unread) == (5, sum(points), 1)
    assert known.squares == sum(point * point for point in points)
    window = known.window(2, 4, sums=True)
    assert window is not None
    assert (window.values, window.below) == ((3, LIMIT, LIMIT), -LIMIT)
    fetched = FetchedColumns(5, {"v0": column})
    assert fetched.counts("v0") == {ONLY: {-LIMIT: 1, 3: 1, LIMIT: 3}}
    assert fetched.rarest("v0", 2) == {ONLY: (3, (1, 1))}
    assert fetched.beside("v0", {ONLY: [(3, 3), (3, 4), (-LIMIT - 1, -LIMIT), (LIMIT, LIMIT + 1)]}) == {
        ONLY: [(3, 3), (3, LIMIT), (-LIMIT,), (LIMIT,)]
    }


def test_nothing_to_fetch() -> None:
    known = FetchedColumn(np.empty(0, np.int64), unread=0).know(Need(total=True, squares=True))
    assert (known.size, known.total, known.squares, known.holds(1, 1)) == (0, 0, 0, False)
