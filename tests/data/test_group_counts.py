"""Order statistics by counting: exact however buckets are chosen, and a state that changed is noticed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from idios.core.statistics import Count, InterquartileRange, Maximum, Mean, Median, Quantile, Statistic, TrimmedMean
from idios.core.summary import Window
from idios.data import group_counts, summarise
from idios.data.backend import open_source
from idios.data.engines import sql_backend
from idios.data.engines.duckdb import DuckDbBackend, DuckDbConnection
from idios.data.engines.duckdb_dialect import DIALECT
from idios.data.group_counts import Buckets, cut_span
from idios.data.group_ranks import Wanted
from idios.data.queries import Queries
from idios.data.sql import selection
from idios.errors import SourceError
from idios.expressions.predicates import Among
from tests.conformance.plans import by, category, dataset, number, plan, whole
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same

EDGE = 2**62
ROWS = 1500
PART, X, N = category("part", "a", "b", "c", "d"), number("x", "0.1", (-50, 50), nullable=False), whole("n")
ASKED: Sequence[tuple[Statistic, str | None]] = (
    (Count(), None),
    (Median(), "x"),
    (InterquartileRange(), "n"),
    (TrimmedMean(Fraction(1, 10)), "x"),
    (Mean(), "x"),
    (Maximum(), "n"),
)


def divide(values: Sequence[int], edges: Sequence[int]) -> Buckets:
    """The buckets of one cell whose values are cut below each edge."""
    numbers = np.searchsorted(edges, values, side="right")
    parts = [sorted(v for v, number in zip(values, numbers, strict=True) if number == k) for k in set(numbers.tolist())]
    columns = {
        "cell": [1] * len(parts),
        "bucket_least": [part[0] for part in parts],
        "bucket_greatest": [part[-1] for part in parts],
        "bucket_times": [len(part) for part in parts],
        "bucket_sum": pa.array([Decimal(sum(part)) for part in parts], pa.decimal128(38, 0)),
    }
    return Buckets.read(pa.table(columns))


def test_buckets_tell_the_ranks_they_hold_and_only_those() -> None:
    draw = random.Random(18)
    for _ in range(200):
        n = draw.randint(1, 12)
        values = sorted(draw.choice((draw.randrange(-9, 9), EDGE, -EDGE)) for _ in range(n))
        buckets = divide(values, sorted(draw.sample(range(-9, 9), 5)))
        run = draw.randint(1, n), n
        wanted = Wanted("v0", {1: [run]}, {1: n})
        buckets.check_sizes(wanted)
        window = Window(run[0], tuple(values[run[0] - 1 :]), sum(values[: run[0] - 1]))
        found = buckets.find_windows(wanted, sums=True)
        assert found in ({}, {(1, run): window})
        spans = buckets.list_spans(buckets.find_open(wanted))
        assert bool(spans) == (not found)
        if spans:
            inside = [v for v in values if any(first <= v <= last for first, last in spans[1])]
            finer = buckets.refine(buckets.find_open(wanted), divide(inside, sorted(set(inside))))
            assert finer.find_windows(wanted, sums=True) == {(1, run): window}


def test_what_changed_in_between_is_noticed() -> None:
    buckets = divide([1, 2, 3, 4], [3])
    with pytest.raises(SourceError, match="changed"):
        buckets.check_sizes(Wanted("v0", {1: [(2, 2)]}, {1: 5}))
    with pytest.raises(SourceError, match="changed"):
        buckets.refine(np.array([True, False]), divide([1, 2, 3], [2]))


def test_no_span_is_so_wide_that_a_difference_overflows() -> None:
    for first, last in ((-EDGE, EDGE), (-EDGE, 0), (-EDGE, -1), (0, EDGE), (-3, EDGE - 3)):
        spans = cut_span(first, last)
        assert [spans[0][0], spans[-1][1]] == [first, last]
        assert all(b - a + 1 < 2**63 for a, b in spans)


def make_table(rows: int) -> Table:
    draw = random.Random(4)
    odd = [math.nan, math.inf, -math.inf, None, 1e300, -0.0]
    return {
        "x": [draw.choice(odd) if draw.random() < 0.05 else draw.gauss(0, 30) for _ in range(rows)],
        "n": [
            draw.choice((None, 7, 7, EDGE, -(2**63), 2**63 - 1, draw.randrange(1000), int(2 ** (62 * draw.random()))))
            for _ in range(rows)
        ],
        "part": [draw.choices(("a", "b", "c", "undeclared", None), (9, 3, 0.05, 1, 1))[0] for _ in range(rows)],
    }


TABLE = make_table(ROWS)
TYPES = {"x": pa.float64(), "n": pa.int64(), "part": pa.string()}
ARROW = pa.table({name: pa.array(values, TYPES[name]) for name, values in TABLE.items()})


@pytest.fixture
def _counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let DuckDB find the ranks of small groups by counting, from a tiny sample."""
    dialect = replace(DIALECT, exact_quantiles=False, quick_counts=True, ends=False)
    for of in (DuckDbBackend, DuckDbConnection):
        monkeypatch.setattr(of, "dialect", dialect)
    monkeypatch.setattr(DuckDbBackend, "samplings", lambda *_: [])  # blocks, of which so small a table has one
    monkeypatch.setattr(sql_backend, "SMALL", 100)
    monkeypatch.setattr(sql_backend, "SAMPLED", 200)
    monkeypatch.setattr(sql_backend, "COUNTED_A_CELL", 10)
    monkeypatch.setattr(summarise, "LARGE", 1)
    selection._compiled.cache_clear()
    yield
    selection._compiled.cache_clear()


