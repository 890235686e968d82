"""Sums of bounded columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from idios.core.domain import Domain
from idios.core.exact import Extended
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.base import Statistic
from idios.core.summary import Summary


@dataclass(frozen=True)
class Sum(Statistic):
    """Σx; the sum of nothing is 0.

    On a whole table A_i = max(Σ over the i least of (U − x), Σ over the i greatest of (x − L)). On a
    selection values also come and go, and the best of all splits counts. One record moves a sum by at
    least half of what it could move any sum, so the global sensitivity is used at every level:
    U − L on a whole table; max(|L|, |U|) under add-remove; the greater of both on a selection.
    """

    name: ClassVar[str] = "sum"
    always_global: ClassVar[bool] = True
    needs_sums: ClassVar[bool] = True

    @property
    def least_size(self) -> int:
        """Defined on nothing, as 0."""
        return 0

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """The extremes over every split of the changes into additions, removals and replacements.

        The i least values may be dropped one by one, and bounds placed, independently of each other,
        except that a change of a record does at most one of each.
        """
        lows: list[Extended] = [0]
        highs: list[Extended] = [0]
        moves, size = summary.moves, summary.size
        for dropped in range(min(distance, size) + 1):
            for placed in range(distance + 1):
                if not _reachable(moves, dropped, placed, distance):
                    continue
                gain = placed * summary.domain.high if placed else 0
                highs.append(gain - summary.sum_of(1, dropped))
                loss = placed * summary.domain.low if placed else 0
                lows.append(loss - summary.sum_of(size - dropped + 1, size))
        total = summary.known_total()
        return total + min(lows), total + max(highs)

    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """Any number: the size is not bounded."""
        infinite = float("inf")
        return (0 if domain.low >= 0 else -infinite), (0 if domain.high <= 0 else infinite)

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """The ``distance`` least and greatest."""
        return [(1, distance), (moves.size - distance + 1, moves.size)]

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """What one record can change in the worst case."""
        if not domain.bounded:
            return None
        width, reach = domain.high - domain.low, max(abs(domain.low), abs(domain.high))
        if moves.neighbours is Neighbours.ADD_REMOVE:
            return reach
        return width if moves.whole else max(width, reach)

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """Both bounds."""
        return "bounds" if distance and not domain.bounded else None


def _reachable(moves: Moves, dropped: int, placed: int, distance: int) -> bool:
    """Whether ``distance`` changes suffice to drop and to place that many."""
    if moves.neighbours is Neighbours.ADD_REMOVE:
        return dropped + placed <= distance
    if moves.outside is None:
        return dropped == placed <= distance
    return max(dropped, placed) <= distance and placed - dropped <= moves.outside
