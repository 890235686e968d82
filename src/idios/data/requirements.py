"""What a plan requires of columns and cells, before anything is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from idios.core.neighbours import Moves, Neighbours
from idios.data.queries import Run
from idios.data.scan import Need
from idios.data.sql.selection import Selection
from idios.plan.question import Aggregate, Plan

NOMINAL = 10**9
"""A size at which to ask where a statistic will look."""

ENDS = 512
"""Up to this many values at an end are found in the same pass as counts and sums, where the engine has an aggregate."""


@dataclass(frozen=True)
class Requirements:
    """What a plan requires of a table with a given number of rows."""

    plan: Plan
    selection: Selection
    rows: int

    @cached_property
    def cells(self) -> list[int]:
        """The numbers of the plan's cells, in its order."""
        return self.selection.codes()

    @cached_property
    def ranked(self) -> list[Aggregate]:
        """The aggregates that read order statistics, of a table of this size or of the nominal one."""
        size = max(NOMINAL, self.rows)
        return [a for a in self.plan.aggregates if a.column is not None and self.runs(a, size)]

    @cached_property
    def nominal(self) -> dict[str, list[Run]]:
        """The runs of ranks that the plan would read of each column if it had the nominal size."""
        nominal: dict[str, list[Run]] = {}
        for aggregate in self.ranked:
            nominal.setdefault(self.alias(aggregate), []).extend(self.runs(aggregate, NOMINAL))
        return nominal

    def alias(self, aggregate: Aggregate) -> str:
        """What the relation calls an aggregate's column."""
        if aggregate.column is None:
            raise AssertionError(f"{aggregate.label} is of no column")
        return self.selection.alias(aggregate.column)

    def needs(self, *, clipped: bool = False) -> dict[str, Need]:
        """What is asked of each column besides its inner order statistics.

        With ``clipped`` it includes the sums that the second round needs, of values clipped to drawn limits: they
        follow from the sums of all values and those beyond the limits (``clip.py``).
        """
        needs: dict[str, Need] = {}
        for aggregate in self.plan.aggregates:
            if aggregate.column is None:
                continue
            name, reading = self.alias(aggregate), aggregate.reading
            need = needs.get(name, Need())
            below = need.below or reading.needs_sums
            total, squares = need.total or below, need.squares or reading.needs_squares
            if clipped and aggregate.choice.clipping is not None:
                total, squares = True, squares or aggregate.statistic.needs_squares
            needs[name] = replace(need, total=total, squares=squares, below=below)
        if self.selection.dialect.ends:
            for name, runs in self.nominal.items():
                # in groups whatever lies at the ends; else all that is read, as brackets hold the ends beside others
                scanned = needs[name].total or not self.is_plain(name)
                if self.plan.groups or (scanned and self.reads_ends(runs, ENDS)):
                    least, greatest = self.count_ends(runs, ENDS)
                    needs[name] = replace(needs[name], least=least, greatest=greatest)
        return needs

    @staticmethod
    def reads_ends(runs: Iterable[Run], most: int) -> bool:
        """Whether all runs of the nominal size lie among so many values at either end."""
        return all(last <= most or NOMINAL - first < most for first, last in runs)

    def is_plain(self, name: str) -> bool:
        """Whether a column is read as it stands in the source, so that its ends are quick to find there."""
        return self.selection.is_whole and self.selection.grid_column(name).derive is None

    @staticmethod
    def count_ends(runs: Iterable[Run], most: int, size: int = NOMINAL) -> tuple[int, int]:
        """How many of the least and of the greatest values hold those runs that lie there."""
        outer = [(last, size - first + 1) for first, last in runs]
        return max((a for a, _ in outer if a <= most), default=0), max((b for _, b in outer if b <= most), default=0)

    def moves(self, aggregate: Aggregate, size: int) -> Moves:
        """What changed records can do to a selection of that size."""
        neighbours = aggregate.neighbours
        if aggregate.whole or neighbours is Neighbours.ADD_REMOVE:
            return Moves(neighbours, size)
        return Moves(neighbours, size, max(0, self.rows - size))

    def runs(self, aggregate: Aggregate, size: int) -> list[Run]:
        """The ranks that an aggregate reads of ``size`` values, as far as they exist; found once a size."""
        key = id(aggregate), size
        if key not in self._runs:
            runs = aggregate.reading.ranks(self.moves(aggregate, size), aggregate.distance)
            inside = ((max(first, 1), min(last, size)) for first, last in runs)
            self._runs[key] = [(first, last) for first, last in inside if first <= last]
        return self._runs[key]

    @cached_property
    def _runs(self) -> dict[tuple[int, int], list[Run]]:
        return {}
