"""Order statistics of groups: shares hit the ranks they were chosen for, and all ways find the same values."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest

from idios.core.statistics import Count, DiscreteQuantile, Maximum, Mean, Median, TrimmedMean
from idios.data import group_ranks
from idios.data.backend import open_source
from idios.data.group_ranks import MOST_SHARES, Wanted, choose_shares, find_hit
from idios.data.queries import Queries
from idios.errors import SourceError
from idios.expressions.predicates import Among
from tests.conformance.plans import by, category, dataset, number, plan, whole
from tests.conformance.reference import Table
from tests.conformance.test_statistics import same

draw = random.Random(3)


def test_shares_hit_every_span_of_sizes_that_differ_little() -> None:
    for _ in range(50):
        least = draw.choice((1, 7, 100, 10**4, 10**8))
        sizes = [draw.randint(least, 2 * least) for _ in range(20)]
        spans = [(rank - 1, rank, n, 1) for n in sizes for rank in range(n // 2, n // 2 + 4) if 1 <= rank <= n]
        shares = choose_shares(spans)
        assert len(shares) <= 12
        for _, rank, n, _ in spans:
            assert rank in {find_hit(share, n) for share in shares}


def test_there_are_never_more_shares_than_allowed_and_they_serve_the_most_cells() -> None:
    spans = [(10 * k - 1, 10 * k, 1000, 1) for k in range(1, 60)]
    shares = choose_shares([*spans, (900, 901, 1000, 10**6)])
    assert len(shares) == MOST_SHARES
    assert 901 in {find_hit(share, 1000) for share in shares}


def test_duckdb_gives_the_rank_that_a_share_hits() -> None:
    with duckdb.connect() as connection:
        for n in [*range(1, 60), 999, 2**16 + 1]:
            shares = sorted({Fraction(f"{draw.random():.15f}") for _ in range(9)} | {Fraction(1, 2)})
            middles = choose_shares([(rank - 1, rank, n, 1) for rank in {1, n, (n + 1) // 2, draw.randint(1, n)}])
            listed = ", ".join(f"{float(share):.15f}" for share in [*shares, *middles])
            text = f"SELECT quantile_disc(x, [{listed}]) FROM range(1, {n + 1}) AS t(x)"
            (found,) = connection.execute(text).fetchone() or ([],)
            assert found == [find_hit(share, n) for share in [*shares, *middles]]


LABELS = [f"label '{i}' ${{x}}" for i in range(70)]
PART, FEW = category("part", *LABELS), category("few", "a", "b", nullable=False)
X, N = number("x", "0.1", (-50, 50), nullable=False), whole("n")
ROWS = 1500


def make_table(*, hostile: bool) -> Table:
    odd = [math.nan, math.inf, -math.inf, None, 1e300, -0.0]
    labels = [*LABELS[:60], "undeclared", "", None]
    return {
        "x": [draw.choice(odd) if hostile and draw.random() < 0.05 else draw.gauss(0, 30) for _ in range(ROWS)],
        "n": [draw.choice((None, 7, 7, 2**62, -(2**63), 2**63 - 1, draw.randrange(1000))) for _ in range(ROWS)],
        "part": [draw.choice(labels) for _ in range(ROWS)],
        "few": [draw.choice(("a", "b", "c", None)) for _ in range(ROWS)],
    }


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("way", ["as chosen", "brackets", "lists", "no shares"])
def test_all_ways_find_the_same_values(way: str, hostile: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "brackets":
        monkeypatch.setattr(group_ranks, "NARROW", 0)
        monkeypatch.setattr(group_ranks, "WIDE_ENOUGH", 0)
    if way == "lists":
        monkeypatch.setattr(group_ranks, "WIDE_ENOUGH", 10**9)
    if way == "no shares":
        monkeypatch.setattr(group_ranks, "MOST_SHARES", 0)
    table, data = make_table(hostile=hostile), dataset(X, N, PART, FEW)
    types = {"x": pa.float64(), "n": pa.int64(), "part": pa.string(), "few": pa.string()}
    arrow = pa.table({name: pa.array(values, types[name]) for name, values in table.items()})
    asked = [
        (Count(), None),
        (Median(), "x"),
        (DiscreteQuantile(Fraction(9, 10)), "n"),
        (Mean(), "x"),
        (Maximum(), "n"),
    ]
    with open_source(arrow, data) as backend:
        for groups in ([by(PART)], [by(FEW)], [by(FEW), by(PART)], [by(X, 100)]):
            for distance in (1, 9):
                same(backend, plan(data, *asked, groups=groups, distance=distance), table)
        held = Among("x", ((-100, 200),)), Among("n", ((None, 6), (8, None)), nulls=True), Among("few", ((1, 1),))
        for where in held:
            same(
                backend, plan(data, *asked, (TrimmedMean(Fraction(1, 10)), "x"), where=where, groups=[by(PART)]), table
            )


def test_a_share_that_hits_another_rank_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: ranks counted from above."""
    monkeypatch.setattr(group_ranks, "find_hit", lambda share, size: size + 1 - find_hit(share, size))
    table, data = make_table(hostile=False), dataset(X, N, PART, FEW)
    with open_source(pa.table(table), data) as backend, pytest.raises(SourceError):
        same(backend, plan(data, (Median(), "x"), (Count(), None), groups=[by(PART)]), table)


def test_labels_that_are_not_declared_stay_in_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    table, data = make_table(hostile=True), dataset(X, N, PART, FEW)
    with open_source(pa.table(table), data) as backend:
        fetched: list[pa.Table] = []
        original = Queries.fetch

        def fetch(self: Queries, *arguments: object, **named: object) -> pa.Table:
            fetched.append(original(self, *arguments, **named))  # type: ignore[arg-type]
            return fetched[-1]

        monkeypatch.setattr(Queries, "fetch", fetch)
        backend.summarise(plan(data, (Median(), "x"), groups=[by(PART)]))
    assert fetched
    for found in fetched:
        assert not any(pa.types.is_string(kind) for kind in found.schema.types)
        assert set(found["cell"].to_pylist()) <= set(range(1, 61))


def test_what_is_dense_is_told_from_public_numbers_of_ranks() -> None:
    assert Wanted("v0", {1: [(1, 9)]}, {1: 30}).dense
    assert not Wanted("v0", {1: [(1, 9)]}, {1: 40}).dense
    assert Wanted("v0", {1: [(1, 8)]}, {1: 40}).narrow
    assert not Wanted("v0", {1: [(1, 9)]}, {1: 40}).narrow
