"""What a statistic may know of the data: a handful of exact integers, read one by one or at many ranks at once.

A backend computes these where the data lives, and nothing else leaves it. Ranks count from 1 in
ascending order; a rank below 1 reads the lower bound of the domain and a rank above the size
its upper bound (possibly infinite), which is what makes the formulas of the statistics short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from idios.core.domain import Domain
from idios.core.exact import plus
from idios.core.neighbours import Moves

Whole: TypeAlias = NDArray[Any]
"""Whole numbers of 64 bits, or Python's own where those could overflow."""

NARROW = 2**62
"""What is known to stay below this is computed in 64 bits."""
NEARLY = 2.0**-40
"""Far more than the relative error of a quotient of floats."""


@dataclass(frozen=True)
class Window:
    """Consecutive order statistics, and the sum of all values of lower rank."""

    first: int
    values: tuple[int, ...]
    below: int = 0

    @cached_property
    def sums(self) -> list[int]:
        """The sum of all values of lower rank, then with one value of the window more at a time."""
        return list(accumulate(self.values, initial=self.below))


@dataclass(frozen=True)
class Summary:
    """One selection of one column, as far as one statistic needs it.

    >>> from idios.core.neighbours import Neighbours
    >>> five = Moves(Neighbours.REPLACE, size=5)
    >>> some = Summary(Domain(lower=0, upper=9), five, windows=(Window(2, (3, 3, 4), below=1),))
    >>> some.at(3), some.at(0), some.at(7), some.sum_of(2, 4)
    (3, 0, 9, 10)
    """

    domain: Domain
    moves: Moves
    windows: tuple[Window, ...] = ()
    total: int | None = None
    squares: int | None = None
    beside: Mapping[Fraction, tuple[int, ...]] = field(default_factory=dict)
    distinct: int | None = None
    rarest: tuple[int, ...] = ()
    counts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for window in self.windows:
            if window.values and not self.domain.low <= window.values[0] <= window.values[-1] <= self.domain.high:
                raise ValueError("a summary holds values of its domain, in ascending order")

    @property
    def size(self) -> int:
        """How many values are selected."""
        return self.moves.size

    def at(self, rank: int) -> int | float:
        """The value of a rank; the domain's bounds beyond the ends."""
        if rank < 1:
            return self.domain.low
        if rank > self.size:
            return self.domain.high
        for window in self.windows:
            if 0 <= rank - window.first < len(window.values):
                return window.values[rank - window.first]
        raise LookupError(f"rank {rank} of {self.size} was not summarised")

    def run(self, first: int, last: int) -> list[int | float]:
        """The values of the ranks first..last, with the bounds beyond the ends."""
        values: list[int | float] = [self.domain.low] * (min(last, 0) - first + 1)
        start, stop = max(first, 1), min(last, self.size)
        if start <= stop:
            for window in self.windows:
                if window.first <= start and stop < window.first + len(window.values):
                    values += window.values[start - window.first : stop - window.first + 1]
                    break
            else:
                raise LookupError(f"the ranks {start} to {stop} of {self.size} were not summarised")
        return values + [self.domain.high] * (last - max(first, self.size + 1) + 1)

    def sum_of(self, first: int, last: int) -> int | float:
        """The sum of the values of ranks first..last, with the bounds beyond the ends."""
        if last < first:
            return 0
        under = max(0, min(last, 0) - first + 1)
        over = max(0, last - max(first, self.size + 1) + 1)
        inner: int | float = 0
        if under + over < last - first + 1:
            inner = self._sum_up_to(min(last, self.size)) - self._sum_up_to(max(first, 1) - 1)
        # 0 · ∞ is not a number, so the ends are only added where something lies there
        if under:
            inner = plus(inner, under * self.domain.low)
        if over:
            inner = plus(inner, over * self.domain.high)
        return inner

    def repeated(self, rank: int, times: int) -> int | float:
        """The value of a rank so many times."""
        return times * self.at(rank) if times else 0  # 0 · ∞ is not a number

    def _sum_up_to(self, rank: int) -> int:
        if rank == 0:
            return 0
        if rank == self.size and self.total is not None:
            return self.total
        for window in self.windows:
            if 0 <= rank - window.first + 1 <= len(window.values):
                return window.sums[rank - window.first + 1]
        raise LookupError(f"the sum up to rank {rank} of {self.size} was not summarised")

    def known_total(self) -> int:
        """The sum of all selected values."""
        if self.total is None:
            raise LookupError("the sum was not summarised")
        return self.total

    def known_squares(self) -> int:
        """The sum of the squares of all selected values."""
        if self.squares is None:
            raise LookupError("the sum of squares was not summarised")
        return self.squares

    def known_distinct(self) -> int:
        """The number of different selected values."""
        if self.distinct is None:
            raise LookupError("the number of distinct values was not summarised")
        return self.distinct

    def known_counts(self) -> tuple[int, ...]:
        """How often each point of the domain is selected, in ascending order."""
        if self.counts is None:
            raise LookupError("the count of every point was not summarised")
        return self.counts


