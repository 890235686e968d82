"""A plan in two rounds: sums of values clipped to limits drawn after the first, of the same state of the data."""

from __future__ import annotations

import datetime
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.core.calibration import Level, Protection
from idios.core.domain import LIMIT, Kind
from idios.core.neighbours import Neighbours
from idios.core.statistics import Count, Mean, Median, Sum, Variance
from idios.data.backend import Backend, CancellationToken, Cancelled, open_source
from idios.data.connection_pool import AT_ONCE, Connection
from idios.errors import InvalidInput, SourceError
from idios.expressions.predicates import NEVER, Among
from idios.plan.planner import make_plan
from idios.plan.question import Plan
from idios.sql.reader import read
from tests.conformance import hostile
from tests.conformance.engines import SPARK, Engine, PostgresqlEngine
from tests.conformance.plans import by, dataset, number, of_kind, plan, whole
from tests.conformance.reference import Table, clipped_reference, find_moves, reference, select_values, summarise
from tests.conformance.test_every_value import REFUSED_BY_TYPE, columns, data_set, keep, meant
from tests.conformance.test_interrupts import Slowed
from tests.conformance.test_statistics import AGE, INCOME, REGION, SCORE, TYPES, made
from tests.waiting import until

Pair = tuple[int, int]

DATA = dataset(whole("n"))
VALUES = list(range(-100, 901))
TABLE = pa.table({"n": pa.array(VALUES, pa.int64())})
TWICE = plan(DATA, (Sum(), "n"), (Variance(), "n"))
DRAWN: dict[int, list[Pair]] = {0: [(-10, 50)], 1: [(0, 7)]}


def same(backend: Backend, asked: Plan, table: Table, limits: dict[int, list[Pair]]) -> None:
    """Both rounds are what Python finds."""
    with backend.open_snapshot(asked) as snapshot:
        assert snapshot.summaries == reference(asked, table)
        assert snapshot.sum_clipped(limits) == clipped_reference(asked, table, limits)


def drawn(asked: Plan, seed: int) -> dict[int, list[Pair]]:
    """Limits for every aggregate of a column, others in every cell: narrow, wide, single points, beyond all data."""
    draw = random.Random(seed)
    kinds: list[Callable[[], Pair]] = [
        lambda: (-50, draw.randrange(-50, 60)),
        lambda: (draw.randrange(0, 30), 10**5),
        lambda: (7, 7),
        lambda: (-(2**70), 2**70),
        lambda: (10**6, 10**7),
        lambda: (-(2**70), -(2**65)),
        lambda: (LIMIT, LIMIT),
        lambda: (-LIMIT, 0),
    ]
    return {
        i: [draw.choice(kinds)() for _ in asked.cells]
        for i, aggregate in enumerate(asked.aggregates)
        if aggregate.column is not None
    }


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_clipped_sums_in_every_shape(engine: Engine, neighbours: str) -> None:
    """NULL, NaN, infinities, values out of bounds; cells that are empty, and cells with limits of their own."""
    table, data = made(300, seed=1), dataset(AGE, SCORE, INCOME, REGION, neighbours=neighbours)
    everything = [(s, name) for name in ("age", "score", "income") for s in (Sum(), Mean(), Variance())]
    some = Among("age", ((10, 20), (33, 33), (50, None)))
    shapes = [
        plan(data, *everything, (Count(), None)),
        plan(data, *everything, where=some),
        plan(data, *everything, (Count(), None), groups=[by(REGION)]),
        plan(data, (Sum(), "income"), (Variance(), "age"), where=some, groups=[by(REGION), by(AGE, 25)]),
        plan(data, *everything, where=NEVER),
    ]
    if str(engine) == "spark" and neighbours == "add-remove":
        shapes = shapes[1:2]  # nothing differs but the moves, and a query takes seconds
    with engine.open(pa.table(table), data) as backend:
        for seed, shape in enumerate(shapes):
            same(backend, unbounded(shape), table, drawn(shape, seed))


def unbounded(asked: Plan) -> Plan:
    """The plan with nothing but a median read at first, as where the bounds of a sum are drawn."""
    return replace(
        asked,
        aggregates=tuple(
            replace(aggregate, choice=replace(aggregate.choice, reading=Median()))
            if aggregate.column is not None
            else aggregate
            for aggregate in asked.aggregates
        ),
    )


