"""From a plan to the summaries that its statistics read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from idios.backends.asked import Asked, distance
from idios.backends.brackets import Known
from idios.backends.progress import Watch
from idios.backends.queries import Queries
from idios.backends.search import Sample, Search
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


def summarise(asked: Asked, queries: Queries, samples: Sequence[Sample], watch: Watch) -> Summaries:
    """For every cell of a plan, what each of its aggregates needs."""
    search = Search(asked, queries, asked.needs(), samples, watch.step)
    search.scan()
    if sum(search.records.values()) > asked.rows:
        raise SourceError("the source changed while it was being read: ask again")
    search.complete()
    watch.step("summarising", 0.9)
    columns = [_Column(aggregate, search).summaries() for aggregate in asked.plan.aggregates]
    watch.step("summarised", 1.0)
    unread: dict[str, int] = {}
    for (_, name), known in search.known.items():
        column = asked.selection.column(name)
        unread[column] = unread.get(column, 0) + known.unread
    return Summaries([list(cell) for cell in zip(*columns, strict=True)], unread)


@dataclass(frozen=True)
class _Column:
    """One aggregate in all cells, in the order of the plan."""

    aggregate: Aggregate
    search: Search

    def summaries(self) -> list[Summary]:
        aggregate, search, asked = self.aggregate, self.search, self.search.asked
        statistic, grid = aggregate.statistic, aggregate.grid
        if aggregate.column is None:
            # what is told exactly is the number of records, which is public, and nothing that was counted
            exact = aggregate.choice.method is Method.EXACT
            sizes = (asked.rows if exact else search.records.get(cell, 0) for cell in asked.cells)
            return [Summary(grid, asked.moves(aggregate, size)) for size in sizes]
        name = asked.name(aggregate)
        known = {cell: search.of(cell, name) for cell in asked.cells}
        moves = {cell: asked.moves(aggregate, known[cell].size) for cell in asked.cells}
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
                    for run in asked.runs(aggregate, known[cell].size)
                ),
                total=known[cell].total if statistic.needs_sums else None,
                squares=known[cell].squares if statistic.needs_squares else None,
                beside=beside.get(cell, {}),
                distinct=multiplicities.get(cell, (0, ()))[0] if statistic.needs_distinct else None,
                rarest=multiplicities.get(cell, (0, ()))[1],
                counts=counts.get(cell),
            )
            for cell in asked.cells
        ]

    def _counts(self, grid: Domain) -> dict[int, tuple[int, ...]]:
        """How often each point of a bounded grid occurs in each cell."""
        if grid.lower is None or grid.upper is None:
            raise AssertionError(f"{self.aggregate.label} counts the points of a column without bounds")
        asked, points = self.search.asked, range(grid.lower, grid.upper + 1)
        times = self.search.queries.counts(asked.name(self.aggregate))
        return {cell: tuple(times.get(cell, {}).get(point, 0) for point in points) for cell in asked.cells}

    def _beside(
        self, statistic: Statistic, grid: Domain, known: Mapping[int, Known], moves: Mapping[int, Moves]
    ) -> dict[int, dict[Fraction, tuple[int, ...]]]:
        thresholds = {cell: list(statistic.thresholds(moves[cell], grid, known[cell].total)) for cell in known}
        pairs = {cell: [(floor(t), ceil(t)) for t in points] for cell, points in thresholds.items() if points}
        if not pairs:
            return {}
        found = self.search.queries.beside(self.search.asked.name(self.aggregate), pairs)
        return {cell: dict(zip(thresholds[cell], values, strict=True)) for cell, values in found.items()}
