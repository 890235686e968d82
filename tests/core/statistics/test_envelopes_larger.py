"""Larger tables, drawn by hypothesis: every single change tried, the envelope at distance 1 exact."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import STATISTICS, Statistic
from tests.oracle import Space, Table
from tests.summaries import summarise

LOW, HIGH = -6, 6

tables = st.builds(
    Table, st.lists(st.integers(LOW, HIGH), min_size=1, max_size=16).map(lambda v: tuple(sorted(v))), st.integers(0, 3)
)
ARGUMENTS = {
    "q": st.integers(0, 10).map(lambda i: Fraction(i, 10)),
    "p": st.integers(0, 9).map(lambda i: Fraction(i, 20)),
    "k": st.integers(1, 8),
}


@st.composite
def instances(draw: st.DrawFn) -> Statistic:
    """Any registered statistic, with any argument that it takes."""
    statistic = draw(st.sampled_from(STATISTICS))
    return statistic.make(*([draw(ARGUMENTS[statistic.parameter.name])] if statistic.parameter else []))


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(("notion", "selection"), [("replace", False), ("replace", True), ("add-remove", False)])
@settings(max_examples=200, deadline=None)
@given(table=tables, statistic=instances())
def test_distance_one_is_enumeration(
    notion: str, selection: bool, bounded: bool, table: Table, statistic: Statistic
) -> None:
    if statistic.needs_counts and not bounded:
        return  # it counts every point of the domain
    space = Space([table], notion=notion, selection=selection, domain=(LOW, HIGH), bounded=bounded, reach=1)
    domain = Domain(Fraction(1), LOW, HIGH) if bounded else Domain()
    moves = Moves(Neighbours(notion), len(table.values), table.outside if selection else None)
    ((_, (low, high)),) = space.envelopes(statistic.define, statistic.range(domain)).values()
    envelope = statistic.envelope(summarise(table.values, statistic, domain, moves, 1), 1)
    expected = statistic.place(low), statistic.place(high)
    found = envelope.lows[1], envelope.highs[1]
    if statistic.exact_reach(moves.neighbours) < 1:  # a safe bound
        assert found[0] <= expected[0]
        assert found[1] >= expected[1]
    else:
        assert found == expected