@pytest.mark.parametrize("seed", range(12))
def test_small_random_tables(quick_engine: Engine, seed: int) -> None:
    table, data = made(seed * 2, seed + 50), dataset(AGE, SCORE, INCOME, REGION)
    everything = [(s, name) for name in ("age", "score", "income") for s in (Sum(), Variance())]
    with quick_engine.open(pa.table(table, schema=TYPES), data) as backend:
        for groups in ([], [by(REGION)], [by(AGE, 30)]):
            asked = unbounded(plan(data, *everything, groups=groups))
            for times in range(4):
                same(backend, asked, table, drawn(asked, 100 * seed + times))


POOLED = [
    "SELECT region, SUM(income), AVG(income) FROM people GROUP BY region",
    "SELECT region, STDDEV(income), SUM(score) FROM people WHERE age < 80 GROUP BY region",
    "SELECT region, BIN(age, 30), AVG(score), COUNT(*) FROM people WHERE NOT region = 'north' GROUP BY 1, 2",
]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_limits_are_read_from_the_records_of_all_cells(quick_engine: Engine, neighbours: str) -> None:
    """Every cell's values are among what shared limits are drawn from, each once, and no others."""
    score, income = number("score", "0.5"), number("income", "0.01")
    data = dataset(whole("age", (0, 120)), score, income, REGION, neighbours=neighbours)
    data = replace(data, protection=Protection(Level.DIFFERENTIAL), min_epsilon=Fraction(1, 1000))
    table = made(200, 3)
    with quick_engine.open(pa.table(table, schema=TYPES), data) as backend:
        for sql in POOLED:
            asked = make_plan(read(sql, {"people": data}), data, 1)
            assert asked.pool is not None
            clipped = [place for place, a in enumerate(asked.aggregates) if a.choice.clipping]
            cells = [cell for cell, _ in select_values(asked, table)]
            with backend.open_snapshot(asked) as snapshot:
                for pooled, a, place in zip(snapshot.pooled, asked.pool.aggregates, clipped, strict=True):
                    fullest = max(range(len(cells)), key=lambda number: len(cells[number][place]))
                    for left_out in (None, fullest):
                        used = [cell for number, cell in enumerate(cells) if number != left_out]
                        values = sorted(value for cell in used for value in cell[place])
                        assert len(values) > 10
                        moves = find_moves(a, len(values), 200)
                        assert (pooled == summarise(values, a.reading, a.grid, moves, a.distance)) == (left_out is None)
                limits = {place: [(-7, 90)] * len(cells) for place in clipped}
                assert snapshot.sum_clipped(limits) == clipped_reference(asked, table, limits)


def test_nothing_but_nulls_and_what_stands_in_for_them(engine: Engine) -> None:
    """A missing value of a column that is not nullable is its public point, and is clipped like any other."""
    age = whole("age", (18, 120), nullable=False)
    data = dataset(age, SCORE, number("income", "0.01", nullable=False), REGION)
    table: Table = {"age": [None] * 4, "score": [None] * 4, "income": [None] * 4, "region": ["north", "south"] * 2}
    asked = plan(data, *((s, name) for name in ("age", "score", "income") for s in (Sum(), Variance())))
    grouped = plan(data, (Mean(), "age"), (Mean(), "score"), groups=[by(REGION)])
    with engine.open(pa.table(table, schema=TYPES), data) as backend:
        same(backend, asked, table, {0: [(20, 30)], 1: [(0, 5)], 2: [(-5, 5)], 3: [(3, 3)], 4: [(1, 9)], 5: [(-9, -4)]})
        same(backend, grouped, table, {0: [(18, 40), (30, 31), (0, 1), (5, 7)], 1: [(1, 2)] * 4})


def test_dates_timestamps_and_decimals(engine: Engine) -> None:
    columns = of_kind(Kind.DATE, "d"), of_kind(Kind.TIMESTAMP, "t", 1000), of_kind(Kind.DECIMAL, "x", "0.25")
    data, day = dataset(*columns), datetime.date(1970, 1, 1)
    table: Table = {
        "d": [day + datetime.timedelta(days=i * 37) for i in range(-20, 20)] + [None],
        "t": [datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=i * 777_777) for i in range(40)] + [None],
        "x": [Decimal(i * i) / 8 - 20 for i in range(40)] + [None],
    }
    types = pa.schema([("d", pa.date32()), ("t", pa.timestamp("us")), ("x", pa.decimal128(12, 3))])
    asked = plan(data, *((s, name) for name in "dtx" for s in (Mean(), Variance())))
    with engine.open(pa.table(table, schema=types), data) as backend:
        same(backend, unbounded(asked), table, {i: [(-100 + i, 300 * i)] for i in range(6)})


