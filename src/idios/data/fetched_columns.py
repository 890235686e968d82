"""Columns of a small selection, fetched whole: everything that a question reads of them is computed here.

A statement costs an engine more than the few records of a small table do, and a window over them more still. So they
are fetched once, in the same statement that counts them, and sorted here. What is found is what ``Queries`` would find,
in the same words, since both read the same points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from idios.data.arrays import exact_sum, exact_sum_of_squares, find_beside
from idios.data.brackets import Known, Piece
from idios.data.queries import CellColumn, Queries, Run
from idios.data.scan import Need
from idios.data.sql.selection import ONLY


@dataclass(frozen=True)
class FetchedColumn:
    """The points of one column that count, and how many of them stand in for what could not be read."""

    points: NDArray[np.int64]
    unread: int

    def know(self, need: Need) -> Known:
        """All ranks, and the sums that are needed."""
        points = self.points
        total = exact_sum(points) if need.total else 0
        squares = exact_sum_of_squares(points) if need.squares else 0
        return Known(len(points), total, squares, self.unread, (Piece(0, inside=points),))


@dataclass(frozen=True)
class FetchedColumns:
    """The columns of an ungrouped selection of so many records, by their names in the relation."""

    records: int
    columns: Mapping[str, FetchedColumn]

    def know(self, needs: Mapping[str, Need]) -> dict[CellColumn, Known]:
        """What there is to know of each."""
        return {(ONLY, name): column.know(needs[name]) for name, column in self.columns.items()}

    def beside(self, name: str, points: Mapping[int, Sequence[Run]]) -> dict[int, list[tuple[int, ...]]]:
        """For each pair (a, b), b at most a + 1, the greatest value up to a and the least from b on."""
        column = self.columns[name].points
        return {cell: [find_beside(column, Fraction(a + b, 2)) for a, b in pairs] for cell, pairs in points.items()}

    def counts(self, name: str) -> dict[int, dict[int, int]]:
        """How often each value occurs."""
        values, times = np.unique(self.columns[name].points, return_counts=True)
        return {ONLY: dict(zip(values.tolist(), times.tolist(), strict=True))}

    def rarest(self, name: str, number: int) -> dict[int, tuple[int, tuple[int, ...]]]:
        """How many different values there are, and how often the ``number`` rarest occur."""
        times = sorted(self.counts(name)[ONLY].values())
        return {ONLY: (len(times), tuple(times[:number]))}


def fetch_columns(queries: Queries, names: Sequence[str]) -> FetchedColumns:
    """Fetch columns of an ungrouped selection."""
    table = queries.fetch_points(names)
    columns = {}
    for name in names:
        points = table[name]
        # a flag may itself be NULL: nothing is finite that is not there
        read = pc.sum(table[f"has_{name}"]).as_py() or 0 if f"has_{name}" in table.column_names else len(points)
        held = points.drop_null() if points.null_count else points
        columns[name] = FetchedColumn(held.to_numpy(), len(points) - read)
    return FetchedColumns(len(table), columns)
