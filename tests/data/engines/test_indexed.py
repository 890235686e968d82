"""Order statistics by an index: the same as without it, whatever the values, and without reading the table."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from idios.answer.release import calibrate_plan
from idios.core.calibration import Protection, choose
from idios.core.distance_check import DistanceCheck
from idios.core.domain import Kind
from idios.core.statistics import (
    Count,
    DiscreteQuantile,
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Median,
    Minimum,
    Quantile,
    Statistic,
)
from idios.core.summary import Summary
from idios.data.backend import open_source
from idios.data.engines import indexed, sql_backend
from idios.data.engines.indexed import IndexedColumn, cut_to_ends
from idios.data.sql.selection import SelectStatement
from idios.declare.schema import Column, Dataset
from idios.expressions.predicates import Among, Predicate
from idios.plan.question import Plan
from tests.conformance.plans import by, dataset, number, of_kind, plan, whole
from tests.conformance.reference import reference

with suppress(ImportError):  # the tests that need the driver are skipped without it
    import psycopg

    from idios.data.engines.postgresql import PostgresqlBackend, PostgresqlConnection

INDEXED = IndexedColumn("x", "x IS NOT NULL", "x IS NULL")
Values = Sequence[int | None]


def ask(data: Dataset, column: str, *statistics: Statistic, epsilon: int = 1) -> Plan:
    """A plan with the mechanisms that the planner would choose."""
    asked = plan(data, *((statistic, column) for statistic in statistics))
    part = Fraction(epsilon, len(statistics))
    aggregates = [
        replace(
            a,
            epsilon=part,
            choice=choose(a.statistic, a.grid, data.neighbours, a.whole, data.protection, part, size=None),
        )
        for a in asked.aggregates
    ]
    return replace(asked, aggregates=tuple(aggregates))


def law(asked: Plan, values: Values) -> object:
    return calibrate_plan(asked, reference(asked, {"x": values}))


def number_kept(asked: Plan) -> int:
    cut = cut_to_ends(asked, {"x": INDEXED}, "t")
    assert cut is not None
    return int(cut.rpartition("LIMIT ")[2].partition(")")[0])


def cut(asked: Plan, values: Values, kept: int) -> list[int | None]:
    """What the query keeps."""
    greatest = isinstance(asked.aggregates[0].statistic, KthLargest)
    given = sorted((v for v in values if v is not None), reverse=greatest)
    return [*given[:kept], *[v for v in values if v is None][:kept]]


def declared(bounds: Sequence[object] | None, nullable: bool, neighbours: str, protection: Protection) -> Dataset:
    return replace(dataset(whole("x", bounds, nullable=nullable), neighbours=neighbours), protection=protection)


def test_the_lemma_by_enumeration() -> None:
    """All small tables: fitted noise for one and for several statistics, single records and groups."""
    levels = (Protection.declare("individual"), Protection.declare("group", group=2))
    questions: list[tuple[Statistic, ...]] = [(KthLargest(2),), (Maximum(), KthLargest(3)), (KthSmallest(2), Minimum())]
    caught = shortened = 0
    for level, neighbours, nullable, statistics in product(levels, ("replace", "add-remove"), (True, False), questions):
        asked = ask(declared((-1, 2), nullable, neighbours, level), "x", *statistics)
        kept = number_kept(asked)
        for size, missing in product((0, 2, kept, kept + 2), (0, 1, kept + 1)):
            for values in list(combinations_with_replacement((-1, 0, 2), size))[::4]:
                table = [*values, *[None] * missing]
                short, whole_law = cut(asked, table, kept), law(asked, table)
                shortened += len(short) < len(table)
                assert law(asked, short) == whole_law, (statistics, level, neighbours, nullable, table)
                caught += law(asked, cut(asked, table, 2)) != whole_law  # an error that is planted
    assert shortened > 300
    assert caught > 300


def test_the_lemma_at_the_differential_level() -> None:
    """Searches from the end, and the inverse of the sensitivity, which look at hundreds of ranks."""
    draw, seen = random.Random(1), set()
    level = Protection.declare("differential")
    for statistic, bounds, neighbours in product(
        (KthLargest(1), KthLargest(30), KthSmallest(400), KthLargest(400)), ((0, 1000),), ("replace", "add-remove")
    ):
        asked = ask(declared(bounds, nullable=True, neighbours=neighbours, protection=level), "x", statistic, epsilon=2)
        seen.add(asked.aggregates[0].choice.method)
        kept = number_kept(asked)
        for size in (0, 3, kept - 1, kept, kept + 1, 2 * kept):
            values = [*(draw.randrange(1001) for _ in range(size)), *[None] * draw.choice((0, 1, 2 * kept))]
            assert law(asked, cut(asked, values, kept)) == law(asked, values)
    assert len(seen) == 2


def test_the_lemma_of_checks() -> None:
    """How many records off an answer is, which is looked at further than the answer itself."""
    check, draw = DistanceCheck(Fraction(1), reach=6), random.Random(2)
    for statistic, neighbours, nullable in product(
        (KthLargest(2), KthSmallest(3), Maximum()), ("replace", "add-remove"), (True, False)
    ):
        asked = ask(declared((0, 9), nullable, neighbours, Protection.declare("individual")), "x", statistic)
        asked = replace(asked, aggregates=(replace(asked.aggregates[0], check=check),))
        kept = number_kept(asked)
        for size in (0, 1, 2, kept - 1, kept, 2 * kept):
            values = [*(draw.randrange(10) for _ in range(size)), *[None] * draw.choice((0, 1, 2 * kept))]
            [[whole_table]] = reference(asked, {"x": values})
            [[short]] = reference(asked, {"x": cut(asked, values, kept)})
            for point in range(10):
                measured = (check.measure(statistic, each, Fraction(point), 1) for each in (whole_table, short))
                assert len(set(measured)) == 1, (statistic, values, point)


def test_what_is_not_cut() -> None:
    data = dataset(whole("x", (0, 9)), whole("y", (0, 9)))
    for asked in (
        plan(data, (Median(), "x")),
        plan(data, (KthLargest(2), "x"), (KthSmallest(2), "x")),
        plan(data, (KthLargest(2), "x"), (KthLargest(2), "y")),
        plan(data, (KthLargest(2), "x"), (Count(), None)),
        plan(data, (KthLargest(2), "x"), where=Among("x", ((1, 3),))),
        plan(data, (KthLargest(2), "x"), groups=[by(data.columns["y"])]),
        plan(data, (KthLargest(5000), "x")),
        plan(data, (KthLargest(2), "y")),
    ):
        assert cut_to_ends(asked, {"x": INDEXED}, "t") is None


@pytest.fixture(scope="module")
def base(postgresql_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA ordered; SET search_path = ordered")
        yield connection


ODD_NUMBERS = ("NaN", "Infinity", "-Infinity", "0", "-0.0", "0.005", "-0.005", "7", "7", "1e18", "-1e18")
ODD_DAYS = ("infinity", "-infinity", "1970-01-01", "1969-12-31", "1969-12-31", "0001-01-01", "9999-12-31")
ODD_TIMES = (*ODD_DAYS, "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000001", "2000-01-01 12:00:00.5")
TYPES: dict[str, tuple[str, tuple[str, ...], Kind, object, tuple[object, object]]] = {
    "f": ("float8", (*ODD_NUMBERS, "1e300", "-1e300", "1e-300"), Kind.NUMBER, "0.01", (-5, 500)),
    "r": ("float4", (*ODD_NUMBERS, "1e38"), Kind.NUMBER, "0.01", (-5, 500)),
    "d": ("numeric", (*ODD_NUMBERS, "1e400", "-1e400", "0.0050", "7.00"), Kind.DECIMAL, "0.01", (-5, 500)),
    "s": ("numeric(20,2)", ("NaN", "0", "0.01", "-0.01", "7", "1e17"), Kind.DECIMAL, "0.25", (-5, 500)),
    "i": ("integer", ("0", "-1", "7", "7", "2147483647", "-2147483648"), Kind.INTEGER, 3, (-6, 600)),
    "b": ("bigint", ("0", "7", "9223372036854775807", "-9223372036854775808"), Kind.INTEGER, 1, (-5, 500)),
    "t": ("boolean", ("true", "false"), Kind.INTEGER, 1, (0, 1)),
    "a": ("date", ("infinity", *ODD_DAYS), Kind.DATE, 1, (-20_000, 40_000)),
    "m": ("timestamp", ODD_TIMES, Kind.TIMESTAMP, 1000, (-(10**15), 10**15)),
    "y": ("timestamp", ODD_TIMES, Kind.DATE, 7, (-7000, 14_000)),
    "z": ("timestamptz", ODD_TIMES, Kind.TIMESTAMP, 1, (-(10**15), 10**15)),
}


def declare(name: str, bounded: bool, nullable: bool) -> Column:
    _, _, kind, step, bounds = TYPES[name]
    return replace(of_kind(kind, name, step, bounds if bounded else None), nullable=nullable)


def fill(base: psycopg.Connection, table: str, rows: int, odd: bool, missing: bool, draw: random.Random) -> None:
    """A table of every type, with an index of each column, in either direction."""
    base.execute(f"CREATE TABLE {table} ({', '.join(f'{name} {of[0]}' for name, of in TYPES.items())})")
    columns: list[list[str | None]] = []
    for name, (_, values, *_) in TYPES.items():
        usual = [v for v in values if v.lower().lstrip("-") not in ("nan", "infinity")]
        chosen: list[str | None] = [*(values if odd else usual), *[None] * missing]
        columns.append([draw.choice(chosen) for _ in range(rows)])
        base.execute(f"CREATE INDEX ON {table} ({name} {draw.choice(('ASC', 'DESC'))})")
    places = ", ".join(f"%s::{of[0]}" for of in TYPES.values())
    with base.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES ({places})", list(zip(*columns, strict=True)))
    base.execute(f"ANALYZE {table}")


def without_index(backend: PostgresqlBackend, asked: Plan) -> object:
    kept, backend._indexed = backend._indexed, {}
    try:
        return backend.summarise(asked)
    finally:
        backend._indexed = kept


@pytest.mark.slow
def test_the_same_with_and_without(
    base: psycopg.Connection, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every type with all odd values: ranks anywhere, ends, ranges; bounds or none, nullable or not."""
    monkeypatch.setattr(sql_backend, "SMALL", 0)
    monkeypatch.setattr(indexed, "VISIBLE", "TRUE")
    draw, walked = random.Random(5), 0
    inner: list[Statistic] = [Median(), Quantile(Fraction(1, 10)), DiscreteQuantile(Fraction(9, 10)), KthLargest(2)]
    for k, (rows, odd, missing) in enumerate(
        ((60, True, True), (40, False, False), (40, False, True), (1, True, True))
    ):
        fill(base, f"odd{k}", rows, odd, missing, draw)
        for bounded, nullable in product((True, False), repeat=2):
            data = dataset(
                *(declare(name, bounded, nullable) for name in TYPES), neighbours=draw.choice(("replace", "add-remove"))
            )
            with open_source(f"{postgresql_url}?table=ordered.odd{k}", data) as backend:
                assert isinstance(backend, PostgresqlBackend)
                assert set(backend._indexed) == set(TYPES)
                asked = [plan(data, *((s, name) for s in inner[:3]), (Count(), name), distance=2) for name in TYPES]
                asked += [
                    plan(data, (s, name), where=some(data, name)) for s in (inner[0], inner[3]) for name in "fbra"
                ]
                asked += [plan(data, (inner[0], "f"), (InterquartileRange(), "d"), (Count(), None))]
                for each in asked:
                    found, by_index = summarise(backend, each, monkeypatch)
                    walked += by_index
                    assert found == without_index(backend, each), (k, bounded, nullable, each)
                for name, statistic in product(TYPES, (KthLargest(2), KthSmallest(3))):
                    each = plan(data, (statistic, name))
                    assert backend.cut(each) is not None
                    found, expected = backend.summarise(each), without_index(backend, each)
                    assert calibrate_plan(each, found) == calibrate_plan(each, expected), (k, name, statistic)
    assert walked > 100


