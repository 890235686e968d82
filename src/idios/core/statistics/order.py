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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from math import floor
from operator import add, sub
from typing import ClassVar, Self

from idios.core.domain import Domain
from idios.core.envelope import Envelope
from idios.core.exact import exact, text, whole
from idios.core.neighbours import Exchange, Moves, Neighbours
from idios.core.statistics.base import (
    FINENESS,
    ORDER,
    ORDERED,
    QUANTILE_SHARE,
    MonotoneStatistic,
    Parameter,
    Parameters,
    Spelling,
    Statistic,
)
from idios.core.summary import Summary
from idios.errors import InvalidInput

MOST_PARTS = 1000
"""Quantiles are answered on this part of a step at the finest."""


def _interpolate(between: Sequence[tuple[int | float, int | float, int]], parts: int) -> list[int | float]:
    """Values ``rest`` parts of the way from one to the next, times the number of parts; an infinite end wins.

    >>> from math import inf
    >>> _interpolate([(4, 6, 1), (4, inf, 1), (10**400, inf, 1)], 2)
    [10, inf, inf]
    """
    try:
        return [(parts - rest) * below + (rest and rest * above) for below, above, rest in between]
    except OverflowError:  # a number greater than any float, beside an infinite end
        return [_interpolate_one(*pair, parts) for pair in between]


def _interpolate_run(run: Sequence[int | float], rest: int, parts: int) -> list[int | float]:
    """The same between each of a run and the next; where ``rest`` is 0, at each of the run itself.

    >>> _interpolate_run([4, 6, 9], 1, 2), _interpolate_run([4, 6, 9], 0, 2), _interpolate_run([4, 6, 9], 1, 4)
    ([10, 15], [8, 12, 18], [18, 27])
    """
    if not rest:
        return [parts * value for value in run]
    if parts == 2:
        with suppress(OverflowError):  # a number greater than any float, beside an infinite end
            return list(map(add, run, run[1:]))
    return _interpolate(list(zip(run, run[1:], repeat(rest))), parts)


def _interpolate_one(below: int | float, above: int | float, rest: int, parts: int) -> int | float:
    if not rest or isinstance(below, float):
        return below * parts
    return above if isinstance(above, float) else (parts - rest) * below + rest * above


class OrderStatistic(MonotoneStatistic):
    """The value at one position of the sorted selection."""

    kinds = ORDERED
    coarse_floor = True

    @abstractmethod
    def position(self, size: int) -> tuple[int, int]:
        """p(s), counted from 1, as numerator and denominator, which is that of every size.

        Fractions are slow, and this is asked for every i.
        """

    def positions(self, sizes: range) -> Sequence[int]:
        """The numerators of p(s) for many sizes."""
        return [self.position(size)[0] for size in sizes]

    def read_parts(self, summary: Summary, size: int, offset: int) -> tuple[int | float, int]:
        """The value at p(size) + offset, interpolated where the position is fractional."""
        numerator, parts = self.position(size)
        rank, rest = divmod(numerator + offset * parts, parts)
        below = summary.at(rank)
        if not rest or isinstance(below, float):
            return below, 1  # −∞, as only the lower bound lies below a position
        above = summary.at(rank + 1)
        return above if isinstance(above, float) else (parts - rest) * below + rest * above, parts

    def envelope(self, summary: Summary, distance: int, fineness: int = FINENESS) -> Envelope:
        """All distances read one run of ranks; under replace around the position, at the same place between two."""
        moves = summary.moves
        if moves.size < self.least_size:
            return super().envelope(summary, distance, fineness)
        if moves.neighbours is Neighbours.ADD_REMOVE:
            return self._count_arrivals(summary, distance, fineness)
        defined = distance if moves.whole else min(distance, moves.size - self.least_size)
        reach = min(defined, moves.size)
        numerator, parts = self.position(moves.size)
        rank, rest = divmod(numerator, parts)
        run = summary.run(rank - reach, rank + reach + (rest > 0))
        placed = _interpolate_run(run, rest, parts)
        low, high = (self.place(end, fineness) for end in self.range(summary.domain))
        lows, highs = placed[reach::-1], placed[reach:]
        lows += lows[-1:] * (defined - reach) + [low] * (distance - defined)
        highs += highs[-1:] * (defined - reach) + [high] * (distance - defined)
        return Envelope(int(placed[reach]), tuple(lows), tuple(highs))

    def _count_arrivals(self, summary: Summary, distance: int, fineness: int) -> Envelope:
        """The envelope under add-remove: i additions or i removals, whichever leads further.

        i additions lead down to p(s + i) − i and up to p(s + i), removals down to p(s − i) and up to p(s − i) + i.
        """
        size, parts = summary.size, self.position(summary.size)[1]
        defined = min(distance, size - self.least_size)
        ((first, last),) = self.ranks(summary.moves, defined)
        run = [*summary.run(first, last), summary.domain.high]
        # places in the run, in parts of a rank; i removals with i ranks less to go down are i additions, and so on
        start = first * parts
        more = [place - start for place in self.positions(range(size, size + defined + 1))]
        fewer = [place - start for place in self.positions(range(size, size - defined - 1, -1))]
        ranks = range(0, parts * (defined + 1), parts)

        def read(places: Iterable[int]) -> list[int | float]:
            """The values there, interpolated, on the answer's grid."""
            between = [(run[rank], run[rank + 1], rest) for rank, rest in map(divmod, places, repeat(parts))]
            return _interpolate(between, parts)

        lows = read(map(min, map(sub, more, ranks), fewer))
        highs = read(map(max, more, map(add, fewer, ranks)))
        low, high = (self.place(end, fineness) for end in self.range(summary.domain))
        undefined = distance - defined
        return Envelope(int(lows[0]), (*lows, *[low] * undefined), (*highs, *[high] * undefined))

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


