"""Some records of a stream, drawn from all of it in bounded memory: a file that is sorted shows its end too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ROWS = 20_000
"""How many records a proposal looks at, unless there are fewer."""


class Reservoir:
    """Up to so many records of the pieces that are added, in their order, each as likely as any other.

    Every record draws a number, and those with the least numbers are kept. The numbers are the same each time, so that
    a proposal can be made again.

    >>> reservoir = Reservoir(3)
    >>> for start in (0, 100, 200):
    ...     reservoir.add(pa.table({"number": range(start, start + 100)}))
    >>> reservoir.read().num_rows, reservoir.total
    (3, 300)
    """

    def __init__(self, rows: int) -> None:
        self.total = 0
        """How many records were added."""
        self._rows = rows
        self._random = np.random.default_rng(1)
        self._pieces: list[pa.Table] = []
        self._drawn = np.empty(0)
        self._limit = 1.0

    def add(self, piece: pa.Table) -> None:
        """Draw from some more records."""
        drawn = self._random.random(piece.num_rows)
        near = np.flatnonzero(drawn < self._limit)
        self.total += piece.num_rows
        self._pieces.append(piece.take(pa.array(near)))
        self._drawn = np.concatenate([self._drawn, drawn[near]])
        if len(self._drawn) > 2 * self._rows:
            self._thin()

    def read(self) -> pa.Table:
        """The records that were drawn."""
        self._thin()
        return pa.concat_tables(self._pieces)

    def _thin(self) -> None:
        if len(self._drawn) > self._rows:
            kept = np.sort(np.argpartition(self._drawn, self._rows)[: self._rows])
            self._pieces = [pa.concat_tables(self._pieces).take(pa.array(kept))]
            self._drawn = self._drawn[kept]
            self._limit = float(self._drawn.max(initial=0.0))
