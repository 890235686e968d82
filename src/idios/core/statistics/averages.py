"""Averages: the mean, and the trimmed and winsorized means that need no bounds.

All obey the lemma of ``Moves.extreme_exchanges``: a new least value, or the loss of the greatest,
never lifts an average of the middle of the list (the number cut off each side, ⌊p·s⌋, follows the
size by at most one, so the averaged run of ranks never moves up).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from idios.core.domain import Domain
from idios.core.exact import INFINITY, Extended, exact
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.base import MonotoneStatistic
from idios.core.summary import Summary
from idios.errors import InvalidInput


@dataclass(frozen=True)
class _Trimming(MonotoneStatistic):
    """An average that treats the ⌊p·s⌋ values at each end apart."""

    p: Fraction = Fraction(0)
    fractional: ClassVar[bool] = True
    needs_sums: ClassVar[bool] = True

    def __post_init__(self) -> None:
        p = exact(self.p, "p")
        if not 0 <= p < Fraction(1, 2):
            raise InvalidInput(f"p, the share cut off at each end, must be in [0, 0.5), got {self.p!r}")
        object.__setattr__(self, "p", p)

    def cut(self, size: int) -> int:
        """k = ⌊p·s⌋, the number of values at each end that are not averaged as they are."""
        return self.p.numerator * size // self.p.denominator

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """The ranks that the two cuts can reach: two runs, where the sum is also taken up to each."""
        least, most = (max(0, size) for size in (moves.size - distance, moves.size + distance))
        if moves.whole:
            least = most = moves.size
        low, high = self.cut(least), self.cut(most)
        near = (low - distance, high + distance + 1)
        far = (least - low - distance, most - high + distance + 1)
        return [near, far] if near[1] < far[0] - 1 else [(min(near[0], far[0]), max(near[1], far[1]))]

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """Both bounds, if nothing is cut off."""
        return "bounds" if not self.p and distance and not domain.bounded else None


@dataclass(frozen=True)
class TrimmedMean(_Trimming):
    """The mean of what is left after cutting k = ⌊p·n⌋ values off each end.

    A_i = max(Σ_{j≤i}(x_{n−k+j} − x_{k+j}), Σ_{j≤i}(x_{n−k+1−j} − x_{k+1−j}))/(n − 2k) under replace,
    free of the domain while i ≤ k.
    """

    name: ClassVar[str] = "trimmed_mean"

    def read(self, summary: Summary, size: int, offset: int) -> Extended:
        """The sum of the ranks between the cuts, divided by their number."""
        k = self.cut(size)
        return Fraction(1, size - 2 * k) * summary.sum_of(k + 1 + offset, size - k + offset)


@dataclass(frozen=True)
class Mean(TrimmedMean):
    """The arithmetic mean: under replace A_i = max(Σ_{j≤i}(U − x_j), Σ_{j≤i}(x_{n+1−j} − L))/n."""

    name: ClassVar[str] = "mean"

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """Under add-remove the best split of the changes is found by bisection.

        One more removal and one addition less take the least value x and one U from the list, which lifts its mean m
        just if m > (x + U)/2. Once that fails it fails for ever: m does not rise any more and x does. So the mean first
        rises with the number of removals and then falls.
        """
        if summary.moves.neighbours is Neighbours.REPLACE or not distance:
            return super().limits(summary, distance)
        size, most = summary.size, min(distance, summary.size)

        def high(removed: int) -> Extended:
            return self.read(summary, size + distance - 2 * removed, removed)

        def low(removed: int) -> Extended:
            return -self.read(summary, size + distance - 2 * removed, removed - distance)

        bounds = ((low, summary.domain.low), (high, summary.domain.high))
        lowest, highest = (INFINITY if isinstance(end, float) else f(_peak(f, most)) for f, end in bounds)
        return -lowest, highest

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """(U − L)/n where n is public; of a selection of secret size it would be U − L."""
        if not (moves.whole and domain.bounded):
            return None
        return Fraction(1, max(moves.size, 1)) * (domain.high - domain.low)


def _peak(f: Callable[[int], Extended], last: int) -> int:
    """Where f is greatest on 0..last, if it rises first and then never again."""
    first = 0
    while first < last:
        middle = (first + last) // 2
        if f(middle + 1) > f(middle):
            first = middle + 1
        else:
            last = middle
    return first


@dataclass(frozen=True)
class WinsorizedMean(_Trimming):
    """The mean after setting the k = ⌊p·n⌋ values at each end to the nearest one that is kept."""

    name: ClassVar[str] = "winsorized_mean"

    def read(self, summary: Summary, size: int, offset: int) -> Extended:
        """The kept ranks once, the innermost of them k times more."""
        k = self.cut(size)
        first, last = k + 1 + offset, size - k + offset
        total: Extended = summary.sum_of(first, last)
        if k:
            total = total + k * summary.at(first) + k * summary.at(last)
        return Fraction(1, size) * total
