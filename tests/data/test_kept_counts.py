"""What is counted once and kept for later questions changes none of them."""

from __future__ import annotations

import math
import random
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb as engine
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from idios.core.domain import Kind
from idios.core.statistics import KthLargest, Median
from idios.data.backend import open_source
from idios.data.engines import duckdb
from idios.data.engines.duckdb import DuckDbBackend
from idios.expressions.predicates import ALWAYS, Among
from tests.conformance.plans import by, category, dataset, number, of_kind, plan, whole

HOSTILE = {"x": [], "y": [-math.inf], "z": [math.inf, -math.inf, math.nan, None]}
"""What cannot be read in some columns; in the first everything can."""


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_what_was_asked_before_changes_nothing(kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in a relation differ from plan to plan."""
    if not kept:
        monkeypatch.setattr(duckdb, "KEPT", 0)
    monkeypatch.setattr("idios.data.engines.sql_backend.SMALL", 10)
    chance = random.Random(1)
    group = category("g", "a", "b", "c")
    data = dataset(group, number("x"), number("y"), number("z", nullable=False))
    rows: dict[str, pa.Array] = {"g": pa.array(chance.choices(["a", "b", "c", "other", None], k=600))}
    for name, odd in HOSTILE.items():
        values = [chance.choice(odd) if odd and chance.random() < 0.3 else float(i) for i in range(600)]
        rows[name] = pa.array(values, pa.float64())
    parquet.write_table(pa.table(rows), tmp_path / "t.parquet", row_group_size=50)
    asked = [
        plan(data, *((statistic, name) for name in names), groups=groups, where=where)
        for statistic, groups, where in (
            (Median(), [by(group)], ALWAYS),
            (Median(), [by(group)], Among("x", ((100, 400),))),
            (KthLargest(2), [], ALWAYS),
        )
        for names in ("x", "y", "z", "xy", "zx")
    ]
    fresh = []
    for each in asked:
        with open_source(tmp_path / "t.parquet", data) as backend:
            fresh.append([list(cell) for cell in backend.summarise(each)])
    with open_source(tmp_path / "t.parquet", data) as backend:
        for before, after in permutations(range(len(asked)), 2):
            backend.summarise(asked[before])
            assert [list(cell) for cell in backend.summarise(asked[after])] == fresh[after]


def test_an_infinite_time_of_one_group_leaves_those_of_others_exact(tmp_path: Path) -> None:
    """A point that cannot be read is NULL, and floats do not hold odd microseconds of far years."""
    data = dataset(category("g", "a", "b"), of_kind(Kind.TIMESTAMP, "t"))
    path = tmp_path / "t.parquet"
    odd = "TIMESTAMP '9000-01-01 00:00:00.000001' + INTERVAL (2 * i) MICROSECOND"
    with engine.connect() as connection:
        connection.execute(
            "COPY (SELECT 'a' AS g, CASE WHEN i % 10 < 6 THEN TIMESTAMP 'infinity' ELSE TIMESTAMP '2000-01-01' END "
            f"AS t FROM range(1001) r(i) UNION ALL SELECT 'b', {odd} FROM range(1001) r(i)) TO '{path}'"
        )
        (true,) = connection.execute(
            f"SELECT epoch_us(quantile_disc(t, 0.5)) FROM '{path}' WHERE g = 'b'"
        ).fetchone() or (None,)
    with open_source(path, data) as backend:
        _, (found,) = backend.summarise(plan(data, (Median(), "t"), groups=[by(data.columns["g"])]))
    assert found.at(501) == true


def test_two_questions_at_a_time_share_what_was_counted() -> None:
    """One forgets what the other has just looked up."""

    class Forgetful(dict[Any, Any]):
        """Loses everything once the last of some keys was looked up."""

        def __contains__(self, key: object) -> bool:
            found = super().__contains__(key)
            if isinstance(key, tuple) and key[-1] is not None:
                self.clear()
            return found

    data = dataset(category("g", "a", "b"), whole("x"))
    table = pa.table({"g": ["a", "b"] * 40_000, "x": range(80_000)})
    with open_source(table, data) as backend:
        assert isinstance(backend, DuckDbBackend)
        backend.kept = Forgetful()
        for _ in range(3):
            (ends,) = backend.summarise(plan(data, (KthLargest(2), "x")))[0]
            assert ends.at(79_999) == 79_998
            _, (odd,) = backend.summarise(plan(data, (Median(), "x"), groups=[by(data.columns["g"])]))
            assert odd.at(20_000) == 39_999
