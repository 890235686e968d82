"""Statements: conditions in SQL mean what predicates mean, and a shape is compiled once."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idios.core.statistics import Count, Median
from idios.core.summary import Summary
from idios.data.backend import open_source
from idios.data.cancellation import CancellationToken
from idios.data.engines.duckdb import DuckDbBackend
from idios.data.sql.selection import Selection, SelectStatement, _compiled
from idios.expressions.predicates import Among, And, Interval, Or, Predicate, holds
from tests.conformance.plans import by, category, dataset, plan, whole

REGION = category("region", "north", "south")
DATA = dataset(whole("a"), whole("b"), REGION)
VALUES = [None, *range(-4, 5)]
RECORDS = [{"a": a, "b": b, "region": "north"} for a in VALUES for b in VALUES]


@pytest.fixture(scope="module")
def held() -> Iterator[DuckDbBackend]:
    with open_source(pa.Table.from_pylist(RECORDS), DATA) as backend:
        assert isinstance(backend, DuckDbBackend)
        yield backend


def _leaf(column: str, points: set[int], nulls: bool, unlimited: tuple[bool, bool]) -> Among:
    """The runs of some points, the outer ones perhaps without an end."""
    starts = sorted(point for point in points if point - 1 not in points)
    ends = sorted(point for point in points if point + 1 not in points)
    intervals: list[Interval] = list(zip(starts, ends, strict=True))
    if intervals and unlimited[0]:
        intervals[0] = (None, intervals[0][1])
    if intervals and unlimited[1]:
        intervals[-1] = (intervals[-1][0], None)
    return Among(column, tuple(intervals), nulls)


leaves = st.builds(
    _leaf, st.sampled_from("ab"), st.sets(st.integers(-5, 5)), st.booleans(), st.tuples(st.booleans(), st.booleans())
)
predicates = st.recursive(
    leaves, lambda part: st.builds(lambda kind, parts: kind(tuple(parts)), st.sampled_from([And, Or]), st.lists(part))
)


@pytest.mark.slow
@given(predicates)
def test_a_condition_means_what_the_predicate_means(held: DuckDbBackend, predicate: Predicate) -> None:
    asked = plan(DATA, (Median(), "a"), (Median(), "b"), where=predicate)
    relation = Selection(asked, held.columns, held.dialect).relation(held.table)
    with held.connections.acquire(CancellationToken()) as connection:
        text = f'SELECT "v0", "v1" FROM ({relation.text}) AS found'
        found = [
            tuple(row.values()) for row in connection.fetch(SelectStatement.of_integers(text, "v0", "v1")).to_pylist()
        ]
    wanted = [(record["a"], record["b"]) for record in RECORDS if holds(predicate, {c: record[c] for c in "ab"})]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize("groups", [[], [by(REGION)]])
def test_other_numbers_are_no_other_shape(held: DuckDbBackend, groups: list[object]) -> None:
    """A question that differs in its numbers alone compiles nothing, and is answered for itself."""

    def selected(first: int, last: int) -> int:
        [found, *_] = held.summarise(plan(DATA, (Count(), "a"), where=Among("b", ((first, last),)), groups=groups))
        assert isinstance(found[0], Summary)
        return found[0].moves.size

    assert selected(-4, 4) == 9 * 9
    before = _compiled.cache_info()
    assert selected(1, 2) == 2 * 9
    after = _compiled.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits
