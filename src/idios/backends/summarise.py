"""From a plan to the summaries that its statistics read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from idios.backends.brackets import Known
from idios.backends.cancellation import CancellationToken
from idios.backends.order_statistics import RankSearch, Sample
from idios.backends.queries import Queries
from idios.backends.requirements import Requirements, distance
from idios.core.calibration import Method
from idios.core.domain import Categories, Domain
from idios.core.neighbours import Moves
from idios.core.statistics import Mode, Statistic
from idios.core.summary import Summary
from idios.errors import SourceError
from idios.query.plan import Aggregate

CellSummary: TypeAlias = Summary | tuple[int, ...]
"""What one aggregate needs of one cell: a summary; for a mode, the count of each declared category."""


@dataclass(frozen=True)
class Summaries:
    """What every aggregate of a plan needs of every cell."""

    cells: list[list[CellSummary]]
    unread: Mapping[str, int]
    """By column that is declared not nullable: how many selected values were missing or could not be read."""


def summarise(
    requirements: Requirements, queries: Queries, samples: Sequence[Sample], cancellation: CancellationToken
) -> Summaries:
    """For every cell of a plan, what each of its aggregates needs."""
    search = RankSearch(requirements, queries, requirements.needs(), samples, cancellation.step)
    search.scan()
    if sum(search.records.values()) > requirements.rows:
        raise SourceError("the source changed while it was being read: ask again")
    search.complete()
    cancellation.step("summarising", 0.9)
    columns = [_AggregateInCells(aggregate, search).summarise() for aggregate in requirements.plan.aggregates]
    cancellation.step("summarised", 1.0)
    unread: dict[str, int] = {}
    for (_, name), known in search.known.items():
        column = requirements.selection.column_name(name)
        unread[column] = unread.get(column, 0) + known.unread
    return Summaries([list(cell) for cell in zip(*columns, strict=True)], unread)


@dataclass(frozen=True)
class _AggregateInCells:
    """One aggregate in all cells, in the order of the plan."""

    aggregate: Aggregate
    search: RankSearch

    def summarise(self) -> Sequence[CellSummary]:
        statistic, domain = self.aggregate.statistic, self.aggregate.domain
        if isinstance(statistic, Mode):
            return self._counts(range(len(domain.values)) if isinstance(domain, Categories) else _points(domain))
        return self._summaries(statistic, self.aggregate.grid)

    def _counts(self, points: range) -> list[tuple[int, ...]]:
        requirements = self.search.requirements
        times = self.search.queries.counts(requirements.alias(self.aggregate))
        return [tuple(times.get(cell, {}).get(point, 0) for point in points) for cell in requirements.cells]

    def _summaries(self, statistic: Statistic, grid: Domain) -> list[Summary]:
        aggregate, search, requirements = self.aggregate, self.search, self.search.requirements
        if aggregate.column is None:
            # what is told exactly is the number of records, which is public, and nothing that was counted
            exact = aggregate.choice is not None and aggregate.choice.method is Method.EXACT
            sizes = (requirements.rows if exact else search.records.get(cell, 0) for cell in requirements.cells)
            return [Summary(grid, requirements.moves(aggregate, size)) for size in sizes]
        name = requirements.alias(aggregate)
        known = {cell: search.of(cell, name) for cell in requirements.cells}
        moves = {cell: requirements.moves(aggregate, known[cell].size) for cell in requirements.cells}
        beside = self._beside(statistic, grid, known, moves)
        multiplicities: Mapping[int, tuple[int, tuple[int, ...]]] = {}
        if statistic.needs_distinct:
            multiplicities = search.queries.rarest(name, distance(aggregate))
        return [
            Summary(
                grid,
                moves[cell],
                windows=tuple(
                    search.window(cell, name, run, sums=statistic.needs_sums)
                    for run in requirements.runs(aggregate, known[cell].size)
                ),
                total=known[cell].total if statistic.needs_sums else None,
                squares=known[cell].squares if statistic.needs_squares else None,
                beside=beside.get(cell, {}),
                distinct=multiplicities.get(cell, (0, ()))[0] if statistic.needs_distinct else None,
                rarest=multiplicities.get(cell, (0, ()))[1],
            )
            for cell in requirements.cells
        ]

    def _beside(
        self, statistic: Statistic, grid: Domain, known: Mapping[int, Known], moves: Mapping[int, Moves]
    ) -> dict[int, dict[Fraction, tuple[int, ...]]]:
        thresholds = {cell: list(statistic.thresholds(moves[cell], grid, known[cell].total)) for cell in known}
        pairs = {cell: [(floor(t), ceil(t)) for t in points] for cell, points in thresholds.items() if points}
        if not pairs:
            return {}
        beside = self.search.queries.beside(self.search.requirements.alias(self.aggregate), pairs)
        return {cell: dict(zip(thresholds[cell], values, strict=True)) for cell, values in beside.items()}


def _points(domain: Domain) -> range:
    if domain.lower is None or domain.upper is None:
        raise AssertionError("a mode is requirements of a column with neither categories nor bounds")
    return range(domain.lower, domain.upper + 1)
