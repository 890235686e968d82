"""Order statistics: minimum, maximum, k-th, quantiles, median.

All of them read one (possibly fractional) position p(s) of the s sorted values:

    k-th smallest       p(s) = k                      minimum: k = 1
    k-th largest        p(s) = s − k + 1              maximum: k = 1
    discrete quantile   p(s) = max(1, ⌈q·s⌉)
    quantile            p(s) = 1 + q·(s − 1), interpolating between neighbouring ranks
    median              the quantile of q = ½

and p grows by at most one, and never falls, when a value is added. So under replace i changes
reach exactly the positions p(s) ± i; under add-remove the extremes are i additions or i removals,
never a mixture: with a additions and i − a removals the highest position is p(s + 2a − i) + i − a,
and in a its steps are all of one sign (p gains at least, or at most, 1 for two more values,
according to whether q ≥ ½ or not).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from idios.core.domain import Domain
from idios.core.envelope import Envelope
from idios.core.exact import Extended, exact, whole
from idios.core.neighbours import Exchange, Moves, Neighbours
from idios.core.statistics.base import FINENESS, MonotoneStatistic
from idios.core.summary import Summary
from idios.errors import InvalidInput


class OrderStatistic(MonotoneStatistic):
    """The value at one position of the sorted selection."""

    coarse_floor = True

    @abstractmethod
    def position(self, size: int) -> tuple[int, int]:
        """p(s), counted from 1, as numerator and denominator: fractions are slow, and this is asked for every i."""

    def read(self, summary: Summary, size: int, offset: int) -> Extended:
        """The value at p(size) + offset, interpolated where the position is fractional."""
        value, parts = self._reading(summary, size, offset)
        return value if isinstance(value, float) else Fraction(value, parts)

    def placed_limits(self, summary: Summary, distance: int, fineness: int) -> tuple[int | float, int | float]:
        """``limits`` on the answer's grid, in whole numbers alone."""
        resolution = self.resolution(fineness)
        lows, highs = [], []
        for dropped, placed in self.extreme_exchanges(summary.moves, distance):
            size = summary.size - dropped + placed
            lows.append(_placed(*self._reading(summary, size, -placed), resolution))
            highs.append(_placed(*self._reading(summary, size, dropped), resolution))
        return min(lows), max(highs)

    def envelope(self, summary: Summary, distance: int, fineness: int = FINENESS) -> Envelope:
        """Under replace all distances read one run of ranks around the position, at the same place between two."""
        moves = summary.moves
        if moves.neighbours is not Neighbours.REPLACE or moves.size < self.least_size:
            return super().envelope(summary, distance, fineness)
        defined = distance if moves.whole else min(distance, moves.size - self.least_size)
        reach = min(defined, moves.size)
        numerator, parts = self.position(moves.size)
        rank, rest = divmod(numerator, parts)
        run = summary.run(rank - reach, rank + reach + (rest > 0))
        above = run[1:] if rest else run
        half, first, second = (
            2 * parts,
            2 * (parts - rest) * self.resolution(fineness),
            2 * rest * self.resolution(fineness),
        )
        placed = [
            a if isinstance(a, float) else b if isinstance(b, float) else (first * a + second * b + parts) // half
            for a, b in zip(run, above, strict=False)
        ]
        low, high = (self.place(end, fineness) for end in self.range(summary.domain))
        lows, highs = placed[reach::-1], placed[reach:]
        lows += lows[-1:] * (defined - reach) + [low] * (distance - defined)
        highs += highs[-1:] * (defined - reach) + [high] * (distance - defined)
        return Envelope(int(placed[reach]), tuple(lows), tuple(highs))

    def _reading(self, summary: Summary, size: int, offset: int) -> tuple[int | float, int]:
        """``read`` as numerator and denominator; an infinity over 1."""
        numerator, parts = self.position(size)
        rank, rest = divmod(numerator + offset * parts, parts)
        below = summary.at(rank)
        if not rest or isinstance(below, float):
            return below, 1  # −∞, as only the lower bound lies below a position
        above = summary.at(rank + 1)
        return (above, 1) if isinstance(above, float) else ((parts - rest) * below + rest * above, parts)

    def extreme_exchanges(self, moves: Moves, distance: int) -> Iterable[Exchange]:
        """All additions or all removals under add-remove; replacements under replace."""
        if moves.neighbours is Neighbours.REPLACE:
            return moves.extreme_exchanges(distance)
        return {Exchange(0, distance), Exchange(distance, 0)}

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """One run around the position, as far as the statistic stays defined."""
        defined = distance if moves.whole else min(distance, moves.size - self.least_size)
        if defined < 0:
            return []
        down, up = [], []
        for dropped, placed in self.extreme_exchanges(moves, defined):
            numerator, parts = self.position(moves.size - dropped + placed)
            down.append(numerator // parts - placed)
            up.append(-(-numerator // parts) + dropped)
        return [(min(down), max(up))]


def _placed(value: int | float, parts: int, resolution: int) -> int | float:
    """⌊value/parts · resolution + ½⌋, infinities kept."""
    return value if isinstance(value, float) else (2 * value * resolution + parts) // (2 * parts)


@dataclass(frozen=True)
class KthSmallest(OrderStatistic):
    """The k-th smallest value; the paper's way round an unbounded minimum is k = 2.

    A_i = max(x_{k+i} − x_k, x_k − x_{k−i}), free of the domain while i ≤ min(k − 1, n − k).
    """

    k: int = 1
    name: ClassVar[str] = "kth_smallest"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k"))

    @property
    def least_size(self) -> int:
        """k values."""
        return self.k

    def position(self, size: int) -> tuple[int, int]:
        """p(s) = k."""
        return self.k, 1

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """A lower bound, where that many changes reach below every value."""
        return "a lower bound" if self.k <= distance and domain.lower is None else None


@dataclass(frozen=True)
class KthLargest(OrderStatistic):
    """The k-th largest value; the paper's way round an unbounded maximum is k = 2.

    A_i = max(x_{n−k+1+i} − x_{n−k+1}, x_{n−k+1} − x_{n−k+1−i}); a group of g needs k > g.
    """

    k: int = 1
    name: ClassVar[str] = "kth_largest"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k"))

    @property
    def least_size(self) -> int:
        """k values."""
        return self.k

    def position(self, size: int) -> tuple[int, int]:
        """p(s) = s − k + 1."""
        return size - self.k + 1, 1

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """An upper bound, where that many changes reach above every value."""
        return "an upper bound" if self.k <= distance and domain.upper is None else None


@dataclass(frozen=True)
class Minimum(KthSmallest):
    """The least value: A_i = max(x_1 − L, x_{1+i} − x_1)."""

    name: ClassVar[str] = "minimum"


@dataclass(frozen=True)
class Maximum(KthLargest):
    """The greatest value: A_i = max(U − x_n, x_n − x_{n−i})."""

    name: ClassVar[str] = "maximum"


@dataclass(frozen=True)
class _Share(OrderStatistic):
    """A quantile of either kind: a share q of the values lies below."""

    q: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        q = exact(self.q, "q")
        if not 0 <= q <= 1:
            raise InvalidInput(f"q must be between 0 and 1, got {self.q!r}")
        object.__setattr__(self, "q", q)

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """Only the outermost quantiles, which are the extremes, need one."""
        if distance and self.q == 0 and domain.lower is None:
            return "a lower bound"
        if distance and self.q == 1 and domain.upper is None:
            return "an upper bound"
        return None


@dataclass(frozen=True)
class DiscreteQuantile(_Share):
    """The least value with at least a share q of the values at or below it (PERCENTILE_DISC)."""

    name: ClassVar[str] = "discrete_quantile"

    def position(self, size: int) -> tuple[int, int]:
        """p(s) = max(1, ⌈q·s⌉)."""
        return max(1, -(-self.q.numerator * size // self.q.denominator)), 1


@dataclass(frozen=True)
class Quantile(_Share):
    """The quantile interpolated between neighbouring ranks (PERCENTILE_CONT)."""

    name: ClassVar[str] = "quantile"
    fractional: ClassVar[bool] = True

    def position(self, size: int) -> tuple[int, int]:
        """p(s) = 1 + q·(s − 1)."""
        return self.q.denominator + self.q.numerator * (size - 1), self.q.denominator


@dataclass(frozen=True)
class Median(Quantile):
    """The middle value, or the mean of the middle two.

    Odd n, m = (n+1)/2: A_i = max(x_{m+i} − x_m, x_m − x_{m−i}).
    Even n, h = n/2: LS = max(x_{h+2} − x_h, x_{h+1} − x_{h−1})/2.
    """

    name: ClassVar[str] = "median"
