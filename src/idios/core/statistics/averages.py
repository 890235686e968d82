"""Sums and averages: the sum, the mean, and the trimmed and winsorized means that need no bounds.

All averages obey the lemma of ``Moves.extreme_exchanges``: a new least value, or the loss of the greatest,
never lifts an average of the middle of the list (the number cut off each side, ⌊p·s⌋, follows the
size by at most one, so the averaged run of ranks never moves up).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, ClassVar, Self

import numpy as np

from idios.core.domain import Domain
from idios.core.envelope import Envelope
from idios.core.exact import INFINITY, Extended, exact, plus, text
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.base import (
    FINENESS,
    TRIMMED_SHARE,
    MonotoneStatistic,
    Parameter,
    Spelling,
    Statistic,
)
from idios.core.summary import Ranks, Summary, placed_quotient
from idios.errors import InvalidInput


@dataclass(frozen=True)
class _Trimming(MonotoneStatistic):
    """An average that treats the ⌊p·s⌋ values at each end apart."""

    p: Fraction = Fraction(0)
    parameter: ClassVar[Parameter | None] = TRIMMED_SHARE
    fractional: ClassVar[bool] = True
    needs_sums: ClassVar[bool] = True
    tries_splits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        p = exact(self.p, "p")
        if not 0 <= p < Fraction(1, 2):
            percent = f": did you mean {text(p / 100)}?" if p.denominator == 1 and 1 <= p < 50 else ""
            raise InvalidInput(f"p, the share cut off at each end, must be in [0, 0.5), got {text(p)}{percent}")
        object.__setattr__(self, "p", p)

    def normalise(self) -> Statistic:
        """Where nothing is cut off, the mean is left."""
        return self if self.p else Mean()

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Shares that cut one or two off a handful."""
        return tuple(cls(Fraction(p)) for p in ("1/5", "1/4", "1/3", "2/5"))

    def cut(self, size: int) -> int:
        """k = ⌊p·s⌋, the number of values at each end that are not averaged as they are."""
        return self.p.numerator * size // self.p.denominator

    @abstractmethod
    def parts(self, values: Any, size: Any, k: Any, offset: Any) -> tuple[Any, Any]:
        """``read_parts`` of numbers from a ``Summary``, or of arrays from ``Ranks``."""

    def read_parts(self, summary: Summary, size: int, offset: int) -> tuple[int | float, int]:
        """What is averaged, and how much of it there is."""
        numerator, denominator = self.parts(summary, size, self.cut(size), offset)
        return numerator, denominator

    def envelope(self, summary: Summary, distance: int, fineness: int = FINENESS) -> Envelope:
        """Under add-remove any split of the changes can be extreme: all of one distance are read at once."""
        if summary.moves.neighbours is Neighbours.REPLACE or not distance or summary.size < self.least_size:
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
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("TRIMMED_MEAN"),)
    function: ClassVar[str | None] = "trimmed_mean"

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The mean of what is left."""
        cut = floor(self.p * len(values))
        kept = values[cut : len(values) - cut]
        return Fraction(sum(kept), len(kept)) if kept else None

    def parts(self, values: Any, size: Any, k: Any, offset: Any) -> tuple[Any, Any]:
        """The sum of the ranks between the cuts, and their number."""
        return values.sum_of(k + 1 + offset, size - k + offset), size - 2 * k


@dataclass(frozen=True)
class Mean(TrimmedMean):
    """The arithmetic mean: under replace A_i = max(Σ_{j≤i}(U − x_j), Σ_{j≤i}(x_{n+1−j} − L))/n."""

    name: ClassVar[str] = "mean"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("AVG"), Spelling("MEAN", synonym=True))
    advice: ClassVar[Mapping[str, str]] = {"AVERAGE": "AVG(column) is offered"}
    function: ClassVar[str | None] = "mean"
    parameter: ClassVar[Parameter | None] = None
    tries_splits: ClassVar[bool] = False  # its answers need no envelope

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The mean."""
        return (cls(),)

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """Nothing is cut off, so that the ``distance`` outermost values at each end and the sum say all."""
        return [(1, distance), (moves.size - distance + 1, moves.size)] if distance else []

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """(U − L)/n where n is public; of a selection of secret size it would be U − L."""
        if not (moves.whole and domain.bounded):
            return None
        return Fraction(1, max(moves.size, 1)) * (domain.high - domain.low)


@dataclass(frozen=True)
class WinsorizedMean(_Trimming):
    """The mean after setting the k = ⌊p·n⌋ values at each end to the nearest one that is kept."""

    name: ClassVar[str] = "winsorized_mean"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("WINSORIZED_MEAN"),)
    function: ClassVar[str | None] = "winsorized_mean"

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The mean of what is kept, its ends repeated."""
        cut = floor(self.p * len(values))
        kept = values[cut : len(values) - cut]
        return Fraction(cut * kept[0] + sum(kept) + cut * kept[-1], len(values)) if kept else None

    def parts(self, values: Any, size: Any, k: Any, offset: Any) -> tuple[Any, Any]:
        """The kept ranks once, the innermost of them k times more; and the size."""
        first, last = k + 1 + offset, size - k + offset
        kept, ends = values.sum_of(first, last), plus(values.repeated(first, k), values.repeated(last, k))
        return plus(kept, ends), size


@dataclass(frozen=True)
class Sum(Statistic):
    """Σx; the sum of nothing is 0.

    On a whole table A_i = max(Σ over the i least of (U − x), Σ over the i greatest of (x − L)). On a
    selection values also come and go, and the best of all splits counts. One record moves a sum by at
    least half of what it could move any sum, so the global sensitivity is used at every level:
    U − L on a whole table; max(|L|, |U|) under add-remove; the greater of both on a selection.
    """

    name: ClassVar[str] = "sum"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("SUM"),)
    function: ClassVar[str | None] = "total"
    always_global: ClassVar[bool] = True
    needs_sums: ClassVar[bool] = True

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """Their sum."""
        return sum(values)

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
        return (0 if domain.low >= 0 else -INFINITY), (0 if domain.high <= 0 else INFINITY)

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
