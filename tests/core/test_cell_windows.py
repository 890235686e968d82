"""Windows of many cells as arrays: each cell reads as its own summary does."""

from __future__ import annotations

import random

import numpy as np
import pytest

from idios.core.cell_windows import CellWindows, SummaryTable
from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours

draw = random.Random(5)


def make_cells(
    sizes: list[int],
    span: int = 100,
    domain: Domain | None = None,
    neighbours: Neighbours = Neighbours.REPLACE,
    outside: int | None = 50,
) -> CellWindows:
    """Cells of these sizes, all of whose values are known."""
    values = [sorted(draw.randrange(span) for _ in range(size)) for size in sizes]
    lengths = np.array(sizes, np.int64)
    return CellWindows(
        domain or Domain(),
        lambda size: Moves(neighbours, size, outside if neighbours is Neighbours.REPLACE else None),
        lengths,
        np.ones(len(sizes), np.int64),
        np.cumsum(lengths) - lengths,
        lengths,
        np.array([value for listed in values for value in listed], np.int64),
    )


def test_ranks_of_cells_of_one_size_read_as_in_their_summaries() -> None:
    cells = make_cells([3, 0, 4, 3, 1, 4, 4], domain=Domain(lower=-5, upper=200))
    seen = []
    for moves, numbers in cells.by_size():
        seen += numbers.tolist()
        for rank in range(-1, moves.size + 3):
            found = np.broadcast_to(np.asarray(cells.at(numbers, moves.size, rank)), len(numbers))
            assert found.tolist() == [cells[cell].at(rank) for cell in numbers.tolist()]
    assert sorted(seen) == list(range(len(cells)))


def test_a_rank_outside_of_the_window_is_an_error() -> None:
    whole = make_cells([9])
    part = CellWindows(
        whole.domain, whole.make_moves, whole.sizes, whole.firsts + 3, whole.starts, whole.counts - 6, whole.values
    )
    assert part[0].windows[0].first == 4
    for rank in (3, 7):
        with pytest.raises(LookupError):
            part.at(np.array([0]), 9, rank)


def test_a_table_gives_the_summaries_of_a_cell() -> None:
    columns = [make_cells([2, 3]), make_cells([4, 0])]
    table = SummaryTable(columns)
    assert len(table) == 2
    assert [[summary.size for summary in cell] for cell in table] == [[2, 4], [3, 0]]
    assert table[0:1] == [table[0]]
    assert table == [table[0], table[1]] != [table[1], table[0]]
