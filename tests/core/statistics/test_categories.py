"""Histogram and mode, against enumeration."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from idios.core.calibration import Level, Protection, calibrate, choose
from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Histogram, Mode
from idios.core.summary import Summary
from tests.oracle import Space, Table


def counts_of(table: Table, cells: int) -> tuple[int, ...]:
    found = Counter(table.values)
    return tuple(found[c] for c in range(cells))


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize(("notion", "selection"), [("replace", False), ("replace", True), ("add-remove", False)])
def test_histogram_sensitivities(notion: str, selection: bool, cells: int) -> None:
    starts = [
        Table(values, outside)
        for size in range(1, 6)
        for values in combinations_with_replacement(range(cells), size)
        for outside in ([0, 1, 3] if selection else [0])
    ]
    space = Space(starts, notion=notion, selection=selection, domain=(0, cells - 1), bounded=True, reach=1)
    histogram = Histogram(cells)
    greatest = 0
    for table in starts:
        moves = Moves(Neighbours(notion), len(table.values), table.outside if selection else None)
        here, reached = counts_of(table, cells), {table}
        for distance in range(1, 4):
            reached |= {other for one in reached for other in space.neighbours(one)}
            furthest = max(
                sum(abs(a - b) for a, b in zip(here, counts_of(other, cells), strict=True)) for other in reached
            )
            assert histogram.local_sensitivity(here, moves, distance) == furthest, (table, distance)
            if distance == 1:
                greatest = max(greatest, furthest)
    assert histogram.global_sensitivity(moves) == greatest


@pytest.mark.parametrize(("notion", "selection"), [("replace", False), ("replace", True), ("add-remove", False)])
def test_mode_is_private_over_all_pairs(notion: str, selection: bool) -> None:
    cells, epsilon, domain = 3, Fraction(1, 2), Domain(lower=0, upper=2)
    starts = [Table(values, 1) for size in range(6) for values in combinations_with_replacement(range(cells), size)]
    space = Space(starts, notion=notion, selection=selection, domain=(0, cells - 1), bounded=True, reach=1)
    rate = Mode().rate(epsilon, Neighbours(notion))

    def chances(table: Table) -> list[float]:
        counts = counts_of(table, cells)
        weights = [math.exp(-float(rate) * (max(counts) - c)) for c in counts]
        expected = [w / sum(weights) for w in weights]
        moves = Moves(Neighbours(notion), len(table.values), table.outside if selection else None)
        choice = choose(Mode(), domain, moves.neighbours, moves.whole, Protection(Level.INDIVIDUAL), epsilon)
        mechanism = calibrate(choice, Mode(), Summary(domain, moves, counts=counts), Protection(Level.INDIVIDUAL))
        assert [mechanism.pmf(point) for point in range(cells)] == pytest.approx(expected)
        return expected

    worst = 0.0
    for table in starts:
        for other in space.neighbours(table):
            for p, r in zip(chances(table), chances(other), strict=True):
                worst = max(worst, abs(math.log(p / r)))
    assert worst <= float(epsilon) + 1e-12
    assert worst > 0.6 * float(epsilon)
