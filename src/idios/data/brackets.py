"""Order statistics without sorting: guess where they lie from a sample, count, and look inside only.

    sketch    discrete quantiles of a small sample of the column
    bracket   an interval of values that should contain the wanted ranks, by the sketch
    piece     what one pass over the data finds there: how many values lie below it (and their sum), and those inside

A sample is never trusted. The counts say which ranks a piece holds; ranks that fell outside are looked for again, and
in the end by sorting. So a bad sample costs time and nothing else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from idios.core.domain import LIMIT
from idios.core.summary import Window
from idios.data.arrays import exact_sum

ENOUGH = 300
"""A sketch of fewer sampled values than this is not used."""

DEVIATIONS = 4
"""How many standard deviations a bracket allows for: one in 15,000 misses."""


@dataclass(frozen=True)
class Bracket:
    """All points from ``low`` to ``high``. An end that many records share (``tied``) is counted, not fetched."""

    low: int
    high: int
    tied_low: bool = False
    tied_high: bool = False
    start: int | None = field(default=None, compare=False)
    """How many values lie below, if that is known and need not be counted."""

    @property
    def first(self) -> int:
        """The first point whose records are fetched."""
        return self.low + 1 if self.tied_low else self.low

    @property
    def last(self) -> int:
        """The last point whose records are fetched; before ``first`` if there are none."""
        return self.high - 1 if self.tied_high else self.high

    @property
    def open_low(self) -> bool:
        """Whether no point lies below: none lies below −2⁶²."""
        return self.low == -LIMIT and not self.tied_low

    @property
    def open_high(self) -> bool:
        """Whether no point lies above."""
        return self.high == LIMIT and not self.tied_high

    def contains(self, other: Bracket) -> bool:
        """Whether all points of the other are among these."""
        return self.low <= other.low and other.high <= self.high


@dataclass(frozen=True)
class Sketch:
    """A sample of ``size`` values, each taken with probability ``sampled``, by its quantiles at some shares."""

    size: int
    sampled: float
    shares: tuple[float, ...]
    values: tuple[int, ...]

    @property
    def population(self) -> int:
        """How many values there may be altogether."""
        return max(1, round(self.size / self.sampled))

    def bracket(self, first: int, last: int) -> Bracket | None:
        """Where ranks first..last of the whole population should lie; None if the sketch cannot say."""
        if self.size < ENOUGH:
            return None
        low, high = self._place(first - 1, -1), self._place(last, +1)
        i, j = bisect_right(self.shares, low) - 1, bisect_left(self.shares, high)
        open_low, open_high = i <= 0, j >= len(self.shares) - 1
        if open_low and open_high:
            return None
        least = -LIMIT if open_low else self.values[i]
        most = LIMIT if open_high else self.values[j]
        tied_low, tied_high = not open_low and self._tied(i), not open_high and self._tied(j)
        return Bracket(least, most, tied_low or least == most, tied_high or least == most)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """About where ranks first..last should lie, however small the sample is."""
        i = bisect_right(self.shares, self._place(first - 1, -1)) - 1
        j = bisect_left(self.shares, self._place(last, +1))
        return self.values[max(i, 0)], self.values[min(j, len(self.values) - 1)]

    def _place(self, rank: int, side: int) -> float:
        share = min(max(rank / self.population, 0.0), 1.0)
        margin = DEVIATIONS * sqrt(share * (1 - share) / self.size) + DEVIATIONS**2 / self.size
        return share + side * margin

    def _tied(self, i: int) -> bool:
        return self.values[i] in (self.values[i - 1], self.values[i + 1])


def shares_near(places: Iterable[float]) -> list[float]:
    """Where a sketch should know its quantiles: finely around some places and at the ends, coarsely elsewhere."""
    fine = {(round(512 * place) + j) / 512 for place in places for j in range(-24, 25)}
    tails = {2.0**-j for j in range(6, 15)}
    shares = fine | tails | {1 - tail for tail in tails} | {i / 32 for i in range(33)}
    return sorted(share for share in shares if 0 <= share <= 1)


def outermost(brackets: Iterable[Bracket]) -> tuple[Bracket, ...]:
    """Those that no other contains."""
    kept: list[Bracket] = []
    for bracket in sorted(set(brackets), key=lambda b: (b.low - b.high, b.low)):
        if not any(other.contains(bracket) for other in kept):
            kept.append(bracket)
    return tuple(kept)


@dataclass(frozen=True)
class Piece:
    """Consecutive order statistics: ``start`` values lie below (their sum is ``below``), then come these.

    >>> piece = Piece(start=2, below=5, low=7, lows=3, inside=np.array([9, 8]))
    >>> piece.end, piece.window(4, 6, sums=True)
    (7, Window(first=4, values=(7, 7, 8), below=12))
    """

    start: int
    below: int = 0
    low: int = 0
    lows: int = 0
    inside: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    high: int = 0
    highs: int = 0

    @property
    def end(self) -> int:
        """The last rank."""
        return self.start + self.lows + len(self.inside) + self.highs

    def holds(self, first: int, last: int) -> bool:
        """Whether ranks first..last are among them."""
        return self.start < first and last <= self.end

    def window(self, first: int, last: int, *, sums: bool) -> Window:
        """Ranks first..last, and if wanted the sum of everything below them."""
        a, b = first - 1 - self.start - self.lows, last - self.start - self.lows
        size = len(self.inside)
        lows = min(b, 0) - min(a, 0)
        highs = max(b - size, 0) - max(a - size, 0)
        i, j = min(max(a, 0), size), min(max(b, 0), size)
        values = self.inside
        if i < j:
            values = np.partition(values, sorted({i, j - 1}))
        inner = np.sort(values[i:j]).tolist()
        below = 0
        if sums:
            below = self.below + self.low * min(self.lows, first - 1 - self.start)
            below += exact_sum(values[:i]) + self.high * max(a - size, 0)
        return Window(first, (*[self.low] * lows, *inner, *[self.high] * highs), below)


@dataclass(frozen=True)
class Known:
    """What is known so far of one column in one cell."""

    size: int = 0
    total: int = 0
    squares: int = 0
    unread: int = 0
    """The number of unreadable values that were replaced by the public default."""
    pieces: tuple[Piece, ...] = ()

    def holds(self, first: int, last: int) -> bool:
        """Whether some piece holds ranks first..last."""
        return any(piece.holds(first, last) for piece in self.pieces)

    def window(self, first: int, last: int, *, sums: bool) -> Window | None:
        """Ranks first..last, if a piece holds them."""
        for piece in self.pieces:
            if piece.holds(first, last):
                return piece.window(first, last, sums=sums)
        return None

    def extended(self, pieces: Iterable[Piece]) -> Known:
        """With some more pieces."""
        return replace(self, pieces=(*self.pieces, *pieces))
