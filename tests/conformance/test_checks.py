"""Checks of answers on every engine: what is told is how far off the answer is, as the whole table says.

The noise of the checks is as good as none, that of the answers is not, so that each s tells its own centre. On small
tables u is found by trying every change of records; on large ones from all values, so that an engine that reads too
little is found out.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from idios.answer.release import draw_table
from idios.core.calibration import Protection
from idios.core.distance_check import DistanceCheck
from idios.core.domain import Categories, Domain, Kind
from idios.core.neighbours import Neighbours
from idios.core.sampling import SeededSource
from idios.core.statistics import Reading, Statistic
from idios.declare.schema import Column, Dataset
from idios.plan.budget import can_check
from idios.plan.planner import make_plan
from idios.plan.question import Aggregate, Plan
from idios.sql.reader import read
from tests.conformance.engines import Engine
from tests.conformance.reference import find_moves, reference, select_values
from tests.oracle import Space, Table
from tests.summaries import summarise

STATISTICS = "MEDIAN(x), QUANTILE(x, 0.25), KTH_LARGEST(x, 2), IQR(x), TRIMMED_MEAN(x, 0.2)"
QUESTIONS = [
    f"SELECT {STATISTICS} FROM t",
    "SELECT MEDIAN(y), KTH_LARGEST(y, 2) FROM t",
    f"SELECT {STATISTICS} FROM t WHERE y >= 1",
    "SELECT g, MEDIAN(x), IQR(x) FROM t WHERE x <= 2 GROUP BY g",
]
"""A nullable column, a whole table, a filter, groups and a filter of the column itself."""
QUIET = Fraction(10**6)
FINENESS = 60
HIGHEST = 3


def declare(level: str, neighbours: str, highest: int) -> Dataset:
    domain = Domain(lower=0, upper=highest)
    columns = [
        Column("x", Kind.INTEGER, domain),
        Column("y", Kind.INTEGER, domain, nullable=False),
        Column("g", Kind.CATEGORY, Categories(("a", "b"))),
    ]
    return Dataset(
        "t",
        {column.name: column for column in columns},
        Neighbours(neighbours),
        Protection.declare(level, fineness=FINENESS),
        min_epsilon=Fraction(1, 1000),
        check=Fraction(1, 5),
    )


def make_table(records: int, highest: int, seed: int) -> dict[str, list[Any]]:
    """Many ties, some NULL."""
    rng = random.Random(seed)
    values = [*range(highest + 1), highest // 2, highest // 2]
    return {
        "x": [rng.choice([*values, None]) for _ in range(records)],
        "y": [rng.choice(values) for _ in range(records)],
        "g": [rng.choice(["a", "a", "b", None]) for _ in range(records)],
    }


def quieten(plan: Plan, reach: int) -> Plan:
    """The plan with checks that tell the truth."""
    check = DistanceCheck(QUIET, reach)
    aggregates = tuple(replace(aggregate, check=check if aggregate.check else None) for aggregate in plan.aggregates)
    return replace(plan, aggregates=aggregates)


def compare(engine: Engine, dataset: Dataset, table: dict[str, list[Any]], reach: int, draws: int, **how: Any) -> None:
    """Each s of several draws is that of the answer."""
    held = pa.table({name: pa.array(table[name], pa.int64() if name != "g" else pa.string()) for name in table})
    seen = set()
    with engine.open(held, dataset) as backend:
        for sql in QUESTIONS if str(engine) != "spark" else QUESTIONS[2:]:
            plan = quieten(make_plan(read(sql, {"t": dataset}), dataset, 2), reach)
            assert all((aggregate.check is not None) == can_check(aggregate) for aggregate in plan.aggregates)
            with backend.open_snapshot(plan) as snapshot:
                assert snapshot.summaries == reference(plan, table)
            for seed in range(draws):
                drawn = draw_table(plan, backend, source=SeededSource(seed))
                for (values, rows), answers, told in zip(
                    select_values(plan, table), drawn.cells, drawn.checks, strict=True
                ):
                    for i, aggregate in enumerate(plan.aggregates):
                        answer = answers[i]
                        assert (answer is None or aggregate.check is None) == (told[i] is None)
                        if told[i] is not None and answer is not None:
                            point = Fraction(answer) * aggregate.statistic.resolution(FINENESS)
                            assert told[i] == expect(aggregate, values[i], rows, point, **how)
                            seen.add(told[i])
    assert len(seen) > 3


def expect(aggregate: Aggregate, values: Sequence[int], rows: int, point: Fraction, *, tried: bool) -> int:
    if tried:
        return try_changes(aggregate, tuple(values), rows, point)
    moves = find_moves(aggregate, len(values), rows)
    everything = summarise(values, Everything(aggregate.statistic), aggregate.grid, moves, 0)
    assert aggregate.check is not None
    return aggregate.check.measure(aggregate.statistic, everything, point, FINENESS)


class Everything(Reading):
    """All ranks, and whatever a statistic needs besides."""

    def __init__(self, statistic: Statistic) -> None:
        self.needs_sums = statistic.needs_sums  # type: ignore[misc]

    def ranks(self, moves: Any, distance: int) -> list[tuple[int, int]]:
        return [(1, moves.size)]


def try_changes(aggregate: Aggregate, values: tuple[int, ...], rows: int, point: Fraction) -> int:
    """s by trying every table within reach."""
    assert aggregate.check is not None
    envelope = envelop(replace(aggregate, label="", check=None), values, rows, aggregate.check.reach)
    for distance, (low, high) in enumerate(envelope):
        if low <= point <= high:
            above = point > envelope[0][1]
            return 0 if distance == 0 else 2 * distance - 1 if above else 1 - 2 * distance
    return (2 * aggregate.check.reach - 1) * (1 if point > envelope[0][1] else -1)


@cache
def envelop(aggregate: Aggregate, values: tuple[int, ...], rows: int, reach: int) -> list[tuple[Any, Any]]:
    statistic, grid = aggregate.statistic, aggregate.grid
    assert grid.lower is not None
    assert grid.upper is not None
    tables = Space(
        [Table(values, 0 if aggregate.whole else rows - len(values))],
        notion=aggregate.neighbours,
        selection=not aggregate.whole,
        domain=(grid.lower, grid.upper),
        bounded=True,
        reach=reach,
    )
    low, high = map(float, statistic.range(grid))
    (tried,) = tables.envelopes(statistic.define, (low, high)).values()
    return [(statistic.place(least, FINENESS), statistic.place(most, FINENESS)) for least, most in tried]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("level", ["individual", "differential"])
def test_what_is_told_is_how_far_off_the_answer_is(quick_engine: Engine, level: str, neighbours: str) -> None:
    """Up to four changes of eight records, all of them tried."""
    dataset = declare(level, neighbours, HIGHEST)
    compare(quick_engine, dataset, make_table(8, HIGHEST, 1), 4, 4, tried=neighbours == "replace")


def test_so_it_is_on_every_engine(engine: Engine) -> None:
    """Nothing but what is drawn differs between levels and notions, and a query takes Spark seconds."""
    compare(engine, declare("individual", "replace", HIGHEST), make_table(8, HIGHEST, 1), 4, 1, tried=True)


@pytest.mark.parametrize("level", ["individual", "differential"])
def test_large_tables_are_read_as_far_as_checks_need(quick_engine: Engine, level: str) -> None:
    for neighbours in ("replace", "add-remove"):
        dataset = declare(level, neighbours, 500)
        compare(quick_engine, dataset, make_table(600, 500, 2), 40, 4, tried=False)
