"""Range counts against enumeration: ranges inside, across, around and beside the domain."""

from __future__ import annotations

from fractions import Fraction

import pytest

from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import RangeCount
from idios.core.summary import Summary
from tests.oracle import Space, small_tables

LOW, HIGH, REACH = -1, 2, 3


@pytest.mark.parametrize("ends", [(0, 1), (-5, 0), (2, 9), (-1, 2), (-9, 9), (5, 7)])
@pytest.mark.parametrize(("notion", "selection"), [("replace", False), ("replace", True), ("add-remove", False)])
def test_envelope_and_global_sensitivity_are_enumeration(notion: str, selection: bool, ends: tuple[int, int]) -> None:
    first, last = ends
    starts = small_tables((LOW, HIGH), range(5), [0, 1, 3] if selection else [0])
    space = Space(starts, notion=notion, selection=selection, domain=(LOW, HIGH), bounded=True, reach=REACH)
    statistic, domain = RangeCount(first, last), Domain(Fraction(1), LOW, HIGH)
    greatest = 0
    for table, limits in space.envelopes(lambda v: sum(first <= x <= last for x in v), (0, 99)).items():
        column = Moves(Neighbours(notion), len(table.values), table.outside if selection else None)
        inside = sum(first <= x <= last for x in table.values)
        summary = Summary(domain, statistic.moves(column, domain, inside))
        envelope = statistic.envelope(summary, REACH)
        assert list(zip(envelope.lows, envelope.highs, strict=True)) == limits, table
        greatest = max(greatest, int(envelope.local_sensitivity))
    assert statistic.global_sensitivity(domain, column) == greatest
