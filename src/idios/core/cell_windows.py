"""What order statistics read of many cells, as arrays: a summary of one cell is made where one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from idios.core.domain import Domain
from idios.core.neighbours import Moves
from idios.core.summary import Summary, Whole, Window


@dataclass(frozen=True, eq=False)
class CellWindows(Sequence[Summary]):
    """One window of each cell: its ``counts[c]`` values from ``values[starts[c]]`` on, the first of rank ``firsts[c]``.

    >>> from idios.core.neighbours import Neighbours
    >>> two = np.array([2])
    >>> cells = CellWindows(Domain(), lambda n: Moves(Neighbours.REPLACE, n), two, two - 1, two - 2, two, np.arange(9))
    >>> cells[0].windows
    (Window(first=1, values=(0, 1), below=0),)
    """

    domain: Domain
    make_moves: Callable[[int], Moves]
    """What changed records can do to a cell of some size."""
    sizes: NDArray[np.int64]
    firsts: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    values: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, index: int) -> Summary: ...
    @overload
    def __getitem__(self, index: slice) -> list[Summary]: ...
    def __getitem__(self, index: int | slice) -> Summary | list[Summary]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        start = int(self.starts[index])
        values = self.values[start : start + int(self.counts[index])]
        window = Window(int(self.firsts[index]), tuple(values.tolist()))
        moves = self.make_moves(int(self.sizes[index]))
        return Summary(self.domain, moves, (window,) if window.values else ())

    @cached_property
    def greatest(self) -> int:
        """The greatest of all values, and of finite bounds, whatever their sign."""
        bounds = [abs(end) for end in (self.domain.lower, self.domain.upper) if end is not None]
        if not len(self.values):
            return max(bounds, default=0)
        return max(-int(self.values.min()), int(self.values.max()), *bounds)

    def by_size(self) -> Iterator[tuple[Moves, NDArray[np.int64]]]:
        """The numbers of the cells of each size: what is asked of their ranks is the same."""
        order = np.argsort(self.sizes, kind="stable")
        sizes, firsts = np.unique(self.sizes[order], return_index=True)
        for size, cells in zip(sizes.tolist(), np.split(order, firsts[1:]), strict=True):
            yield self.make_moves(size), cells

    def at(self, cells: NDArray[np.int64], size: int, rank: int) -> Whole | int | float:
        """The values of a rank in some cells of one size; the domain's bounds beyond the ends."""
        if rank < 1:
            return self.domain.low
        if rank > size:
            return self.domain.high
        return self.pick(cells, rank)

    def pick(self, cells: NDArray[np.int64], ranks: int | NDArray[np.int64]) -> Whole:
        """The values of ranks that some cells, of any size, have."""
        places = ranks - self.firsts[cells]
        if (places < 0).any() or (places >= self.counts[cells]).any():
            raise LookupError("a rank was not summarised")
        found: Whole = self.values[self.starts[cells] + places]
        return found


class SummaryTable(Sequence[Sequence[Summary]]):
    """What every aggregate of a plan reads of every cell, held by aggregate."""

    def __init__(self, columns: Sequence[Sequence[Summary]]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> list[Summary]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[Summary]]: ...
    def __getitem__(self, index: int | slice) -> list[Summary] | list[list[Summary]]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        return [column[index] for column in self.columns]
