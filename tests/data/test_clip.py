"""Sums of clipped values from the sums of all and the values at both ends, against every small table."""

from __future__ import annotations

from itertools import combinations_with_replacement

from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.summary import Summary, Window
from idios.data.clip import Clip, Totals

GRID = Domain()
LIMITS = [(low, high) for low in range(-2, 5) for high in range(low, 5)]


def summarise(values: tuple[int, ...], reach: int) -> Summary:
    """The ``reach`` least and greatest of ascending values, and one in the middle."""
    size, moves = len(values), Moves(Neighbours.REPLACE, len(values))
    runs = [(size // 2, size // 2 + 1), (0, min(reach, size)), (max(size - reach, 0), size)]
    return Summary(GRID, moves, tuple(Window(a + 1, values[a:b]) for a, b in runs if a < b <= size))


def test_corrected_sums_are_those_of_clipped_values() -> None:
    """They are found exactly where no more values lie beyond a limit than were read, or where all were read."""
    for size in range(6):
        for values in combinations_with_replacement(range(-1, 4), size):
            totals = Totals(sum(values), sum(v * v for v in values))
            for reach in (1, 2, 5):
                summary = summarise(values, reach)
                for low, high in LIMITS:
                    found = Clip.of(GRID, (low, high)).correct(summary, totals)
                    beyond = sum(v < low for v in values), sum(v > high for v in values)
                    if max(beyond) >= reach < size:
                        assert found is None or max(beyond) == reach, (values, reach, low, high)
                    else:
                        assert found is not None, (values, reach, low, high)
                    if found is not None:
                        clipped = [min(max(v, low), high) for v in values]
                        expected = Totals(sum(clipped), sum(v * v for v in clipped))
                        assert (found.total, found.squares) == (expected.total, expected.squares)
                        assert found == Summary(
                            Domain(GRID.step, low, high), summary.moves, total=found.total, squares=found.squares
                        )


def test_squares_are_left_out_where_nobody_asks_and_limits_may_lie_beyond_64_bits() -> None:
    summary = summarise((3, 4, 90), 3)
    found = Clip.of(GRID, (2**70, 2**80)).correct(summary, Totals(97))
    assert found is not None
    assert (found.total, found.squares) == (3 * 2**70, None)
