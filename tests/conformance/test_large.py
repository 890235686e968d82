"""Tables that are large enough for samples and brackets, in the orders that are worst for them."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pyarrow as pa
import pytest

from idios.core.statistics import (
    DiscreteQuantile,
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Mean,
    Median,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
)
from idios.data.connection_pool import Connection
from idios.data.engines import sql_backend
from idios.data.engines.sql_backend import SqlBackend
from idios.data.guesses import ColumnSample
from idios.data.queries import Queries
from idios.data.sql.selection import SelectStatement
from idios.expressions.predicates import Among
from tests.conformance.engines import DuckdbEngine, Engine
from tests.conformance.plans import by, category, dataset, number, plan, whole
from tests.conformance.reference import Table, reference
from tests.conformance.test_statistics import same

pytestmark = pytest.mark.slow

N = 100_000
draw = random.Random(7)
WILD = [draw.randrange(-(10**12), 10**12) for _ in range(N)]
TABLE: Table = {
    "ascending": sorted(WILD),
    "descending": sorted(WILD, reverse=True),
    "shuffled": WILD,
    "constant": [42] * N,
    "tied": [draw.choice((0, 0, 0, 1, 5, 5, 9, None, draw.randrange(10))) for _ in range(N)],
    "skewed": [int(draw.lognormvariate(3, 4)) for _ in range(N)],
    "part": [draw.choices("abcd", (90, 9, 0.9, 0.01))[0] for _ in range(N)],
}
ARROW = pa.table(TABLE)
NUMBERS = ("ascending", "descending", "shuffled", "constant", "tied", "skewed")
PART = category("part", "a", "b", "c", "d", "e")
DATA = dataset(*(whole(name, (-(10**13), 10**13)) for name in NUMBERS), PART)
ASKED: list[Statistic] = [
    Median(),
    Quantile(Fraction(1, 20)),
    DiscreteQuantile(Fraction(9, 10)),
    InterquartileRange(),
    KthSmallest(3),
    KthLargest(20),
    TrimmedMean(Fraction(1, 20)),
]


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_backend, "SAMPLED", 5_000)
    monkeypatch.setattr(sql_backend, "SAMPLED_A_CELL", 1_000)


def test_every_order_of_records(engine: Engine) -> None:
    few = slice(None, None, 2 if str(engine) == "spark" else 1)
    with engine.open(ARROW, DATA) as backend:
        same(backend, plan(DATA, *((s, name) for name in NUMBERS[few] for s in ASKED[few])), TABLE)


def test_filtered_and_grouped(engine: Engine) -> None:
    few = slice(None, None, 2 if str(engine) == "spark" else 1)
    some = [(s, name) for name in ("ascending", "tied", "skewed")[few] for s in ASKED[:5][few]]
    with engine.open(ARROW, DATA) as backend:
        same(backend, plan(DATA, *some, groups=[by(PART)]), TABLE)
        same(backend, plan(DATA, *some, where=Among("shuffled", ((0, None),))), TABLE)


def test_wide_windows(quick_engine: Engine) -> None:
    """The differential level reads thousands of ranks on both sides."""
    wide: list[Statistic] = [Median(), KthLargest(3), TrimmedMean(Fraction(1, 10)), Mean(), Sum()]
    with quick_engine.open(ARROW, DATA) as backend:
        for asked in (
            plan(DATA, *((s, name) for name in ("shuffled", "tied") for s in wide), distance=2000),
            plan(DATA, *((s, "skewed") for s in wide), groups=[by(PART)], distance=300),
        ):
            assert backend.summarise(asked) == reference(asked, TABLE)


def test_exact_sums_of_large_numbers(engine: Engine) -> None:
    edge = 2**62
    table: Table = {"x": [edge, edge, -edge, edge - 1, 1 - edge, edge] * 3000}
    data = dataset(whole("x", (-edge, edge), nullable=False))
    with engine.open(pa.table(table), data) as backend:
        same(backend, plan(data, (Sum(), "x"), (Mean(), "x"), (Variance(), "x"), (Median(), "x")), table)


def test_what_is_not_a_number_is_not_the_greatest(engine: Engine) -> None:
    """A file's statistics do not count NaN, and an engine that trusts them must not take it for a number."""
    table: Table = {"x": [math.nan if i % 100 == 0 else i / 7 for i in range(N)]}
    data = dataset(number("x", "0.01"))
    with engine.open(pa.table(table), data) as backend:
        same(backend, plan(data, (KthLargest(2), "x"), (KthSmallest(2), "x"), (Median(), "x")), table)


def test_ends_of_a_column_that_misses_what_it_cannot(engine: Engine) -> None:
    """What stands in for a missing value is in the middle of the order, where the source has nothing."""
    table: Table = {"x": [math.nan if i == 5 else None if i == 7 else float(i - 900) for i in range(N)]}
    data = dataset(number("x", 1, (-500, 10**9), nullable=False))
    with engine.open(pa.table(table), data) as backend:
        same(backend, plan(data, (Maximum(), "x"), (KthSmallest(2), "x")), table)
        same(backend, plan(data, (Maximum(), "x"), (Median(), "x")), table)


@pytest.mark.parametrize("rows", [300, N])
def test_only_summaries_leave_the_engine(quick_engine: Engine, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a small table a handful of numbers, of a large one what lies inside a narrow bracket.

    An engine in this process gives the values of a small one, each once: they do not leave the process.
    """
    with quick_engine.open(ARROW.slice(0, rows), DATA) as backend:
        fetch, left = Connection.fetch, 0

        def counting(self: Connection, statement: SelectStatement) -> pa.Table:
            nonlocal left
            found = fetch(self, statement)
            columns = (found[name].combine_chunks() for name in found.column_names)
            left += sum(len(c.flatten()) if pa.types.is_list(c.type) else len(c) for c in columns)
            return found

        monkeypatch.setattr(Connection, "fetch", counting)
        backend.summarise(plan(DATA, (Median(), "shuffled"), (KthLargest(2), "shuffled"), groups=[by(PART)]))
        grouped, left = left, 0
        backend.summarise(plan(DATA, (Median(), "shuffled"), (TrimmedMean(Fraction(1, 20)), "shuffled")))
        few = 120 if str(quick_engine) != "duckdb" else rows + 1
        assert left < (few if rows == 300 else rows // 3)
        assert grouped < (250 if rows == 300 else rows // 2)


MISLEADING = "(SELECT * FROM {table} WHERE shuffled > 900000000000) AS misleading"


def test_a_misleading_sample_costs_time_and_nothing_else(quick_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the quick sample lies, and the even one finds the way; then both lie, and sorting does."""
    searched: list[str] = []
    remember = Queries.sorted_windows

    def sorted_windows(self: Queries, name: str, *args: object, **options: object) -> object:
        searched.append(name)
        return remember(self, name, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Queries, "sorted_windows", sorted_windows)
    asked = plan(DATA, (Median(), "shuffled"), (TrimmedMean(Fraction(1, 5)), "shuffled"), (Median(), "tied"))
    for lies in (1, 2):
        with quick_engine.open(ARROW, DATA) as backend:
            assert isinstance(backend, SqlBackend)
            lie = [ColumnSample(MISLEADING.format(table=backend.table), 0.05)]
            monkeypatch.setattr(backend, "samplings", lambda share, rows, lie=lie: lie)
            if lies == 2:
                monkeypatch.setattr(backend, "_list_samples", lambda *_, lie=lie: lie * 2)
            steps: list[str] = []
            monkeypatch.setattr(backend, "progress", lambda step, share, steps=steps: steps.append(step))
            for _ in range(3):
                same(backend, asked, TABLE)
            assert "sampling again" in steps
            assert bool(searched) == (lies == 2)


def test_stretches_of_a_sorted_file_are_found_out(duckdb_engine: DuckdbEngine) -> None:
    """Eight stretches of a sorted table say little about what lies between them."""
    with duckdb_engine.open(ARROW, DATA) as backend:
        for name in ("ascending", "descending"):
            quantiles = [(Quantile(Fraction(i, 20)), name) for i in range(1, 20, 3)]
            same(backend, plan(DATA, *quantiles), TABLE)
