"""A public measure on the points of a grid, before any data is seen.

1. Dyadic shells around a public centre c: the shell {c}, and 2^(k−1) ≤ |t − c| < 2^k for k = 1..K. All shells have the
   same mass, which is spread evenly inside. So a point at a distance of some 2^k has a mass of about 2^(−k)/(K+1): the
   centre is a guess, and a wrong guess costs a logarithm.
2. Round points: what people write lies on coarser grids. Prices of a column in millionths are whole cents, timestamps
   whole days, and where most values are one such point, no shell would ever find it. So families of round points
   (``RoundPoints``) take a part of the mass from the shells, each spread evenly over its points. They are multiples of
   public numbers and lie where 0 says, wherever the centre is.
3. Between two bounds half of the mass is that of 1 and 2, cut to the bounds and not renormalised, and half is even: a
   bound that is far too wide costs a factor of 2.

A mixture of measures is one: a point in several components has the sum of their masses, and all masses together are
at most 1. Which components there are, and their masses, follows from declarations alone, so that nothing else has to be
proved. Masses are whole numbers over a common denominator, rounded down.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import add
from typing import NamedTuple

from idios.core.sampling import RandomSource, uniform_below
from idios.errors import InvalidInput

PARTS = 32
"""What shares of the shells' mass are multiples of: the share of a family is so many of these."""


class Stretch(NamedTuple):
    """The points first, first + step, …, last, which are multiples of ``step``; each has the mass ``weight``."""

    first: int
    last: int
    weight: int
    step: int = 1

    @property
    def points(self) -> int:
        """How many there are."""
        return (self.last - self.first) // self.step + 1