LIMITS: list[Pair] = [
    (-LIMIT, LIMIT),
    (-(2**80), 2**80),
    (-5, 7),
    (3, 3),
    (0, LIMIT - 1),
    (-LIMIT, -LIMIT),
    (2**63, 2**64),
    (-(2**64), -(2**63)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "place"),
    [
        pytest.param(engine, i, id=f"{engine} {case.type}", marks=SPARK.marks if engine == "spark" else [])
        for engine, cases in hostile.ENGINES.items()
        for i, case in enumerate(cases)
        if case.kinds != (Kind.CATEGORY,) and case.type not in REFUSED_BY_TYPE
    ],
    indirect=["engine"],
)
def test_every_value_of_every_type(engine: Engine, place: int) -> None:
    """Sums that only Python's integers hold: all ends of a type at once, in eight ways to clip them."""
    case = hostile.ENGINES[str(engine)][place]
    source, read = keep(engine, case), 0
    for kind in case.kinds:
        for column in columns(kind)[: 1 if str(engine) == "spark" else None]:
            data = data_set(column)
            asked = unbounded(plan(data, *((s, "x") for s in (Sum(), Variance()) for _ in LIMITS)))
            try:
                backend = open_source(source, data)
            except SourceError:
                continue  # by its type alone
            with backend:
                limits = {i: [pair] for i, pair in enumerate([*LIMITS, *LIMITS])}
                same(backend, asked, meant(case, kind), limits)
            read += 1
    assert read


def test_what_is_read_and_the_notion_are_the_aggregates_own(quick_engine: Engine) -> None:
    asked = plan(DATA, (Sum(), "n"), (Mean(), "n"))
    first, second = unbounded(asked).aggregates
    asked = replace(asked, aggregates=(first, replace(second, neighbours=Neighbours.ADD_REMOVE)))
    with quick_engine.open(TABLE, DATA) as backend:
        [[summed, averaged]] = backend.summarise(asked)
        assert summed.total is None
        assert summed.windows
        assert averaged.moves.neighbours is Neighbours.ADD_REMOVE
        same(backend, asked, {"n": VALUES}, DRAWN)


def test_limits_must_fit_the_plan(duckdb_engine: Engine) -> None:
    with duckdb_engine.open(TABLE, DATA) as backend, backend.open_snapshot(TWICE) as snapshot:
        assert snapshot.sum_clipped({}) == {}
        with pytest.raises(InvalidInput, match="reversed"):
            snapshot.sum_clipped({0: [(5, 4)]})
        with pytest.raises(SourceError, match="failed"):
            snapshot.sum_clipped({0: []})


