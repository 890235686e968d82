"""Order statistics of all cells in one pass: by shares that hit the wanted ranks, as lists, or to bracket them.

The discrete quantile of a share s of n values is the one of rank ⌈s·n⌉. So a share hits rank r of n values where
(r − 1)/n < s ≤ r/n, and cells whose sizes differ little are served by the same few shares: one point in each of these
intervals, as few as there can be, by choosing the last point of the interval that ends first again and again. Which
rank a share hits is computed exactly for each size, and what no share hits is looked for in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import NDArray

from idios.core.domain import LIMIT
from idios.core.summary import Window
from idios.data.brackets import Bracket, Piece
from idios.data.queries import CellColumn, Queries, Run
from idios.data.sql.selection import CELL

NARROW = 8
"""Up to this many ranks in a row are asked for one by one."""
MOST_SHARES = 32
"""How many shares are asked for: each takes time in every cell."""
WIDE_ENOUGH = 4
"""Lists are fetched whole where the wanted ranks are at least one in so many."""
MOST_LISTED = 2**25
"""How many values are fetched in lists, at most: a quarter of a gigabyte."""
DIGITS = 15


@dataclass(frozen=True)
class Wanted:
    """The runs of ranks that each cell is asked for, of one column, by the cell's number; and the cells' sizes."""

    name: str
    runs: Mapping[int, Sequence[Run]]
    sizes: Mapping[int, int]

    @property
    def narrow(self) -> bool:
        """Whether there are few ranks in every cell."""
        return all(last - first < NARROW for runs in self.runs.values() for first, last in runs)

    @property
    def dense(self) -> bool:
        """Whether so many ranks are wanted that all may be fetched."""
        total = sum(self.sizes[cell] for cell in self.runs)
        wanted = sum(last - first + 1 for runs in self.runs.values() for first, last in runs)
        return total <= min(WIDE_ENOUGH * wanted, MOST_LISTED)

    def by_size(self) -> dict[int, tuple[set[Run], int]]:
        """The different runs for each size, and how many cells have it."""
        found: dict[int, tuple[set[Run], int]] = {}
        for cell, runs in self.runs.items():
            wanted, cells = found.get(self.sizes[cell], (set(), 0))
            found[self.sizes[cell]] = wanted | set(runs), cells + 1
        return found


def read_by_shares(queries: Queries, wanted: Wanted) -> dict[tuple[int, Run], Window]:
    """The windows of narrow runs, as far as shares hit them."""
    spans = [
        (rank - 1, rank, size, cells)
        for size, (runs, cells) in wanted.by_size().items()
        for rank in {rank for first, last in runs for rank in range(first, last + 1)}
    ]
    shares = choose_shares(spans)
    found = _Quantiles.read(queries, wanted, shares)
    hits = {size: {find_hit(share, size): i for i, share in enumerate(shares)} for size in set(wanted.sizes.values())}
    windows: dict[tuple[int, Run], Window] = {}
    for cell, runs in wanted.runs.items():
        points, hit = found.points.get(cell), hits[wanted.sizes[cell]]
        for first, last in runs if points is not None else ():
            ranks = range(first, last + 1)
            if points is not None and all(rank in hit for rank in ranks):
                windows[cell, (first, last)] = Window(first, tuple(points[hit[rank]] for rank in ranks))
    return windows


def read_brackets(queries: Queries, wanted: Wanted) -> dict[CellColumn, tuple[Bracket, ...]]:
    """Where runs lie: between two values whose ranks lie at most the length of the run outside of it."""
    below, above = [], []
    for size, (runs, cells) in wanted.by_size().items():
        for first, last in sorted(runs):
            slack = last - first + 1
            below += [(first - 1 - slack, first, size, cells)] if first > 1 else []
            above += [(last - 1, last + slack, size, cells)] if last < size else []
    shares = choose_shares([*below, *above])
    found = _Quantiles.read(queries, wanted, shares)
    brackets: dict[CellColumn, tuple[Bracket, ...]] = {}
    for cell, listed in wanted.runs.items():
        points, size = found.points.get(cell), wanted.sizes[cell]
        if points is None or len(listed) != 1:
            continue
        first, last = listed[0]
        ranks = [find_hit(share, size) for share in shares]
        low = max((points[i] for i, rank in enumerate(ranks) if rank <= first), default=-LIMIT)
        high = min((points[i] for i, rank in enumerate(ranks) if rank >= last), default=LIMIT)
        brackets[cell, wanted.name] = (Bracket(low, high, low > -LIMIT, high < LIMIT),)
    return brackets


def read_lists(queries: Queries, wanted: Wanted) -> dict[int, Piece]:
    """All values of the wanted column, cell by cell, in ascending order."""
    table = queries.fetch_lists(wanted.name)
    pieces: dict[int, Piece] = {}
    for batch in table.to_batches():
        lists = batch.column(1)
        values, ends = lists.flatten().to_numpy(zero_copy_only=False), np.cumsum(lists.value_lengths().fill_null(0))
        for cell, part in zip(batch.column(0).to_pylist(), np.split(values, ends[:-1]), strict=True):
            pieces[cell] = Piece(0, inside=np.sort(part))
    return pieces


def choose_shares(spans: Iterable[tuple[int, int, int, int]]) -> list[Fraction]:
    """Shares s with a < s·n ≤ b for each (a, b, n, weight), in ascending order; at most so many, by weight.

    >>> [str(share) for share in choose_shares([(4, 5, 10, 1), (9, 10, 20, 1), (1, 2, 10, 1)])]
    ['3/20', '19/40']
    """
    ordered = sorted((b / n, a / n, weight) for a, b, n, weight in spans)
    chosen: list[tuple[float, float, int]] = []
    low, high, weights = -inf, -inf, 0
    for end, start, weight in ordered:
        if start >= high:  # no point of those so far lies in it
            if weights:
                chosen.append((low, high, weights))
            low, high, weights = start, end, 0
        low, weights = max(low, start), weights + weight
    chosen += [(low, high, weights)] if weights else []
    kept = sorted(chosen, key=lambda part: -part[2])[:MOST_SHARES]
    middles = {Fraction(f"{min(max((low + high) / 2, 0.0), 1.0):.{DIGITS}f}") for low, high, _ in kept}
    return sorted(middles)


def find_hit(share: Fraction, size: int) -> int:
    """The rank of the quantile of a share."""
    return max(1, -(-share.numerator * size // share.denominator))


@dataclass(frozen=True)
class CellPoints:
    """Some cells, how many values each holds, and its points at some shares."""

    cells: NDArray[np.int64]
    held: NDArray[np.int64]
    points: NDArray[np.int64]


def read_points(queries: Queries, name: str, shares: Sequence[Fraction], *, filtered: bool = True) -> CellPoints:
    """The points of a column at some shares in every cell; ``filtered`` leaves out what is not declared first."""
    written = [f"{float(share):.{DIGITS}f}" for share in shares]
    table = queries.fetch_quantiles(name, written, filtered=filtered)
    # a cell with a point that cannot be read is told by ``held``; NULL would make floats of the others' points
    cells, places, points, held = (table[name].fill_null(0).to_numpy() for name in (CELL, "place", "point", "held"))
    # cells are numbered from 1 on, so that they need not be sorted
    there = np.zeros(int(cells.max(initial=0)) + 1, bool)
    there[cells] = True
    rows, present = (np.cumsum(there) - 1)[cells], np.flatnonzero(there)
    found, sizes = np.zeros((len(present), len(shares)), np.int64), np.zeros(len(present), np.int64)
    found[rows, places - 1], sizes[rows] = points, held
    return CellPoints(present, sizes, found)


@dataclass(frozen=True)
class _Quantiles:
    """By cell, the points at some shares; only of cells whose values can all be read, so that their order is known."""

    points: Mapping[int, list[int]]

    @classmethod
    def read(cls, queries: Queries, wanted: Wanted, shares: Sequence[Fraction]) -> _Quantiles:
        if not shares:
            return cls({})
        found = read_points(queries, wanted.name, shares)
        whole = zip(found.cells.tolist(), found.held.tolist(), found.points.tolist(), strict=True)
        return cls({cell: row for cell, count, row in whole if count == wanted.sizes.get(cell)})
