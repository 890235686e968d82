"""The interquartile range."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from idios.core.domain import Domain
from idios.core.exact import Extended, minus
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.base import Statistic
from idios.core.statistics.order import DiscreteQuantile
from idios.core.summary import Summary

FIRST_QUARTILE = DiscreteQuantile(Fraction(1, 4))
THIRD_QUARTILE = DiscreteQuantile(Fraction(3, 4))


@dataclass(frozen=True)
class InterquartileRange(Statistic):
    """x_b − x_a with the discrete quartiles a = ⌈s/4⌉, b = ⌈3s/4⌉.

    Under replace, whole table or selection, exactly:
        hi_i = max over p+q = i of x_{b+p} − x_{a−q}
        lo_i = max(0, min over p+q = i of x_{b−q} − x_{a+p})
    (p records leave the middle for the top, q for the bottom; or they come to the middle). Additions and
    removals reach no further: b follows the size at least as fast as a does, so a replacement serves. One value has
    range 0 whatever it is replaced by (and where it can be removed, the statistic is undefined within one change).

    Under add-remove a safe bound: hi(Q3) − lo(Q1) and max(0, lo(Q3) − hi(Q1)). As a difference of nested
    envelopes it is nested.
    """

    name: ClassVar[str] = "iqr"
    coarse_floor: ClassVar[bool] = True

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """The narrowest and the widest middle half within reach."""
        moves = summary.moves
        if moves.neighbours is Neighbours.ADD_REMOVE:
            (low1, high1), (low3, high3) = (
                quartile.limits(summary, distance) for quartile in (FIRST_QUARTILE, THIRD_QUARTILE)
            )
            return max(0, minus(low3, high1)), minus(high3, low1)
        a, b = (quartile.position(summary.size)[0] for quartile in (FIRST_QUARTILE, THIRD_QUARTILE))
        if a == b:  # one value
            return 0, 0
        moved = min(distance, summary.size)
        widest = max(map(minus, summary.run(b, b + moved), summary.run(a - moved, a)))
        narrowest = min(map(minus, summary.run(b - moved, b), summary.run(a, a + moved)))
        return max(0, narrowest), widest

    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """Between 0 and the width of the domain."""
        return 0, minus(domain.high, domain.low)

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """The runs around both quartiles."""
        return [run for quartile in (FIRST_QUARTILE, THIRD_QUARTILE) for run in quartile.ranks(moves, distance)]