@dataclass(frozen=True)
class _Kth(OrderStatistic):
    """The k-th value from one end; that end itself for k = 1."""

    k: int = 1
    parameter: ClassVar[Parameter | None] = ORDER

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k"))

    @property
    def least_size(self) -> int:
        """k values."""
        return self.k

    def alternatives(self, parameters: Parameters) -> Iterator[Statistic]:
        """The same further from the end."""
        further = KthLargest if isinstance(self, KthLargest) else KthSmallest
        yield from (further(k) for k in parameters.orders if k > self.k)

    def advise(self, distance: int) -> str:
        """An order that so many changes do not reach."""
        return f"k ≥ {distance + 1}"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The paper's second, and one further in."""
        return (cls(2), cls(3))


@dataclass(frozen=True)
class KthSmallest(_Kth):
    """The k-th smallest value; the paper's way round an unbounded minimum is k = 2.

    A_i = max(x_{k+i} − x_k, x_k − x_{k−i}), free of the domain while i ≤ min(k − 1, n − k).
    """

    name: ClassVar[str] = "kth_smallest"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("KTH_SMALLEST"),)
    function: ClassVar[str | None] = "kth_smallest"

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The k-th from below."""
        return values[self.k - 1] if len(values) >= self.k else None

    def position(self, size: int) -> tuple[int, int]:
        """p(s) = k."""
        return self.k, 1

    def normalise(self) -> Statistic:
        """The first smallest is the minimum."""
        return Minimum() if self.k == 1 else KthSmallest(self.k)

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """A lower bound, where that many changes reach below every value."""
        return "a lower bound" if self.k <= distance and domain.lower is None else None


@dataclass(frozen=True)
class KthLargest(_Kth):
    """The k-th largest value; the paper's way round an unbounded maximum is k = 2.

    A_i = max(x_{n−k+1+i} − x_{n−k+1}, x_{n−k+1} − x_{n−k+1−i}); a group of g needs k > g.
    """

    name: ClassVar[str] = "kth_largest"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("KTH_LARGEST"),)
    function: ClassVar[str | None] = "kth_largest"

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The k-th from above."""
        return values[-self.k] if len(values) >= self.k else None

    def position(self, size: int) -> tuple[int, int]:
        """p(s) = s − k + 1."""
        return size - self.k + 1, 1

    def normalise(self) -> Statistic:
        """The first largest is the maximum."""
        return Maximum() if self.k == 1 else KthLargest(self.k)

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """An upper bound, where that many changes reach above every value."""
        return "an upper bound" if self.k <= distance and domain.upper is None else None


@dataclass(frozen=True)
class Minimum(KthSmallest):
    """The least value: A_i = max(x_1 − L, x_{1+i} − x_1)."""

    name: ClassVar[str] = "minimum"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("MIN"),)
    function: ClassVar[str | None] = "minimum"
    parameter: ClassVar[Parameter | None] = None

    def advise(self, distance: int) -> str:
        """The k-th smallest."""
        return f"kth_smallest with {super().advise(distance)}"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The minimum."""
        return (cls(),)


@dataclass(frozen=True)
class Maximum(KthLargest):
    """The greatest value: A_i = max(U − x_n, x_n − x_{n−i})."""

    name: ClassVar[str] = "maximum"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("MAX"),)
    function: ClassVar[str | None] = "maximum"
    parameter: ClassVar[Parameter | None] = None

    def advise(self, distance: int) -> str:
        """The k-th largest."""
        return f"kth_largest with {super().advise(distance)}"

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The maximum."""
        return (cls(),)


