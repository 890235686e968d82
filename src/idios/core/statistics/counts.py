"""Counts: of selected values, of values in a range, of different values.

One record changes a count by at most one, so the global sensitivity, 1, is used at every level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from idios.core.domain import Domain
from idios.core.exact import INFINITY, Extended
from idios.core.neighbours import Moves
from idios.core.statistics.base import Statistic
from idios.core.statistics.signature import ANY_KIND, Spelling
from idios.core.summary import Summary
from idios.errors import InvalidInput


class _Counting(Statistic):
    """A number of things, at least 0."""

    kinds = ANY_KIND
    degree: ClassVar[int] = 0
    always_global: ClassVar[bool] = True

    @property
    def least_size(self) -> int:
        """Defined on nothing, as 0."""
        return 0

    def range(self, domain: Domain) -> tuple[Extended, Extended]:
        """0, 1, 2, …"""
        return 0, INFINITY

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """1: one record is in or out."""
        return 1


@dataclass(frozen=True)
class Count(_Counting):
    """The size of the selection: hi_i = s + additions, lo_i = s − removals.

    Of a whole table under replace it is n, which is public: sensitivity 0.
    """

    name: ClassVar[str] = "count"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("COUNT"),)
    function: ClassVar[str | None] = "count"
    counts_records: ClassVar[bool] = True

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """How many there are."""
        return len(values)

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """The sizes within reach."""
        return summary.moves.sizes(distance)

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """0 where the size is public, else 1."""
        return 0 if moves.whole else 1


@dataclass(frozen=True)
class RangeCount(_Counting):
    """How many values lie between two grid points, both included: the count of that selection.

    ``moves`` builds what changed records can do to it: a range that contains the whole domain is the
    column itself, one that misses the domain is always empty, and any other can gain and lose.
    """

    first: int = 0
    last: int = 0
    name: ClassVar[str] = "range_count"

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise InvalidInput("a range must be (first, last) with first ≤ last, got it reversed")

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """How many lie in the range."""
        return sum(self.first <= value <= self.last for value in values)

    def moves(self, column: Moves, domain: Domain, inside: int) -> Moves:
        """The moves on the values in the range, given those on the column and how many are inside."""
        if self.first <= domain.low and domain.high <= self.last:
            return column
        if domain.narrowed(self.first, self.last) is None:
            return Moves(column.neighbours, 0, 0 if column.outside is None else column.outside)
        return Moves(column.neighbours, inside, column.size - inside + (column.outside or 0))

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """The sizes within reach; nothing ever enters a range that misses the domain."""
        if summary.domain.narrowed(self.first, self.last) is None:
            return 0, 0
        return summary.moves.sizes(distance)

    def global_sensitivity(self, domain: Domain, moves: Moves) -> Extended | None:
        """0 for a range that misses the domain, or that no value of a whole table can be outside of; else 1."""
        if domain.narrowed(self.first, self.last) is None:
            return 0
        return 0 if moves.whole and self.first <= domain.low and domain.high <= self.last else 1


@dataclass(frozen=True)
class DistinctCount(_Counting):
    """How many different values occur (d of them among s).

    Upwards every change can bring a new value, as long as a duplicate can be spared for it (s − d of
    them, on a selection also the records outside) and the domain has values left. Downwards the
    rarest values are extinguished first, their records moving to a value that stays, or out.
    """

    name: ClassVar[str] = "distinct_count"
    spellings: ClassVar[tuple[Spelling, ...]] = (Spelling("COUNT", distinct=True),)
    needs_distinct: ClassVar[bool] = True

    def define(self, values: Sequence[int]) -> Fraction | int | None:
        """How many different ones there are."""
        return len(set(values))

    def limits(self, summary: Summary, distance: int) -> tuple[Extended, Extended]:
        """d − (values extinguished), d + (values gained)."""
        moves, distinct = summary.moves, summary.known_distinct()
        spare: Extended = INFINITY
        if moves.neighbours == "replace":
            spare = summary.size - distinct + (moves.outside or 0)
        gained = min(distance, spare, summary.domain.points - distinct)
        extinguished, left = 0, distance
        for multiplicity in summary.rarest[: distinct - 1] if moves.whole else summary.rarest:
            left -= multiplicity
            if left < 0:
                break
            extinguished += 1
        return distinct - extinguished, distinct + gained
