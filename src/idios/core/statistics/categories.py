"""Statistics of category columns: histogram and mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from idios.core.domain import Domain, Kind
from idios.core.exact import Extended
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics.base import Statistic
from idios.core.statistics.signature import CATEGORICAL, Spelling
from idios.core.summary import Summary


@dataclass(frozen=True)
class Histogram:
    """One count per cell, all at once; its sensitivity is an L1 distance.

    One record can leave a cell and enter another: i records move the counts by at most 2i under
    replace and i under add-remove. Less is possible only on degenerate tables (``local``), so the
    global sensitivity is used at every level. A table of counts is no single number, so it is no
    ``Statistic``; in SQL it is COUNT(*) with GROUP BY.
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
class Mode(Statistic):
    """The most frequent category, the first of them where several are: a selection, not a number with noise.

    A category's score is its count. One record changes every count by at most Δ = 1, so drawing category r
    with weight exp(−rate·(greatest count − count of r)) is ε-private for rate = ε/2; under add-remove all
    counts move the same way and rate = ε will do. (Numerator and denominator of Pr(r) each move by at most a factor
    of e^rate, and under add-remove in the same direction.)

    Its envelope, which no answer is calibrated with, is that of the category's index. With c the counts, i changes make
    r the mode where they can lift it to every other j: an addition lifts it by one, so c_j + [j < r] ≤ c_r + i for all
    j; a replacement also takes one from another, so Σ_j max(0, c_j + [j < r] − c_r − i) ≤ i.
    """

    name: ClassVar[str] = "mode"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("MODE"),)
    function: ClassVar[str | None] = "mode"
    kinds: ClassVar[frozenset[Kind]] = CATEGORICAL
    selects: ClassVar[bool] = True
    needs_counts: ClassVar[bool] = True

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """The value that occurs most often, the least of them where several do."""
        return max(sorted(set(values)), key=values.count, default=None)

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """The first and the last category that can become the mode."""
        counts, first = summary.known_counts(), int(summary.domain.low)
        if distance == 0:
            place = first + counts.index(max(counts))
            return place, place
        within = [r for r in range(len(counts)) if _reaches(counts, r, distance, summary.moves.neighbours)]
        return first + within[0], first + within[-1]

    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """The indices of the categories."""
        return domain.low, domain.high

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """Both bounds, between which every point is counted; categories always have them."""
        return None if domain.bounded else "bounds"

    def behind(self, summary: Summary) -> tuple[int, ...]:
        """Greatest count − count, of each category."""
        counts = summary.known_counts()
        return tuple(max(counts) - count for count in counts)

    def rate(self, epsilon: Fraction, neighbours: Neighbours) -> Fraction:
        """ε under add-remove, else ε/2."""
        return epsilon if neighbours is Neighbours.ADD_REMOVE else epsilon / 2


def _reaches(counts: Sequence[int], r: int, distance: int, neighbours: Neighbours) -> bool:
    """Whether ``distance`` changes can make category r the mode."""
    ahead = [max(0, count + (j < r) - counts[r] - distance) for j, count in enumerate(counts) if j != r]
    return not any(ahead) if neighbours is Neighbours.ADD_REMOVE else sum(ahead) <= distance