@dataclass(frozen=True)
class _AnyQuantile(OrderStatistic):
    """A quantile of either kind: a share q of the values lies below."""

    q: Fraction = Fraction(1, 2)
    parameter: ClassVar[Parameter | None] = QUANTILE_SHARE

    def __post_init__(self) -> None:
        q = exact(self.q, "q")
        if not 0 <= q <= 1:
            percent = f": did you mean {text(q / 100)}?" if q.denominator == 1 and 1 < q < 100 else ""
            raise InvalidInput(f"q must be a share between 0 and 1, got {text(q)}{percent}")
        if q.denominator > MOST_PARTS:
            raise InvalidInput(f"q must be a fraction with a denominator of at most {MOST_PARTS}, got {text(q)}")
        object.__setattr__(self, "q", q)

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """Only the outermost quantiles, which are the extremes, need one."""
        if distance and self.q == 0 and domain.lower is None:
            return "a lower bound"
        if distance and self.q == 1 and domain.upper is None:
            return "an upper bound"
        return None

    def find_objection(self, parameters: Parameters) -> str | None:
        """The outermost quantiles have names of their own."""
        if self.q in (0, 1):
            end, kth = ("MIN", "KTH_SMALLEST") if self.q == 0 else ("MAX", "KTH_LARGEST")
            return f"q lies strictly between 0 and 1: ask for {end}(column) or {kth}(column, k)"
        return super().find_objection(parameters)

    def advise(self, distance: int) -> str:
        """A quantile further inside."""
        return "a quantile strictly between 0 and 1" if self.q in (0, 1) else "a quantile further from the ends"


@dataclass(frozen=True)
class DiscreteQuantile(_AnyQuantile):
    """The least value with at least a share q of the values at or below it (PERCENTILE_DISC)."""

    name: ClassVar[str] = "discrete_quantile"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("PERCENTILE_DISC", within_group=True),)
    advice: ClassVar[Mapping[str, str]] = {"QUANTILE_DISC": "PERCENTILE_DISC(column, q) is offered"}

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The first value whose share of the list, itself included, reaches q."""
        return next((value for rank, value in enumerate(values, 1) if rank >= self.q * len(values)), None)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Inner and outer ones, between ranks and at them."""
        return tuple(cls(Fraction(q)) for q in ("1/2", "9/10", "1/3", "1/4", "0"))

    def position(self, size: int) -> tuple[int, int]:
        """p(s) = max(1, ⌈q·s⌉)."""
        return max(1, -(-self.q.numerator * size // self.q.denominator)), 1


@dataclass(frozen=True)
class Quantile(_AnyQuantile):
    """The quantile interpolated between neighbouring ranks (PERCENTILE_CONT)."""

    name: ClassVar[str] = "quantile"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("PERCENTILE_CONT", within_group=True), Spelling("QUANTILE"))
    function: ClassVar[str | None] = "quantile"
    advice: ClassVar[Mapping[str, str]] = {"QUANTILE_CONT": "PERCENTILE_CONT(column, q) is offered"}
    fractional: ClassVar[bool] = True

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The value a share q of the way from the first to the last, on the line through the ranks."""
        if not values:
            return None
        place = self.q * (len(values) - 1)
        below, above = values[floor(place)], values[min(floor(place) + 1, len(values) - 1)]
        return below + (place - floor(place)) * (above - below)

    def normalise(self) -> Statistic:
        """The quantile of ½ is the median."""
        return Median() if self.q == Fraction(1, 2) else Quantile(self.q)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Inner and outer ones."""
        return tuple(cls(Fraction(q)) for q in ("1/3", "1/10", "4/5", "1"))

    def resolution(self, fineness: int = FINENESS) -> int:
        """The denominator of q: the value is a whole multiple of that part of a step, and never rounded."""
        return self.q.denominator

    def position(self, size: int) -> tuple[int, int]:
        """p(s) = 1 + q·(s − 1)."""
        return self.q.denominator + self.q.numerator * (size - 1), self.q.denominator

    def positions(self, sizes: range) -> Sequence[int]:
        """They are as far apart as the sizes, times q."""
        share, parts = self.q.numerator, self.q.denominator
        if not share:
            return [parts] * len(sizes)
        return range(parts + share * (sizes.start - 1), parts + share * (sizes.stop - 1), share * sizes.step)


@dataclass(frozen=True)
class Median(Quantile):
    """The middle value, or the mean of the middle two.

    Odd n, m = (n+1)/2: A_i = max(x_{m+i} − x_m, x_m − x_{m−i}).
    Even n, h = n/2: LS = max(x_{h+2} − x_h, x_{h+1} − x_{h−1})/2.
    """

    name: ClassVar[str] = "median"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("MEDIAN"),)
    function: ClassVar[str | None] = "median"
    parameter: ClassVar[Parameter | None] = None
    advice: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The median."""
        return (cls(),)
