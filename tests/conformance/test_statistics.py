"""Every statistic, both notions of neighbour, whole tables, filters, groups, missing values: one answer everywhere."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from idios.core.calibration import Choice, Method
from idios.core.domain import Domain, Kind
from idios.core.statistics import STATISTICS, Count, DistinctCount, KthSmallest, Median, Mode
from idios.core.summary import Summary
from idios.data.backend import Backend
from idios.declare.schema import Dataset
from idios.expressions.predicates import NEVER, Among, And, Or
from idios.plan.question import Plan
from tests.conformance.engines import Engine
from tests.conformance.plans import by, category, dataset, number, plan, whole
from tests.conformance.reference import Table, reference

EXAMPLES = [statistic.examples()[0] for statistic in STATISTICS]
ALL = [example for example in EXAMPLES if Kind.INTEGER in example.kinds]
ROBUST = [example for example in ALL if example.missing_bound(Domain(), 1) is None]
"""What can be asked of a column without bounds."""
CATEGORICAL = [(example, "region") for example in EXAMPLES if Kind.CATEGORY in example.kinds]

AGE = whole("age", (0, 120), nullable=False)
SCORE = whole("score", (-900, 800))
INCOME = number("income", "0.01")
REGION = category("region", "north", "south", "nowhere", "east")
COLUMNS = (AGE, SCORE, INCOME, REGION)


def made(n: int, seed: int) -> Table:
    """A table with ties, NULLs, values out of bounds, undeclared categories, NaN, infinities and −0.0."""
    draw = random.Random(seed)
    odd = (None, math.nan, math.inf, -math.inf, -0.0, 0.005, -0.005, 1e-300)
    return {
        "age": [draw.randrange(0, 110) for _ in range(n)],
        "score": [draw.choice((None, draw.randrange(-1000, 1000), 7)) for _ in range(n)],
        "income": [draw.choice((*odd, draw.gauss(0, 1), draw.lognormvariate(5, 2))) for _ in range(n)],
        "region": [draw.choice(("north", "south", "east", "North", "", "west", None)) for _ in range(n)],
    }


def plans(data: Dataset) -> dict[str, Plan]:
    """One plan of each shape."""
    everything = [(s, name) for name in ("age", "score") for s in ALL]
    robust = [(s, "income") for s in ROBUST]
    some = Or((Among("income", ((None, 2000),), nulls=True), And((Among("region", ((1, 1), (3, 3))),))))
    return {
        "whole": plan(data, *everything, *robust, *CATEGORICAL, (Count(), None)),
        "filtered": plan(
            data, *everything, *robust, (Count(), None), where=Among("age", ((10, 20), (33, 33), (50, None)))
        ),
        "grouped": plan(data, *everything, *CATEGORICAL, (Count(), None), groups=[by(REGION)], distance=3),
        "binned": plan(data, *robust, (Count(), "region"), groups=[by(REGION), by(AGE, 25)], distance=2, where=some),
        "nothing": plan(data, *everything, *CATEGORICAL, (Count(), None), where=NEVER),
    }


def same(backend: Backend, asked: Plan, table: Table) -> None:
    """Summaries are what Python finds, and so are the envelopes that statistics read from them."""
    found, expected = backend.summarise(asked), reference(asked, table)
    for cell, cell_found, cell_expected in zip(asked.cells, found, expected, strict=True):
        for aggregate, seen, wanted in zip(asked.aggregates, cell_found, cell_expected, strict=True):
            assert seen == wanted, (cell, aggregate.label, aggregate.column)
            distance = aggregate.choice.distance
            assert aggregate.statistic.envelope(seen, distance) == aggregate.statistic.envelope(wanted, distance)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_every_statistic_in_every_shape(engine: Engine, neighbours: str) -> None:
    table, data = made(300, seed=1), dataset(*COLUMNS, neighbours=neighbours)
    with engine.open(pa.table(table), data) as backend:
        shapes = plans(data)
        if str(engine) == "spark" and neighbours == "add-remove":
            shapes = {"filtered": shapes["filtered"]}  # nothing differs but the moves, and a query takes seconds
        for asked in shapes.values():
            same(backend, asked, table)


TYPES = pa.schema([("age", pa.int64()), ("score", pa.int64()), ("income", pa.float64()), ("region", pa.string())])


@pytest.mark.parametrize("n", [0, 1])
def test_tiny_tables(engine: Engine, n: int) -> None:
    table, data = made(n, seed=n), dataset(*COLUMNS)
    with engine.open(pa.table(table, schema=TYPES), data) as backend:
        assert backend.rows() == n
        for shape in ("whole", "grouped"):
            same(backend, plans(data)[shape], table)


def test_nothing_but_nulls(engine: Engine) -> None:
    table: Table = {"age": [5] * 4, "score": [None] * 4, "income": [math.nan] * 4, "region": ["Nowhere"] * 4}
    data = dataset(*COLUMNS)
    with engine.open(pa.table(table, schema=TYPES), data) as backend:
        for shape in ("whole", "grouped"):
            same(backend, plans(data)[shape], table)


@pytest.mark.parametrize("seed", range(10))
def test_small_random_tables(quick_engine: Engine, seed: int) -> None:
    neighbours = ("replace", "add-remove")[seed % 2]
    table, data = made(1 + seed * 3, seed + 100), dataset(*COLUMNS, neighbours=neighbours)
    with quick_engine.open(pa.table(table, schema=TYPES), data) as backend:
        for asked in plans(data).values():
            same(backend, asked, table)


def test_what_a_column_that_is_not_nullable_misses_is_a_public_point(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """The clamp of 0, or the first category: whole tables, selections and cells have the records they should."""
    age, income = whole("age", (18, 120), nullable=False), number("income", "0.01", nullable=False)
    region = category("region", "north", "south", nullable=False)
    data = dataset(age, income, region, whole("score"))
    table: Table = {
        "age": [50, None, 70, None, 19],
        "score": [1, 2, 3, 4, None],
        "income": [1.0, None, math.nan, math.inf, -7.5],
        "region": ["south", "nowhere", None, "north", "south"],
    }
    with engine.open(pa.table(table, schema=TYPES), data) as backend:
        for asked in (
            plan(data, (Median(), "age"), (KthSmallest(1), "age"), (Median(), "income"), (Count(), None), distance=5),
            plan(data, (Median(), "age"), (Count(), "income"), where=Among("score", ((1, 3),)), distance=5),
            plan(data, (Count(), None), (Median(), "income"), groups=[by(region)], distance=5),
            plan(
                data, (Mode(), "region"), (DistinctCount(), "region"), (Count(), None), where=Among("age", ((18, 18),))
            ),
        ):
            same(backend, asked, table)
        found = {column.name: column.nulls for column in backend.check().columns}
    assert found == {"age": 2, "income": 3, "region": 2, "score": 1}
    told = [record.getMessage() for record in caplog.records if record.name == "idios.controller"]
    assert len(told) == 3, "each column once"
    assert not any("7" in line for line in told)


def test_an_exact_count_follows_no_record(quick_engine: Engine) -> None:
    """Where a declaration is untrue, the number of records is told, and nothing that was counted."""
    only = category("only", "a", nullable=False)
    data = dataset(only)
    with quick_engine.open(pa.table({"only": ["a", "b", None, "a"]}), data) as backend:
        asked = plan(data, (Count(), None), groups=[by(only)])
        exact = replace(asked.aggregates[0], whole=True, choice=Choice(Method.EXACT, 0, Fraction(1)))
        [[summary]] = backend.summarise(replace(asked, aggregates=(exact,)))
    assert isinstance(summary, Summary)
    assert summary.moves.size == 4
