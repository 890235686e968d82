"""A public measure on the points of a grid, before any data is seen.

Dyadic shells around a public centre c: the shell {c}, and 2^(k−1) ≤ |t − c| < 2^k for k = 1..K. All shells have the
same mass, which is spread evenly inside. So a point at a distance of some 2^k has a mass of about 2^(−k)/(K+1): the
centre is a guess, and a wrong guess costs a logarithm. Between two bounds half of the mass is that of the shells, cut
to the bounds and not renormalised, and half is even: a bound that is far too wide costs a factor of 2.

Masses are whole numbers over a common denominator.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple


class Stretch(NamedTuple):
    """The points first..last, of which each has the mass ``weight``."""

    first: int
    last: int
    weight: int

    @property
    def points(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class BaseMeasure:
    """``shells`` is K; ``low`` and ``high`` are bounds, either may be None.

    >>> free = BaseMeasure(centre=0, shells=2)
    >>> [(s.first, s.last, s.weight) for s in free.stretches], free.denominator
    ([(-3, -2, 1), (-1, -1, 2), (0, 0, 4), (1, 1, 2), (2, 3, 1)], 12)
    """

    centre: int
    shells: int
    low: int | None = None
    high: int | None = None

    @property
    def _width(self) -> int:
        """The number of points between two bounds; 0 unless there are both."""
        return 0 if self.low is None or self.high is None else self.high - self.low + 1

    @cached_property
    def denominator(self) -> int:
        """What the weights are divided by; all of them together have at most this much."""
        return (self.shells + 1 << self.shells) * (2 * self._width or 1)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The points that have a mass, in ascending order, cut where the mass changes."""
        cut = []
        for first, last, weight in self._list_whole():  # most shells lie outside of narrow bounds
            first = first if self.low is None else max(first, self.low)
            last = last if self.high is None else min(last, self.high)
            if first <= last:
                cut.append(Stretch(first, last, weight))
        return tuple(cut)

    def _list_whole(self) -> Iterator[tuple[int, int, int]]:
        """The same before points outside of bounds are left out."""
        centre, shells, width = self.centre, self.shells, self._width or 1
        even = shells + 1 << shells if self._width else 0
        outer = 1 << shells
        if even:
            yield min(self.low or 0, centre - outer), centre - outer, even
        for k in range(shells, 0, -1):
            yield centre - (1 << k) + 1, centre - (1 << k >> 1), (width << shells - k) + even
        yield centre, centre, (width << shells) + even
        for k in range(1, shells + 1):
            yield centre + (1 << k >> 1), centre + (1 << k) - 1, (width << shells - k) + even
        if even:
            yield centre + outer, max(self.high or 0, centre + outer), even

    @cached_property
    def _sums(self) -> list[int]:
        """The mass of all stretches before each, and in the end of all."""
        return list(accumulate((stretch.points * stretch.weight for stretch in self.stretches), initial=0))

    @cached_property
    def _lasts(self) -> list[int]:
        return [stretch.last for stretch in self.stretches]

    @property
    def total(self) -> int:
        """The mass of all points."""
        return self._sums[-1]

    def sum_below(self, points: Sequence[int]) -> list[int]:
        """The mass of all points below each of some, which are in ascending order.

        >>> BaseMeasure(centre=0, shells=2).sum_below([-9, -2, 0, 1, 9])
        [0, 1, 4, 8, 12]
        """
        begun = bisect_left(points, self.stretches[0].first)
        sums = [0] * begun
        place = bisect_left(self._lasts, points[begun]) if begun < len(points) else 0
        while begun < len(points) and place < len(self.stretches):
            first, last, weight = self.stretches[place]
            ended = bisect_right(points, last, begun)
            before = self._sums[place] - first * weight
            sums += [before + point * weight for point in points[begun:ended]]
            begun, place = ended, place + 1
        return sums + [self.total] * (len(points) - begun)

    def locate(self, mass: int) -> int:
        """The point in whose mass a number below ``total`` falls, if all masses are put in a row.

        >>> [BaseMeasure(centre=0, shells=2).locate(mass) for mass in range(12)]
        [-3, -2, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3]
        """
        place = bisect_right(self._sums, mass) - 1
        first, _, weight = self.stretches[place]
        return first + (mass - self._sums[place]) // weight

    @cached_property
    def least(self) -> Fraction:
        """The least mass of a point that has one."""
        return Fraction(min(stretch.weight for stretch in self.stretches), self.denominator)
