"""Variance and standard deviation of bounded columns (dividing by n).

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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar

from idios.core.domain import Domain
from idios.core.exact import INFINITY, Extended, minus
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.base import FINENESS, Statistic
from idios.core.summary import Summary


@dataclass(frozen=True)
class Variance(Statistic):
    """(1/n)·Σ(x − mean)², in squared units of the column."""

    name: ClassVar[str] = "variance"
    fractional: ClassVar[bool] = True
    degree: ClassVar[int] = 2
    needs_sums: ClassVar[bool] = True
    needs_squares: ClassVar[bool] = True

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """Exact at one change, the safe bound of the module's text beyond."""
        size, total, squares = summary.size, summary.known_total(), summary.known_squares()
        value = _variance(size, total, squares)
        if distance == 0:
            return value, value
        if distance == 1:
            found = [value, *self._after_one_change(summary, total, squares)]
            return min(found), max(found)
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
