"""The envelope of a statistic at the actual data, and the sensitivities that follow from it.

lo_i and hi_i are the least and the greatest value that the statistic takes over all data sets
within distance i of the data at hand, on the grid of the answer. Everything is derived from
the two sequences:

    distance-i sensitivity   A_i = max(hi_i − f, f − lo_i)
    local sensitivity        LS  = A_1
    inverse sensitivity      u(t) = least i with lo_i ≤ t ≤ hi_i

A statistic that is undefined at the data (a median of nothing) has no value; every point of its
range is then within distance 0, and within distance i of every data set at distance i from there.
That convention keeps envelopes nested: [lo_i(D′), hi_i(D′)] ⊂ [lo_{i+1}(D), hi_{i+1}(D)] for all
neighbours D, D′, which the mechanisms of differential privacy rely on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import eq, ge, le

from idios.core.exact import INFINITY, minus


@dataclass(frozen=True)
class Envelope:
    """lo_0 ≥ lo_1 ≥ … and hi_0 ≤ hi_1 ≤ …, in whole steps of the answer's grid.

    >>> e = Envelope(value=4, lows=(4, 3, 0), highs=(4, 9, 9))
    >>> e.local_sensitivity, e.sensitivity(2), e.group_sensitivity((Fraction(1), Fraction(2))), e.distance_of(7)
    (5, 5, Fraction(5, 1), 1)
    """

    value: int | None
    lows: tuple[int | float, ...]
    highs: tuple[int | float, ...]

    def __post_init__(self) -> None:
        if len(self.lows) != len(self.highs) or not self.lows:
            raise ValueError("an envelope has as many lows as highs, and at least one")
        # what is no number is neither above nor below another, nor itself
        wider = all(map(ge, self.lows, self.lows[1:])) and all(map(le, self.highs, self.highs[1:]))
        if not wider or self.lows[0] != self.lows[0] or self.highs[0] != self.highs[0]:
            numbers = all(map(eq, self.lows, self.lows)) and all(map(eq, self.highs, self.highs))
            raise ValueError("an envelope never narrows with distance" if numbers else "an envelope is made of numbers")

    @property
    def distance(self) -> int:
        """How far the envelope is known."""
        return len(self.lows) - 1

    def sensitivity(self, distance: int) -> int | float:
        """A_i = max(hi_i − f, f − lo_i); +∞ where the statistic is undefined."""
        if self.value is None:
            return INFINITY
        return max(minus(self.highs[distance], self.value), minus(self.value, self.lows[distance]))

    @property
    def local_sensitivity(self) -> int | float:
        """LS = A_1."""
        return self.sensitivity(1)

    def group_sensitivity(self, multiples: Sequence[Fraction], floor: Fraction = Fraction(0)) -> Fraction | float:
        """max over i of max(A_i, floor)/m_i, the scale of (m_1·ε, …, m_g·ε)-gDP at ε = 1."""
        if self.sensitivity(len(multiples)) == INFINITY:
            return INFINITY
        return max(max(Fraction(self.sensitivity(i)), floor) / m for i, m in enumerate(multiples, start=1))

    def distance_of(self, point: int) -> int | None:
        """u(t) = least i with lo_i ≤ t ≤ hi_i; None beyond the last known distance."""
        for i, (low, high) in enumerate(zip(self.lows, self.highs, strict=True)):
            if low <= point <= high:
                return i
        return None