def test_one_query_answers_for_all_cells_and_aggregates(duckdb_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataset(AGE, REGION)
    table = {"age": list(range(100)), "region": ["north", "south", "east", None] * 25}
    asked = plan(data, (Sum(), "age"), (Variance(), "age"), groups=[by(REGION)])
    fetched: list[object] = []
    fetch = Connection.fetch
    with duckdb_engine.open(pa.table(table), data) as backend, backend.open_snapshot(asked) as snapshot:
        monkeypatch.setattr(Connection, "fetch", lambda *given: (fetched.append(given[1]), fetch(*given))[1])
        snapshot.sum_clipped(drawn(asked, 3))
    assert len(fetched) == 1


def test_steps_of_both_rounds_are_told() -> None:
    told: list[tuple[str, float]] = []
    cancellation = CancellationToken(lambda step, share: told.append((step, share)))
    with open_source({"n": VALUES}, DATA) as backend, backend.open_snapshot(TWICE, cancellation) as snapshot:
        snapshot.sum_clipped(DRAWN)
    assert "adding up" in dict(told)
    assert told[-1] == ("summarised", 1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)


def test_the_second_round_is_stopped_while_it_runs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine.open(TABLE, DATA) as backend, ThreadPoolExecutor(1) as pool:
        slowed = Slowed(backend, monkeypatch)
        cancellation, ready = CancellationToken(), []

        def ask() -> None:
            with backend.open_snapshot(TWICE, cancellation) as snapshot:
                ready.append(snapshot.summaries)
                slowed.slow_ones.add(cancellation)
                snapshot.sum_clipped(DRAWN)

        running = pool.submit(ask)
        until(lambda: cancellation in slowed.running)
        cancellation.cancel()
        with pytest.raises(Cancelled):
            running.result(60.0)
        assert ready
        same(backend, TWICE, {"n": VALUES}, DRAWN)


def test_a_question_cancelled_between_the_rounds_reads_no_more(quick_engine: Engine) -> None:
    with quick_engine.open(TABLE, DATA) as backend:
        for _ in range(AT_ONCE + 1):  # each gives its connection back
            with pytest.raises(Cancelled):
                ask_and_cancel(backend)
        same(backend, TWICE, {"n": VALUES}, DRAWN)


def ask_and_cancel(backend: Backend) -> None:
    cancellation = CancellationToken()
    with backend.open_snapshot(TWICE, cancellation) as snapshot:
        cancellation.cancel()
        snapshot.sum_clipped(DRAWN)
        raise AssertionError("a second round was read")


def test_the_callers_own_error_passes_and_the_connection_is_given_back(quick_engine: Engine) -> None:
    with quick_engine.open(TABLE, DATA) as backend:
        for _ in range(AT_ONCE + 1):
            with pytest.raises(ZeroDivisionError), backend.open_snapshot(TWICE):
                raise ZeroDivisionError
        same(backend, TWICE, {"n": VALUES}, DRAWN)


def test_an_engines_error_in_the_second_round_is_ours(quick_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> object:
        raise RuntimeError("a value: 900")

    with quick_engine.open(TABLE, DATA) as backend:
        with backend.open_snapshot(TWICE) as snapshot, monkeypatch.context() as patched:
            patched.setattr(Connection, "fetch", fails)
            with pytest.raises(SourceError, match="reading 'people' failed") as raised:
                snapshot.sum_clipped(DRAWN)
            assert "900" not in str(raised.value)
        same(backend, TWICE, {"n": VALUES}, DRAWN)


# Somebody writes between the rounds.


def test_postgresql_does_not_show_what_is_written_between_the_rounds(postgresql_engine: PostgresqlEngine) -> None:
    write = postgresql_engine.connection.execute
    write("CREATE TABLE rounds AS SELECT n FROM generate_series(-100, 900) AS n")
    with open_source(f"{postgresql_engine.url}?table=rounds", DATA) as backend:
        with backend.open_snapshot(TWICE) as snapshot:
            write("UPDATE rounds SET n = 5")
            assert snapshot.sum_clipped(DRAWN) == clipped_reference(TWICE, {"n": VALUES}, DRAWN)
            write("INSERT INTO rounds VALUES (8)")
            assert snapshot.sum_clipped(DRAWN) == clipped_reference(TWICE, {"n": VALUES}, DRAWN)
        same(backend, TWICE, {"n": [5] * len(VALUES) + [8]}, DRAWN)


WRITER = "import sys, duckdb; duckdb.connect(sys.argv[1]).execute('INSERT INTO t VALUES (1000)')"


def test_a_duckdb_file_is_locked_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(-100, 901)")
    with open_source(f"{path}::t", DATA) as backend, backend.open_snapshot(TWICE) as snapshot:
        writer = subprocess.run([sys.executable, "-c", WRITER, str(path)], capture_output=True, check=False)
        assert writer.returncode
        assert snapshot.sum_clipped(DRAWN) == clipped_reference(TWICE, {"n": VALUES}, DRAWN)


@pytest.mark.parametrize("values", [[*VALUES, 1000], VALUES[1:], []])
def test_a_file_that_was_replaced_between_the_rounds_is_noticed(
    values: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an engine has no snapshots, a selection of another size is refused; a file that is kept is its own."""
    path = tmp_path / "kept.parquet"
    pq.write_table(TABLE, path)
    with open_source(path, DATA) as backend, backend.open_snapshot(TWICE) as snapshot:
        pq.write_table(pa.table({"n": pa.array(values, pa.int64())}), path)
        assert snapshot.sum_clipped(DRAWN) == clipped_reference(TWICE, {"n": VALUES}, DRAWN)
    monkeypatch.setattr("idios.data.engines.duckdb.KEPT", 0)
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    with open_source(path, DATA) as backend, backend.open_snapshot(TWICE) as snapshot:
        pq.write_table(pa.table({"n": pa.array(values, pa.int64())}), path)
        with pytest.raises(SourceError, match="changed while it was being read"):
            snapshot.sum_clipped(DRAWN)
