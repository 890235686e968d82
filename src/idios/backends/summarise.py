"""From a plan to the summaries that its statistics read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from idios.backends.brackets import Known
from idios.backends.cancellation import CancellationToken
from idios.backends.order_statistics import RankSearch, Sample
from idios.backends.queries import Queries
from idios.backends.requirements import Requirements, distance
from idios.core.calibration import Method
from idios.core.domain import Domain
from idios.core.neighbours import Moves
from idios.core.statistics import Statistic
from idios.core.summary import Summary
from idios.errors import SourceError
from idios.query.plan import Aggregate


@dataclass(frozen=True)
class Summaries:
    """What every aggregate of a plan needs of every cell."""

    cells: list[list[Summary]]
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

    def summarise(self) -> list[Summary]:
        aggregate, search, requirements = self.aggregate, self.search, self.search.requirements
        statistic, grid = aggregate.statistic, aggregate.grid
        if aggregate.column is None:
            # what is told exactly is the number of records, which is public, and nothing that was counted
            exact = aggregate.choice.method is Method.EXACT
            sizes = (requirements.rows if exact else search.records.get(cell, 0) for cell in requirements.cells)
            return [Summary(grid, requirements.moves(aggregate, size)) for size in sizes]
        name = requirements.alias(aggregate)
        known = {cell: search.of(cell, name) for cell in requirements.cells}
        moves = {cell: requirements.moves(aggregate, known[cell].size) for cell in requirements.cells}
        beside = self._beside(statistic, grid, known, moves)
        multiplicities: Mapping[int, tuple[int, tuple[int, ...]]] = {}
        if statistic.needs_distinct:
            multiplicities = search.queries.rarest(name, distance(aggregate))
        counts = self._counts(grid) if statistic.needs_counts else {}
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
                counts=counts.get(cell),
            )
            for cell in requirements.cells
        ]

    def _counts(self, grid: Domain) -> dict[int, tuple[int, ...]]:
        """How often each point of a bounded grid occurs in each cell."""
        if grid.lower is None or grid.upper is None:
            raise AssertionError(f"{self.aggregate.label} counts the points of a column without bounds")
        requirements, points = self.search.requirements, range(grid.lower, grid.upper + 1)
        times = self.search.queries.counts(requirements.alias(self.aggregate))
        return {cell: tuple(times.get(cell, {}).get(point, 0) for point in points) for cell in requirements.cells}

    def _beside(
        self, statistic: Statistic, grid: Domain, known: Mapping[int, Known], moves: Mapping[int, Moves]
    ) -> dict[int, dict[Fraction, tuple[int, ...]]]:
        thresholds = {cell: list(statistic.thresholds(moves[cell], grid, known[cell].total)) for cell in known}
        pairs = {cell: [(floor(t), ceil(t)) for t in points] for cell, points in thresholds.items() if points}
        if not pairs:
            return {}
        found = self.search.queries.beside(self.search.requirements.alias(self.aggregate), pairs)
        return {cell: dict(zip(thresholds[cell], values, strict=True)) for cell, values in found.items()}
