"""The contract of every statistic: its envelope is what trying every neighbour gives."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import pytest

from idios.core.domain import Domain
from idios.core.exact import Extended
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import STATISTICS, KthLargest, Maximum, Mean, Median, Statistic
from tests.oracle import Space, Table, small_tables
from tests.summaries import summarise

REACH = 3
EXAMPLES = [example for statistic in STATISTICS for example in statistic.examples()]

BOUNDED, UNBOUNDED = (-2, 3), (-2, 2)


@cache
def space(notion: str, selection: bool, bounded: bool) -> Space:
    """All small tables of one kind, ties, negative values, single rows and no rows included."""
    domain = BOUNDED if bounded else UNBOUNDED
    if notion == "add-remove":
        starts = small_tables(domain, range(8), [0])
    elif selection:
        starts = small_tables(domain, range(7), [0, 1, 2, 3, 5])
    else:
        starts = small_tables(domain, range(11), [0])
    return Space(starts, notion=notion, selection=selection, domain=domain, bounded=bounded, reach=REACH)


def moves_of(table: Table, notion: str, selection: bool) -> Moves:
    outside = table.outside if selection and notion == "replace" else None
    return Moves(Neighbours(notion), len(table.values), outside)


SPACES = [
    pytest.param(
        notion,
        selection,
        bounded,
        id=f"{notion}-{kind}-{'bounded' if bounded else 'unbounded'}",
        # `make quick` has the smallest space
        marks=() if bounded and notion == "add-remove" else pytest.mark.slow,
    )
    for notion in ("replace", "add-remove")
    for kind, selection in (("whole", False), ("selection", True))
    for bounded in (True, False)
    if not (notion == "add-remove" and selection)  # a filter changes nothing there: see below
]


@pytest.mark.parametrize(("notion", "selection", "bounded"), SPACES)
@pytest.mark.parametrize("statistic", EXAMPLES, ids=str)
def test_envelope_is_enumeration(statistic: Statistic, notion: str, selection: bool, bounded: bool) -> None:
    tables = space(notion, selection, bounded)
    domain = Domain(Fraction(1), *(tables.domain if bounded else (None, None)))
    if statistic.needs_counts and not bounded:
        return  # it counts every point of the domain
    expected = tables.envelopes(statistic.define, statistic.range(domain), statistic.place)
    exact_to = statistic.exact_reach(Neighbours(notion))
    for table, limits in expected.items():
        moves = moves_of(table, notion, selection)
        # a summary for a shorter distance must do for that distance
        for reach in (1, REACH) if len(table.values) < 5 else (REACH,):
            summary = summarise(table.values, statistic, domain, moves, reach)
            envelope = statistic.envelope(summary, reach)
            defined = len(table.values) >= statistic.least_size
            assert (envelope.value is None) == (not defined)
            for i, enumerated in enumerate(limits[: reach + 1]):
                computed = envelope.lows[i], envelope.highs[i]
                if i <= exact_to:
                    assert computed == enumerated, (table, i)
                else:
                    assert computed[0] <= enumerated[0], (table, i)
                    assert computed[1] >= enumerated[1], (table, i)


@pytest.mark.slow
def test_at_least_twenty_thousand_tables() -> None:
    """Distinct tables (values, records outside, notion of neighbour, bounds), each for every statistic."""
    total = sum(len(space(*parameters.values).starts) for parameters in SPACES)
    assert total >= 20_000


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "selection", "bounded"), SPACES)
@pytest.mark.parametrize("statistic", EXAMPLES, ids=str)
def test_envelopes_of_neighbours_are_nested(statistic: Statistic, notion: str, selection: bool, bounded: bool) -> None:
    """lo_{i+1}(D) ≤ lo_i(D′) and hi_i(D′) ≤ hi_{i+1}(D): what differential privacy relies on."""
    tables = space(notion, selection, bounded)
    domain = Domain(Fraction(1), *(tables.domain if bounded else (None, None)))
    if statistic.needs_counts and not bounded:
        return
    assert statistic.nested

    @cache
    def envelope(table: Table) -> tuple[tuple[Extended, ...], tuple[Extended, ...]]:
        moves = moves_of(table, notion, selection)
        found = statistic.envelope(summarise(table.values, statistic, domain, moves, 4), 4)
        return found.lows, found.highs

    for table in tables.starts[:: 1 + len(tables.starts) // 300]:
        lows, highs = envelope(table)
        for other in tables.neighbours(table):
            other_lows, other_highs = envelope(other)
            for i in range(4):
                assert lows[i + 1] <= other_lows[i], (table, other, i)
                assert highs[i + 1] >= other_highs[i], (table, other, i)


def test_a_filter_changes_nothing_under_add_remove() -> None:
    """Records that are not selected can come and go without any effect on the selected values."""
    with_outside = Moves(Neighbours.ADD_REMOVE, 3, outside=7)
    without = Moves(Neighbours.ADD_REMOVE, 3)
    for i in range(5):
        assert with_outside.sizes(i) == without.sizes(i)
        assert list(with_outside.exchanges(i)) == list(without.exchanges(i))
    assert not without.whole


def test_infinite_where_the_domain_matters() -> None:
    five = Moves(Neighbours.REPLACE, 5)
    values, domain = (1, 2, 3, 4, 5), Domain()
    for statistic, finite in [(Maximum(), False), (KthLargest(2), True), (Mean(), False), (Median(), True)]:
        envelope = statistic.envelope(summarise(values, statistic, domain, five, 1), 1)
        assert (envelope.local_sensitivity < math.inf) == finite