@pytest.mark.usefixtures("_counting")
@pytest.mark.parametrize(("buckets", "fetched", "rounds"), [(64, 2**20, 5), (4, 10, 5), (4, 0, 40), (2, 10, 1)])
def test_counting_finds_what_sorting_does(
    buckets: int, fetched: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_counts, "BUCKETS", buckets)
    monkeypatch.setattr(group_counts, "FETCHED", fetched)
    monkeypatch.setattr(group_counts, "ROUNDS", rounds)
    data = dataset(X, N, PART)
    with open_source(ARROW, data) as backend:
        for distance in (1, 9):
            same(backend, plan(data, *ASKED, groups=[by(PART)], distance=distance), TABLE)
        same(backend, plan(data, *ASKED, groups=[by(PART)], where=Among("x", ((-100, 200),))), TABLE)
        same(backend, plan(data, (Quantile(Fraction(1, 3)), "n"), groups=[by(X, 100), by(PART)]), TABLE)


@pytest.mark.usefixtures("_counting")
def test_a_median_by_groups_is_a_sketch_and_two_scans_and_never_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    fetch = Queries.fetch

    def listening(self: Queries, inquiry: object, *arguments: object, **named: object) -> pa.Table:
        asked.append(inquiry.__name__)  # type: ignore[attr-defined]
        return fetch(self, inquiry, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Queries, "fetch", listening)
    data = dataset(X, N, PART)
    with open_source(ARROW, data) as backend:
        same(backend, plan(data, (Median(), "x"), groups=[by(PART)]), TABLE)
    assert asked in (["_count_in_buckets"], ["_count_in_buckets", "_list_values"])


@pytest.mark.usefixtures("_counting")
def test_a_bucket_that_does_not_grow_with_its_values_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: buckets that overlap never give an answer."""
    monkeypatch.setattr("idios.data.scan.number_buckets", lambda relation, name, spans: relation[name] % 2)
    data = dataset(X, N, PART)
    with open_source(ARROW, data) as backend, pytest.raises(SourceError, match="changed"):
        backend.summarise(plan(data, (Median(), "x"), groups=[by(PART)]))
