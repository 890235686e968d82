"""A summary read at many ranks at once, in exact whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from idios.core.summary import Summary

Whole: TypeAlias = NDArray[Any]
"""Whole numbers of 64 bits, or Python's own where those could overflow."""

NARROW = 2**62
"""What is known to stay below this is computed in 64 bits."""
NEARLY = 2.0**-40
"""Far more than the relative error of a quotient of floats."""


@dataclass(frozen=True)
class Ranks:
    """What ``Summary`` reads at one rank, for arrays of ranks that rise or fall and that one window holds.

    >>> from idios.core.domain import Domain
    >>> from idios.core.neighbours import Moves, Neighbours
    >>> from idios.core.summary import Window
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
        found, beyond = table[inside - start], (rank - inside).astype(self._type)
        low, high = self._bounds
        going_on: Whole = found + np.minimum(beyond, 0) * low + np.maximum(beyond, 0) * high
        return going_on if slope else np.where(beyond < 0, low, np.where(beyond > 0, high, found))

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
