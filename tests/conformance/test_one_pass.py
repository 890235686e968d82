"""Sums of values without bounds in one pass: what lies beyond the drawn limits was read for drawing them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from idios.core.clipping import plan_clipping
from idios.core.statistics import Mean, Median, Statistic, Sum, Variance
from idios.data import summarise
from idios.data.connection_pool import Connection
from idios.data.engines import sql_backend
from idios.data.engines.duckdb import DuckDbBackend
from idios.data.engines.sql_backend import SqlBackend
from idios.data.sql.selection import HELD, SelectStatement
from idios.declare.schema import Column
from idios.expressions.predicates import Among
from idios.plan.question import Plan
from tests.conformance.engines import Engine
from tests.conformance.plans import dataset, number, plan, whole
from tests.conformance.reference import Table, clipped_reference, reference, select_values

N = 12_000
FAR = 2**63 - 1
draw = random.Random(11)
WILD = [draw.randrange(-(10**9), 10**9) for _ in range(N)]


def often(share: float, rare: int | None) -> list[int | None]:
    """Whole numbers of which some are another one."""
    return [rare if draw.random() < share else value for value in WILD]


COLUMNS = {
    whole("wild", nullable=False): WILD,
    whole("ascending"): sorted(WILD),
    whole("tied", nullable=False): [draw.choice((0, 0, 0, 1, 5, 9)) for _ in range(N)],
    whole("missing"): often(0.2, None),
    whole("far", nullable=False): [*WILD[7:], FAR, -FAR, -FAR, 2**62, 2**62 + 1, -(2**62), -(2**62) - 1],
    whole("few", (-(10**9) + 10**6, None), nullable=False): WILD,
    # not as they are held: a bracket ends where the grid does, or something stands in for NULL
    whole("beyond", nullable=False): often(0.6, FAR),
    whole("below", (0, None), nullable=False): WILD,
    whole("holes", nullable=False): often(0.001, None),
    number("real", "0.01", nullable=False): [math.nan if i % 999 == 0 else v / 7 for i, v in enumerate(WILD)],
}
TABLE: Table = {column.name: values for column, values in COLUMNS.items()}
ARROW = pa.table(TABLE)
BACKENDS: list[type[SqlBackend]] = [DuckDbBackend]
with suppress(ImportError):  # without its driver PostgreSQL is not asked
    from idios.data.engines.postgresql import PostgresqlBackend

    BACKENDS.append(PostgresqlBackend)
HELD_WHOLE = ["wild", "ascending", "tied", "missing", "far", "few"]


@pytest.fixture(autouse=True)
def _small_tables_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sql_backend, summarise):
        monkeypatch.setattr(module, "SMALL", 100)
    monkeypatch.setattr(sql_backend, "SAMPLED", 3_000)
    for backend in BACKENDS:
        monkeypatch.setattr(backend, "samplings", lambda *_: [])  # an even sample is never empty


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The text of all statements."""
    texts: list[str] = []
    fetch = Connection.fetch

    def record(self: Connection, statement: SelectStatement) -> pa.Table:
        texts.append(statement.text)
        return fetch(self, statement)

    monkeypatch.setattr(Connection, "fetch", record)
    return texts


def clipped(asked: Plan) -> Plan:
    """The plan with limits that are drawn, as the planner makes it."""
    aggregates = []
    for aggregate in asked.aggregates:
        planned = plan_clipping(
            aggregate.statistic, aggregate.grid, aggregate.neighbours, aggregate.whole, Fraction(1), N
        )
        aggregates.append(replace(aggregate, choice=replace(aggregate.choice, reading=planned)))
    return replace(asked, aggregates=tuple(aggregates))


def list_limits(values: list[int]) -> Iterator[tuple[int, int]]:
    """Limits that cut off few of the values, or none."""
    yield values[20], values[-20]
    yield values[0] - 1, values[-300]
    yield values[1], 2**70
    yield -(2**80), 2**80


def check(engine: Engine, columns: list[Column], asked: Plan, fetched: list[str]) -> list[str]:
    """Both rounds are what Python finds, and the second reads nothing, or one thing where most values are cut off."""
    table = {column.name: TABLE[column.name] for column in columns}
    ((cells, _),) = select_values(asked, table)
    with engine.open(pa.table(table), asked.dataset) as backend:
        fetched.clear()
        with backend.open_snapshot(asked) as snapshot:
            assert snapshot.summaries == reference(asked, table)
            first = list(fetched)
            for pairs in zip(*(list_limits(values) for values in cells), strict=True):
                limits = {i: [pair] for i, pair in enumerate(pairs)}
                assert snapshot.sum_clipped(limits) == clipped_reference(asked, table, limits)
            assert fetched == first
            limits = {i: [(values[-1000], values[-1000] + 5)] for i, values in enumerate(cells)}
            assert snapshot.sum_clipped(limits) == clipped_reference(asked, table, limits)
            assert len(fetched) == len(first) + any(values[0] < values[-1000] for values in cells)
    return first


@pytest.mark.slow
def test_every_column_by_itself(quick_engine: Engine, fetched: list[str]) -> None:
    for column in COLUMNS:
        for statistic in (Mean(), Sum(), Variance()) if column.name == "wild" else (Mean(),):
            data = dataset(column)
            texts = check(quick_engine, [column], clipped(plan(data, (statistic, column.name))), fetched)
            held = [HELD in text for text in texts if '"v0_sum"' in text]
            if column.name == "holes":
                assert held == [True, False], "what stands in for NULL is nowhere held"
            else:
                assert held == [column.name in HELD_WHOLE and statistic != Variance()], column.name


@pytest.mark.slow
def test_several_columns_and_filters(quick_engine: Engine, fetched: list[str]) -> None:
    columns = [column for column in COLUMNS if column.name in ("wild", "missing", "real")]
    everything: list[tuple[Statistic, str]] = [(s, column.name) for column in columns for s in (Mean(), Variance())]
    data = dataset(*columns, neighbours="add-remove")
    check(quick_engine, columns, clipped(plan(data, *everything)), fetched)
    some = Among("wild", ((-(10**8), None),))
    check(quick_engine, columns, clipped(plan(data, *everything[:3], where=some)), fetched)
    check(quick_engine, columns[:1], clipped(plan(dataset(columns[0]), (Sum(), "wild"), where=some)), fetched)


def test_small_tables(duckdb_engine: Engine, fetched: list[str]) -> None:
    """The second round reads nothing of them: all their values were read."""
    for size in (0, 1, 2, 40):
        table: Table = {"wild": WILD[:size]}
        data = dataset(whole("wild", nullable=False))
        asked = clipped(plan(data, (Mean(), "wild"), (Variance(), "wild")))
        arrow = pa.table({"wild": pa.array(WILD[:size], pa.int64())})
        with duckdb_engine.open(arrow, data) as backend, backend.open_snapshot(asked) as snapshot:
            assert snapshot.summaries == reference(asked, table)
            fetched.clear()
            for pair in ((-5, 5), (10**8, 10**9), (-(2**70), -(2**65))):
                limits = {0: [pair], 1: [pair]}
                assert snapshot.sum_clipped(limits) == clipped_reference(asked, table, limits)
    assert not fetched


def test_a_median_of_whole_numbers_is_read_as_it_is_held(quick_engine: Engine) -> None:
    for column in COLUMNS:
        data, table = dataset(column), {column.name: TABLE[column.name]}
        asked = plan(data, (Median(), column.name))
        with quick_engine.open(pa.table(table), data) as backend:
            assert backend.summarise(asked) == reference(asked, table)
