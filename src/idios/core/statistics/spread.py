"""Measures of spread: the interquartile range; variance and standard deviation of bounded columns (dividing by n).

The interquartile range has its formulas in its class. Of the others:

With n values, their sum S and sum of squares Q, the variance is V = (n·Q − S²)/n². One change is
exact. As a function of the value x that leaves, V is a concave parabola, and of the value v that
comes, a convex one; so the highest variance is found at v ∈ {L, U} and x beside the vertex, the
lowest at x ∈ {x_1, x_n} and v beside the vertex:

    replace   vertex in x (S + v)/(n + 1),   in v (S − x)/(n − 1)
    remove    vertex in x S/n
    add                                      in v S/n

Past one change no closed form is known and a safe bound is used. One record moves the variance by at most
c(n) = (n−1)/n²·(U−L)², n the greater of the sizes before and after; c falls for n ≥ 2, and c(2) bounds c(1) = 0. So i
records move it by at most i·c(s), where none can be removed, and otherwise by at most i·c(s−i+1), as no step starts
from fewer values. The bound is nested: the step to a neighbour D′ costs at most c(s) ≤ c(s−i), D′ has at least s − 1
values, and i·c((s−1)−i+1) + c(s−i) = (i+1)·c(s−(i+1)+1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar

from idios.core.domain import Domain
from idios.core.exact import INFINITY, Extended, minus
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.base import FINENESS, Spelling, Statistic
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
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("IQR"),)
    function: ClassVar[str | None] = "iqr"
    coarse_floor: ClassVar[bool] = True
    equivariant: ClassVar[bool] = False

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The difference of the discrete quartiles."""
        first, third = FIRST_QUARTILE.define(values), THIRD_QUARTILE.define(values)
        return None if first is None or third is None else third - first

    def exact_reach(self, neighbours: Neighbours) -> float:
        """Exact under replace."""
        return INFINITY if neighbours is Neighbours.REPLACE else 0

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


@dataclass(frozen=True)
class Variance(Statistic):
    """(1/n)·Σ(x − mean)², in squared units of the column."""

    name: ClassVar[str] = "variance"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("VARIANCE"), Spelling("VAR_POP", synonym=True))
    function: ClassVar[str | None] = "variance"
    advice: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("VAR_SAMP", "VAR"), "VARIANCE(column), which divides by n, is offered"
    )
    fractional: ClassVar[bool] = True
    equivariant: ClassVar[bool] = False
    degree: ClassVar[int] = 2
    needs_sums: ClassVar[bool] = True
    needs_squares: ClassVar[bool] = True

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The mean squared distance from the mean."""
        if not values:
            return None
        centre = Fraction(sum(values), len(values))
        return sum(((value - centre) ** 2 for value in values), Fraction(0)) / len(values)

    def exact_reach(self, neighbours: Neighbours) -> float:
        """One change."""
        return 1

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """Exact at one change, the safe bound of the module's text beyond."""
        size, total, squares = summary.size, summary.known_total(), summary.known_squares()
        value = _variance(size, total, squares)
        if distance == 0:
            return value, value
        if distance == 1:
            values = [value, *self._after_one_change(summary, total, squares)]
            return min(values), max(values)
        step = self._greatest_step(summary.domain, size if summary.moves.whole else size - distance + 1)
        if step == INFINITY:
            return 0, INFINITY
        moved = distance * Fraction(step)
        return max(Fraction(0), value - moved), min(Fraction(self.range(summary.domain)[1]), value + moved)

    def _after_one_change(self, summary: Summary, total: int, squares: int) -> Iterator[Extended]:
        n, domain, moves = summary.size, summary.domain, summary.moves
        ends = (int(summary.at(1)), int(summary.at(n)))
        if moves.most_removed(1) and n > 1:
            for x in (*ends, *summary.beside[Fraction(total, n)]):
                yield _variance(n - 1, total - x, squares - x * x)
        if moves.most_added(1):
            for v in _beside(Fraction(total, n), domain):
                yield _variance(n + 1, total + v, squares + v * v)
            if not domain.bounded:
                yield INFINITY
            else:
                for v in (int(domain.low), int(domain.high)):
                    yield _variance(n + 1, total + v, squares + v * v)
        if moves.neighbours is Neighbours.REPLACE and n > 1:
            for x in ends:
                for v in _beside(Fraction(total - x, n - 1), domain):
                    yield _variance(n, total - x + v, squares - x * x + v * v)
            if not domain.bounded:
                yield INFINITY
            else:
                for v in (int(domain.low), int(domain.high)):
                    for x in summary.beside[Fraction(total + v, n + 1)]:
                        yield _variance(n, total - x + v, squares - x * x + v * v)

    def _greatest_step(self, domain: Domain, size: int) -> Extended:
        n = max(size, 2)
        return Fraction(n - 1, n * n) * minus(domain.high, domain.low) ** 2

    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """Between 0 and a quarter of the squared width."""
        return 0, Fraction(1, 4) * minus(domain.high, domain.low) ** 2

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """The two ends."""
        return [(1, 1), (moves.size, moves.size)]

    def thresholds(self, moves: Moves, domain: Domain, total: int) -> Iterable[Fraction]:
        """The vertices in the value that leaves."""
        if moves.size:
            yield Fraction(total, moves.size)
            for bound in (domain.lower, domain.upper):
                if bound is not None:
                    yield Fraction(total + bound, moves.size + 1)

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """(n−1)/n²·(U−L)² where n is public."""
        if not (moves.whole and domain.bounded):
            return None
        n = max(moves.size, 1)
        return Fraction(n - 1, n * n) * minus(domain.high, domain.low) ** 2

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """Both bounds."""
        return "bounds" if distance and not domain.bounded else None


@dataclass(frozen=True)
class StandardDeviation(Variance):
    """√variance, in units of the column: the variance's envelope, placed on the grid through the root."""

    name: ClassVar[str] = "standard_deviation"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("STDDEV"), Spelling("STDDEV_POP", synonym=True))
    function: ClassVar[str | None] = "stddev"
    advice: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("STDDEV_SAMP", "STD", "STDEV"), "STDDEV(column), which divides by n, is offered"
    )
    degree: ClassVar[int] = 1

    def place(self, value: Extended, fineness: int = FINENESS) -> int | float:
        """⌊√v·fineness + ½⌋, exactly: with r = ⌊2·fineness·√v⌋ it is ⌊(r + 1)/2⌋."""
        if value == INFINITY:
            return INFINITY
        v = Fraction(value) * (2 * fineness) ** 2
        return (isqrt(v.numerator // v.denominator) + 1) // 2

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """Not small: a root is steep at 0."""
        return None


def _variance(n: int, total: int, squares: int) -> Fraction:
    return Fraction(n * squares - total * total, n * n)


def _beside(point: Fraction, domain: Domain) -> set[int]:
    """The grid points of the domain nearest to a point, from below and from above."""
    below = point.numerator // point.denominator
    return {domain.clamp(below), domain.clamp(below + 1)}
