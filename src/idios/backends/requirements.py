"""What a plan requires of the data, column by column and cell by cell: no data is touched here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from idios.backends.queries import Run
from idios.backends.selection import Selection
from idios.core.neighbours import Moves, Neighbours
from idios.query.plan import Aggregate, Plan

NOMINAL = 10**9
"""A size at which to ask where a statistic will look."""


@dataclass(frozen=True)
class Need:
    """What is asked of one column besides its order statistics."""

    total: bool = False
    squares: bool = False


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
        """The aggregates that read order statistics."""
        return [a for a in self.plan.aggregates if a.column is not None and self.runs(a, NOMINAL)]

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

    def needs(self) -> dict[str, Need]:
        """What is asked of each column besides its order statistics."""
        needs: dict[str, Need] = {}
        for aggregate in self.plan.aggregates:
            if aggregate.column is None:
                continue
            name, statistic = self.alias(aggregate), aggregate.statistic
            need = needs.get(name, Need())
            total, squares = need.total or statistic.needs_sums, need.squares or statistic.needs_squares
            needs[name] = replace(need, total=total, squares=squares)
        return needs

    def moves(self, aggregate: Aggregate, size: int) -> Moves:
        """What changed records can do to a selection of that size."""
        neighbours = self.plan.dataset.neighbours
        if aggregate.whole or neighbours is Neighbours.ADD_REMOVE:
            return Moves(neighbours, size)
        return Moves(neighbours, size, max(0, self.rows - size))

    def runs(self, aggregate: Aggregate, size: int) -> list[Run]:
        """The ranks that an aggregate reads of ``size`` values, as far as they exist."""
        runs = aggregate.statistic.ranks(self.moves(aggregate, size), distance(aggregate))
        inside = ((max(first, 1), min(last, size)) for first, last in runs)
        return [(first, last) for first, last in inside if first <= last]


def distance(aggregate: Aggregate) -> int:
    """How far an aggregate's envelope must be known."""
    return aggregate.choice.distance