@dataclass(frozen=True)
class RoundPoints:
    """All d·grid with |d| ≤ ``most``, and with ``decimal`` those of as many digits that are up to ``end`` from 0.

    ``share`` is how many of 32 parts of the shells' mass they have, one point as much as another.

    >>> [stretch[:2] for stretch in RoundPoints(grid=2, most=9, share=8, end=300).list_stretches(0)]
    [(-200, -200), (-180, -20), (-18, 18), (20, 180), (200, 200)]
    """

    grid: int
    most: int
    share: int
    end: int = 0

    def __post_init__(self) -> None:
        if self.end and (self.most + 1) % 10:
            raise InvalidInput(f"round points of as many digits take a most that ends in 9, got {self.most}")

    def list_stretches(self, weight: int) -> list[Stretch]:
        """Them all, in ascending order."""
        outer, grid = [], self.grid
        while (self.most + 1) * grid <= self.end:  # numbers of as many digits, ten times as coarse
            first, grid = (self.most + 1) * grid, 10 * grid
            outer.append(Stretch(first, min(self.most, self.end // grid) * grid, weight, grid))
        inner = Stretch(-self.most * self.grid, self.most * self.grid, weight, self.grid)
        return [*(s._replace(first=-s.last, last=-s.first) for s in reversed(outer)), inner, *outer]


@dataclass(frozen=True)
class MixtureComponent:
    """A part of a measure: stretches in ascending order, each less than its step beyond the one before."""

    stretches: tuple[Stretch, ...]

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
        """The mass of all points below each of some, which are in ascending order."""
        begun = bisect_left(points, self.stretches[0].first)
        sums = [0] * begun
        place = bisect_left(self._lasts, points[begun]) if begun < len(points) else 0
        while begun < len(points) and place < len(self.stretches):
            first, last, weight, step = self.stretches[place]
            ended = bisect_right(points, last, begun)
            if step == 1:
                before = self._sums[place] - first * weight
                sums += [before + point * weight for point in points[begun:ended]]
            else:
                before = self._sums[place] - first // step * weight
                sums += [before - (-point // step) * weight for point in points[begun:ended]]
            begun, place = ended, place + 1
        return sums + [self.total] * (len(points) - begun)

    def locate(self, mass: int) -> int:
        """The point in whose mass a number below ``total`` falls, if all masses are put in a row."""
        place = bisect_right(self._sums, mass) - 1
        first, _, weight, step = self.stretches[place]
        return first + (mass - self._sums[place]) // weight * step


class _Row(NamedTuple):
    """The mass of a component from ``first`` on and before ``last``, without that from ``left`` to ``right``."""

    first: int
    left: int
    right: int
    last: int

    @property
    def mass(self) -> int:
        """How much that is."""
        return self.last - self.first - (self.right - self.left)


@dataclass(frozen=True)
class BaseMeasure:
    """``shells`` is K; ``low`` and ``high`` are bounds, either may be None.

    >>> free = BaseMeasure(centre=0, shells=2)
    >>> [stretch[:3] for stretch in free.stretches], free.denominator
    ([(-3, -2, 1), (-1, -1, 2), (0, 0, 4), (1, 1, 2), (2, 3, 1)], 12)
    >>> [c.total for c in BaseMeasure(centre=0, shells=2, rounds=(RoundPoints(grid=3, most=1, share=4),)).components]
    [336, 48]
    """

    centre: int
    shells: int
    low: int | None = None
    high: int | None = None
    rounds: tuple[RoundPoints, ...] = ()

    def __post_init__(self) -> None:
        if sum(family.share for family in self.rounds) >= PARTS:
            raise InvalidInput(f"round points have less than {PARTS} of {PARTS} parts: the shells need some")

    @property
    def _width(self) -> int:
        """The number of points between two bounds; 0 unless there are both."""
        return 0 if self.low is None or self.high is None else self.high - self.low + 1

    @property
    def _parts(self) -> int:
        """What the mass of the shells is divided into, so that families of round points get some."""
        return PARTS if self.rounds else 1

    @cached_property
    def denominator(self) -> int:
        """What the weights are divided by; all of them together have at most this much."""
        return (self.shells + 1 << self.shells) * (2 * self._width or 1) * self._parts

    @cached_property
    def components(self) -> tuple[MixtureComponent, ...]:
        """The shells with what is even, then each family of round points; those of which bounds leave nothing, not."""
        families = (family.list_stretches(self._weigh(family)) for family in self.rounds)
        cut = (self._cut(stretches) for stretches in (self._list_shells(), *families))
        return tuple(MixtureComponent(stretches) for stretches in cut if stretches)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The points that have a mass, component by component; some may be in several."""
        return tuple(stretch for component in self.components for stretch in component.stretches)

    def _weigh(self, family: RoundPoints) -> int:
        """The mass of each of its points, rounded down."""
        points = sum(stretch.points for stretch in family.list_stretches(0))
        return self.denominator * family.share // ((2 if self._width else 1) * PARTS * points)

    def _cut(self, stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
        """What bounds leave."""
        cut = []
        for first, last, weight, step in stretches:  # most shells lie outside of narrow bounds
            first = first if self.low is None else max(first, -(-self.low // step) * step)
            last = last if self.high is None else min(last, self.high // step * step)
            if weight and first <= last:
                cut.append(Stretch(first, last, weight, step))
        return tuple(cut)

    def _weigh_shells(self) -> tuple[int, int]:
        """The mass of a point of the outermost shell, which doubles with each further in, and what is even."""
        width = (self._width or 1) * (self._parts - sum(family.share for family in self.rounds))
        return width, (self.shells + 1 << self.shells) * self._parts if self._width else 0

    def _list_shells(self) -> Iterator[Stretch]:
        """The shells, with what is even; they follow each other without a gap."""
        centre, shells = self.centre, self.shells
        width, even = self._weigh_shells()
        outer = 1 << shells
        if even:
            yield Stretch(min(self.low or 0, centre - outer), centre - outer, even)
        for k in range(shells, 0, -1):
            yield Stretch(centre - (1 << k) + 1, centre - (1 << k >> 1), (width << shells - k) + even)
        yield Stretch(centre, centre, (width << shells) + even)
        for k in range(1, shells + 1):
            yield Stretch(centre + (1 << k >> 1), centre + (1 << k) - 1, (width << shells - k) + even)
        if even:
            yield Stretch(centre + outer, max(self.high or 0, centre + outer), even)

    @property
    def total(self) -> int:
        """The mass of all points."""
        return sum(component.total for component in self.components)

    def sum_below(self, points: Sequence[int]) -> list[int]:
        """The mass of all points below each of some, which are in ascending order.

        >>> BaseMeasure(centre=0, shells=2).sum_below([-9, -2, 0, 1, 9])
        [0, 1, 4, 8, 12]
        """
        shells, *families = self.components
        sums = shells.sum_below(points)
        for family in families:
            sums = list(map(add, sums, family.sum_below(points)))
        return sums

    def draw(
        self, within: tuple[int, int] | None, outside: tuple[int, int] | None, source: RandomSource | None = None
    ) -> int:
        """One of the points from one to another (``within``; None: of all), by their masses.

        Not those from one to another that lie within (``outside``).
        """
        rows = self._lay_out(within, outside)
        return self._locate(rows, uniform_below(sum([row.mass for row in rows]), source))

    def locate(self, mass: int, within: tuple[int, int] | None = None, outside: tuple[int, int] | None = None) -> int:
        """The point in whose mass a number falls, if all masses are put in a row, component after component.

        >>> [BaseMeasure(centre=0, shells=2).locate(mass) for mass in range(12)]
        [-3, -2, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3]
        >>> [BaseMeasure(centre=0, shells=2).locate(mass, (-3, 2), (-1, 1)) for mass in range(3)]
        [-3, -2, 2]
        """
        return self._locate(self._lay_out(within, outside), mass)

    def _lay_out(self, within: tuple[int, int] | None, outside: tuple[int, int] | None) -> list[_Row]:
        """What is to be put in a row of each component."""
        ends = [outside[0], outside[1] + 1] if outside else []
        if within:
            ends = [within[0], *ends, within[1] + 1]
        rows = []
        for component in self.components:
            sums = component.sum_below(ends)
            first, *inner, last = sums if within else [0, *sums, component.total]
            left, right = inner or (last, last)
            rows.append(_Row(first, left, right, last))
        return rows

    def _locate(self, rows: Sequence[_Row], mass: int) -> int:
        for component, row in zip(self.components, rows, strict=True):
            if mass < row.mass:
                place = row.first + mass
                return component.locate(place if place < row.left else place + row.right - row.left)
            mass -= row.mass
        raise AssertionError("the number is below the mass of all rows")

    @cached_property
    def least(self) -> Fraction:
        """The least mass that the shells give to a point: to the farthest one."""
        width, even = self._weigh_shells()
        ends = (self.low, self.high) if self.low is not None and self.high is not None else ()
        farthest = max([abs(end - self.centre).bit_length() for end in ends], default=self.shells)
        shell = width << self.shells - farthest if farthest <= self.shells else 0
        return Fraction(shell + even, self.denominator)
