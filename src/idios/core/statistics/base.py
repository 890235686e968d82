"""What every statistic says of itself: its value, its envelope, and what it needs to know.

A statistic is a public description (``Quantile(1/4)``), never data. It reads one summary and
answers two questions: what is my value, and how far can i changed records move it. All
intermediate numbers are exact; the last step places them on the answer's grid, which is monotone,
so the envelope stays exact there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import ClassVar

from idios.core.domain import Domain
from idios.core.envelope import Envelope
from idios.core.exact import Extended, floor_half_up
from idios.core.neighbours import Exchange, Moves
from idios.core.summary import Summary

FINENESS = 10**6
"""How many steps of the fine grid make one step of the column, unless declared otherwise."""


class Statistic(ABC):
    """A number computed from the selected values of one column."""

    name: ClassVar[str]
    fractional: ClassVar[bool] = False
    """Whether the value is not a whole number of steps by nature, so that the fine grid is used."""
    degree: ClassVar[int] = 1
    """The unit of the answer: the column's step to this power."""
    coarse_floor: ClassVar[bool] = False
    """Whether the floor under the sensitivity is a step of the column rather than of the answer."""
    always_global: ClassVar[bool] = False
    """Whether the local sensitivity is never much below the global one, which is then always used."""
    nested: ClassVar[bool] = True
    """Whether computed envelopes of neighbours are nested, as differential privacy needs."""
    needs_sums: ClassVar[bool] = False
    needs_squares: ClassVar[bool] = False
    needs_distinct: ClassVar[bool] = False

    @property
    def least_size(self) -> int:
        """The smallest selection on which the statistic is defined."""
        return 1

    @abstractmethod
    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """Exact lo_i and hi_i at one distance, where the statistic is defined all the way there."""

    @abstractmethod
    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """The values the statistic can take at all."""

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """The runs of ranks (first, last) that the envelope reads; ends beyond the data are cut off."""
        return ()

    def thresholds(self, moves: Moves, domain: Domain, total: int) -> Iterable[Fraction]:
        """The points whose nearest selected values on both sides the envelope reads."""
        return ()

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """The greatest change by one record over all data sets, where it is known and small.

        ``moves.size`` may be used only where it is public (``moves.whole``).
        """
        return None

    def missing_bound(self, domain: Domain, distance: int) -> str | None:
        """What must be declared for the envelope to be finite on any data at all; None if nothing."""
        return None

    def resolution(self, fineness: int = FINENESS) -> int:
        """Steps of the answer's grid in one unit of the answer."""
        return fineness if self.fractional else 1

    def answer_step(self, domain: Domain, fineness: int = FINENESS) -> Fraction:
        """The step of the answer's grid, in the column's units."""
        return domain.step**self.degree / self.resolution(fineness)

    def place(self, value: Extended, fineness: int = FINENESS) -> int | float:
        """The point of the answer's grid that stands for an exact value; monotone."""
        return floor_half_up(value * self.resolution(fineness))

    def placed_limits(self, summary: Summary, distance: int, fineness: int) -> tuple[int | float, int | float]:
        """``limits`` on the answer's grid."""
        least, most = self.limits(summary, distance)
        return self.place(least, fineness), self.place(most, fineness)

    def envelope(self, summary: Summary, distance: int, fineness: int = FINENESS) -> Envelope:
        """The envelope out to ``distance``, on the answer's grid."""
        return self.enveloped(summary, distance, fineness, lambda i: self.placed_limits(summary, i, fineness))

    def enveloped(
        self, summary: Summary, distance: int, fineness: int, limits: Callable[[int], tuple[int | float, int | float]]
    ) -> Envelope:
        """The envelope from the placed limits of each distance; the whole range where the statistic is undefined."""
        low, high = (self.place(end, fineness) for end in self.range(summary.domain))
        lows: list[int | float] = []
        highs: list[int | float] = []
        value: int | None = None
        for i in range(distance + 1):
            if summary.moves.sizes(i)[0] >= self.least_size:
                least, most = limits(i)
                if i == 0:
                    value = int(least)
                lows.append(min([least, *lows[-1:]]))
                highs.append(max([most, *highs[-1:]]))
            else:
                lows.append(low)
                highs.append(high)
        return Envelope(value, tuple(lows), tuple(highs))


class MonotoneStatistic(Statistic):
    """A statistic that grows with its values and obeys the lemma of ``Moves.extreme_exchanges``.

    Its highest value after an exchange is read from the list of which the least ``dropped`` values
    are gone and ``placed`` stand at the upper bound: rank r of that list is rank r + dropped of the
    data. Its lowest value: rank r is rank r − placed of the data. So one formula, ``read``, gives
    value and envelope alike.
    """

    @abstractmethod
    def read(self, summary: Summary, size: int, offset: int) -> Extended:
        """The statistic of a list of ``size`` values whose rank r is the data's rank r + offset."""

    def extreme_exchanges(self, moves: Moves, distance: int) -> Iterable[Exchange]:
        """The exchanges among which the highest and the lowest value are found."""
        return moves.extreme_exchanges(distance)

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """The least and greatest reading over the extreme exchanges."""
        lows, highs = [], []
        for dropped, placed in self.extreme_exchanges(summary.moves, distance):
            size = summary.size - dropped + placed
            lows.append(self.read(summary, size, -placed))
            highs.append(self.read(summary, size, dropped))
        return min(lows), max(highs)

    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """The bounds of the column."""
        return domain.low, domain.high
