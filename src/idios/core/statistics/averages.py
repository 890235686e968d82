"""Averages: the mean, and the trimmed and winsorized means that need no bounds.

All obey the lemma of ``Moves.extreme_exchanges``: a new least value, or the loss of the greatest,
never lifts an average of the middle of the list (the number cut off each side, ⌊p·s⌋, follows the
size by at most one, so the averaged run of ranks never moves up).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from idios.core.domain import Domain
from idios.core.envelope import Envelope
from idios.core.exact import INFINITY, Extended, exact, plus
from idios.core.neighbours import Moves, Neighbours
from idios.core.ranks import Ranks, placed_quotient
from idios.core.statistics.base import FINENESS, MonotoneStatistic
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

    @abstractmethod
    def parts(self, values: Any, size: Any, k: Any, offset: Any) -> tuple[Any, Any]:
        """``read`` as numerator and denominator; of numbers from a ``Summary``, or of arrays from ``Ranks``."""

    def read(self, summary: Summary, size: int, offset: int) -> Extended:
        """The quotient of ``parts``."""
        numerator, denominator = self.parts(summary, size, self.cut(size), offset)
        quotient: Extended = Fraction(1, denominator) * numerator
        return quotient

    def envelope(self, summary: Summary, distance: int, fineness: int = FINENESS) -> Envelope:
        """Under add-remove any split of the changes can be extreme: all of one distance are read at once."""
        if summary.moves.neighbours is Neighbours.REPLACE or summary.size < self.least_size:
            return super().envelope(summary, distance, fineness)
        ranks = Ranks(summary, distance)
        return self.enveloped(summary, distance, fineness, lambda i: self._limits_of_splits(ranks, i, fineness))

    def _limits_of_splits(self, ranks: Ranks, distance: int, fineness: int) -> tuple[int | float, int | float]:
        resolution, size, domain = self.resolution(fineness), ranks.summary.size, ranks.summary.domain
        dropped = np.arange(min(distance, size) + 1)
        placed = distance - dropped
        sizes = size - dropped + placed
        cuts = np.array([self.cut(s) for s in sizes.tolist()])  # one by one: p may have any number of digits
        low: int | float = -INFINITY
        high: int | float = INFINITY
        # more values stand at the bound than are cut off, so that it is averaged
        beyond = bool((placed > cuts).any())
        if domain.lower is not None or not beyond:
            low = placed_quotient(*self.parts(ranks, sizes, cuts, -placed), resolution, greatest=False)
        if domain.upper is not None or not beyond:
            high = placed_quotient(*self.parts(ranks, sizes, cuts, dropped), resolution, greatest=True)
        return low, high

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

    def parts(self, values: Any, size: Any, k: Any, offset: Any) -> tuple[Any, Any]:
        """The sum of the ranks between the cuts, and their number."""
        return values.sum_of(k + 1 + offset, size - k + offset), size - 2 * k


@dataclass(frozen=True)
class Mean(TrimmedMean):
    """The arithmetic mean: under replace A_i = max(Σ_{j≤i}(U − x_j), Σ_{j≤i}(x_{n+1−j} − L))/n."""

    name: ClassVar[str] = "mean"

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """(U − L)/n where n is public; of a selection of secret size it would be U − L."""
        if not (moves.whole and domain.bounded):
            return None
        return Fraction(1, max(moves.size, 1)) * (domain.high - domain.low)


@dataclass(frozen=True)
class WinsorizedMean(_Trimming):
    """The mean after setting the k = ⌊p·n⌋ values at each end to the nearest one that is kept."""

    name: ClassVar[str] = "winsorized_mean"

    def parts(self, values: Any, size: Any, k: Any, offset: Any) -> tuple[Any, Any]:
        """The kept ranks once, the innermost of them k times more; and the size."""
        first, last = k + 1 + offset, size - k + offset
        kept, ends = values.sum_of(first, last), plus(values.repeated(first, k), values.repeated(last, k))
        return plus(kept, ends), size