@dataclass(frozen=True)
class Ranks:
    """What ``Summary`` reads at one rank, for arrays of ranks that rise or fall and that one window holds.

    >>> from idios.core.neighbours import Neighbours
    >>> five = Moves(Neighbours.REPLACE, size=5)
    >>> some = Summary(Domain(lower=0, upper=9), five, windows=(Window(1, (1, 3, 3, 4, 8)),))
    >>> Ranks(some, 2).sum_of(np.array([2, 5]), np.array([4, 7])).tolist()
    [10, 26]
    """

    summary: Summary
    reach: int
    """How far beyond the ends of the data a rank may lie; it reads the bound there, which is finite then."""

    def sum_of(self, first: Whole, last: Whole) -> Whole:
        """The sums of the values of ranks first..last."""
        return self._read(last, self._sums, 1) - self._read(first - 1, self._sums, 1)

    def repeated(self, rank: Whole, times: Whole) -> Whole:
        """The values of some ranks, each so many times."""
        return times * self._read(rank, self._values, 0)

    def _read(self, rank: Whole, tables: Sequence[tuple[int, Whole]], slope: int) -> Whole:
        """The entries of one table; beyond its ends they go on as the bounds, or with the bounds as their slope."""
        least, most = sorted((int(rank[0]), int(rank[-1])))
        for start, table in tables:
            stop = start + len(table) - 1
            begins, ends = start == 1 - slope, stop == self.summary.size
            if (start <= least or begins) and (most <= stop or ends):
                break
        else:
            raise LookupError(f"the ranks {least} to {most} of {self.summary.size} were not summarised")
        inside = np.clip(rank, start, stop)
        inner, beyond = table[inside - start], (rank - inside).astype(self._type)
        low, high = self._bounds
        going_on: Whole = inner + np.minimum(beyond, 0) * low + np.maximum(beyond, 0) * high
        return going_on if slope else np.where(beyond < 0, low, np.where(beyond > 0, high, inner))

    @cached_property
    def _bounds(self) -> tuple[int, int]:
        domain = self.summary.domain
        return domain.lower or 0, domain.upper or 0

    @cached_property
    def _type(self) -> type:
        windows = self.summary.windows
        greatest = max(
            abs(n) for n in (*self._bounds, *(end for w in windows for end in (*w.values[:1], *w.values[-1:])))
        )
        sums = max(abs(n) for w in windows for n in w.sums)
        # the sums up to two ranks, and at most half as many repeated values at either end as there can be in all
        most = 2 * sums + (self.summary.size + 3 * self.reach) * greatest
        return np.int64 if most < NARROW else object

    @cached_property
    def _sums(self) -> list[tuple[int, Whole]]:
        return [(w.first - 1, np.array(w.sums, self._type)) for w in self.summary.windows]

    @cached_property
    def _values(self) -> list[tuple[int, Whole]]:
        return [(w.first, np.array(w.values, self._type)) for w in self.summary.windows]


def placed_quotient(numerators: Whole, denominators: Whole, resolution: int, *, greatest: bool) -> int:
    """⌊q·resolution + ½⌋ for the greatest, or the least, quotient q; exact.

    >>> placed_quotient(np.array([10, 7]), np.array([3, 2]), 100, greatest=True)
    350
    """
    try:
        quotients = numerators.astype(float) / denominators
        extreme = quotients.max() if greatest else quotients.min()
        close = abs(quotients - extreme) <= abs(extreme) * NEARLY
    except OverflowError:  # too large for a float
        close = np.full(len(numerators), True)
    n, d = numerators[close].astype(object), denominators[close].astype(object)
    placed = (2 * resolution * n + d) // (2 * d)
    return int(placed.max() if greatest else placed.min())