def some(data: Dataset, name: str) -> Predicate:
    return Among(name, ((-3, None),)) if data.columns[name].nullable else Among(name, ((None, 400),))


def summarise(
    backend: PostgresqlBackend, asked: Plan, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[list[Summary]], bool]:
    """The summaries, and whether the index gave them."""
    found: list[bool] = []
    with monkeypatch.context() as patch:
        walk = backend.find_ordered
        patch.setattr(backend, "find_ordered", lambda search: found.append(walk(search)) or found[-1])
        return backend.summarise(asked), found[-1]


def test_an_order_that_is_not_that_of_points_is_noticed(
    base: psycopg.Connection, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that is planted: NaN and infinities are taken for numbers."""
    monkeypatch.setattr(sql_backend, "SMALL", 0)
    monkeypatch.setattr(indexed, "VISIBLE", "TRUE")
    base.execute("CREATE TABLE planted (x float8); CREATE INDEX ON planted (x)")
    base.execute("INSERT INTO planted SELECT i FROM generate_series(1, 20) AS i")
    base.execute("INSERT INTO planted SELECT 'NaN' FROM generate_series(1, 9)")
    data = dataset(number("x", 1, (0, 10)))
    median, largest = plan(data, (Median(), "x")), plan(data, (KthLargest(2), "x"))
    with open_source(f"{postgresql_url}?table=ordered.planted", data) as backend:
        assert isinstance(backend, PostgresqlBackend)
        assert backend.summarise(median) == without_index(backend, median)
        backend._indexed = {"x": INDEXED}
        assert backend.summarise(median) != without_index(backend, median)
        assert calibrate_plan(largest, backend.summarise(largest)) != calibrate_plan(
            largest, without_index(backend, largest)
        )


def test_no_scan_and_no_sort(base: psycopg.Connection, postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    base.execute(
        "CREATE TABLE wide AS SELECT i * 0.01::float8 AS x, i::bigint AS n, repeat(md5(i::text), 8) AS note "
        "FROM generate_series(1, 60000) AS i"
    )
    base.execute("CREATE INDEX ON wide (x); CREATE INDEX ON wide (n)")
    base.execute("VACUUM ANALYZE wide")
    data = dataset(number("x", "0.01"), whole("n", nullable=False))
    run, texts = PostgresqlConnection.run, []

    def remember(self: PostgresqlConnection, statement: SelectStatement) -> object:
        texts.append(statement.text)
        return run(self, statement)

    with open_source(f"{postgresql_url}?table=ordered.wide", data) as backend:
        monkeypatch.setattr(PostgresqlConnection, "run", remember)
        for statistic, name in product((Median(), KthLargest(10), KthSmallest(2)), "xn"):
            [[found]] = backend.summarise(plan(data, (statistic, name)))
            assert found.windows[0].values
        [[found]] = backend.summarise(plan(data, (Median(), "x"), where=Among("x", ((100, 2000),))))
        assert found.size == 1901
    assert len(texts) >= 20
    for text in texts:
        for node in nodes(base.execute(f"EXPLAIN (FORMAT JSON) {text}").fetchone()[0][0]["Plan"]):
            reads = node.get("Relation Name") == "wide"
            assert not (reads and node["Node Type"] == "Seq Scan"), text
            assert node["Node Type"] != "Sort" or node["Plan Rows"] < 100, text


def nodes(node: dict[str, object]) -> Iterator[dict[str, object]]:
    yield node
    for child in json.loads(json.dumps(node.get("Plans", []))):
        yield from nodes(child)


def test_an_index_of_another_order_is_not_used(base: psycopg.Connection, postgresql_url: str) -> None:
    base.execute("CREATE TABLE other (a bigint, b bigint, c bigint, d bigint, e bigint, f bigint)")
    base.execute(
        "CREATE INDEX ON other (a NULLS FIRST); CREATE INDEX ON other (b) WHERE b > 3; CREATE INDEX ON other ((c + 1));"
        "CREATE INDEX ON other USING hash (d); CREATE INDEX ON other (f, e)"
    )
    with open_source(f"{postgresql_url}?table=ordered.other", dataset(*map(whole, "abcdef"))) as backend:
        assert isinstance(backend, PostgresqlBackend)
        assert set(backend._indexed) == {"f"}
