"""Statistics of category columns: histogram and mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from idios.core.neighbours import Moves, Neighbours


@dataclass(frozen=True)
class Histogram:
    """One count per cell, all at once; its sensitivity is an L1 distance.

    One record can leave a cell and enter another: i records move the counts by at most 2i under
    replace and i under add-remove. Less is possible only on degenerate tables (``local``), so the
    global sensitivity is used at every level.
    """

    cells: int
    name: ClassVar[str] = "histogram"

    def global_sensitivity(self, moves: Moves) -> int:
        """The greatest L1 distance between the histograms of two neighbours.

        One cell that every record must be in never changes; one cell that records can leave, by 1.
        """
        if moves.neighbours is Neighbours.ADD_REMOVE:
            return 1
        return 2 if self.cells > 1 else 0 if moves.whole else 1

    def local_sensitivity(self, counts: Sequence[int], moves: Moves, distance: int) -> int:
        """The greatest L1 distance within ``distance`` changes of the data at hand.

        Records gather best in the least populated cell (2 each, as long as others have any left; then 1
        for each one that comes from outside), or they all leave.
        """
        if moves.neighbours is Neighbours.ADD_REMOVE:
            return distance
        gathered = min(distance, sum(counts) - min(counts))
        entered = min(distance - gathered, moves.most_added(distance))
        return max(2 * gathered + entered, moves.most_removed(distance))


@dataclass(frozen=True)
class Mode:
    """The most frequent category: a selection, not a number, so it has no envelope.

    A category's score is its count. One record changes every count by at most Δ = 1, so drawing category r
    with weight exp(−rate·(greatest count − count of r)) is ε-private for rate = ε/2; under add-remove all
    counts move the same way and rate = ε will do. (Numerator and denominator of Pr(r) each move by at most a factor
    of e^rate, and under add-remove in the same direction.)
    """

    name: ClassVar[str] = "mode"

    @staticmethod
    def rate(epsilon: Fraction, neighbours: Neighbours) -> Fraction:
        """The rate at which a category's weight falls with every record it is behind."""
        return epsilon if neighbours is Neighbours.ADD_REMOVE else epsilon / 2
