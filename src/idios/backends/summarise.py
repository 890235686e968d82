"""From a plan to the summaries that its statistics read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from idios.backends.asked import Asked, distance
from idios.backends.brackets import Known
from idios.backends.progress import Progress
from idios.backends.queries import Queries
from idios.backends.reading import LIMIT
from idios.backends.search import Sample, Search
from idios.backends.selection import ONLY
from idios.core.domain import Categories, Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Mode, RangeCount, Statistic
from idios.core.summary import Summary
from idios.errors import GridOverflow, SourceError
from idios.query.plan import Aggregate

Found: TypeAlias = Summary | tuple[int, ...]
"""What one aggregate needs of one cell: a summary; for a mode, the count of each declared category."""


def summarise(
    asked: Asked, queries: Queries, samples: Sequence[Sample], fits: Callable[[str], bool], progress: Progress
) -> list[list[Found]]:
    """For every cell of a plan, what each of its aggregates needs."""
    search = Search(asked, queries, asked.needs(fits), samples, progress)
    search.scan()
    _refuse(search)
    search.complete()
    progress("summarising", 0.9)
    columns = [_Column(aggregate, search).found() for aggregate in asked.plan.aggregates]
    progress("summarised", 1.0)
    return [list(cell) for cell in zip(*columns, strict=True)]


def too_far(column: str) -> GridOverflow:
    """What is wrong with a column that has a value beyond ±2⁶² steps."""
    return GridOverflow(
        f"column {column!r} has values more than 2^62 steps away from 0, which cannot be told apart: declare a larger "
        "step, or bounds"
    )


def _refuse(search: Search) -> None:
    """Stop where the data is not what was declared, so that no summary of it would be right."""
    asked = search.asked
    cells = set(asked.cells)
    for (cell, name), known in search.known.items():
        if cell in cells and search.needs[name].ends and (known.least < -LIMIT or known.greatest > LIMIT):
            raise too_far(asked.selection.column(name))
    if sum(search.records.values()) > asked.rows:
        raise SourceError("the source changed while it was being read: ask again")
    if asked.plan.dataset.neighbours is Neighbours.REPLACE:
        for aggregate in asked.plan.aggregates:
            column = aggregate.column
            if aggregate.whole and column and search.of(ONLY, asked.name(aggregate)).size != asked.rows:
                raise SourceError(
                    f"column {column!r} is declared not nullable, and has values that are missing or cannot be read: "
                    "correct the declaration or the data; check counts them"
                )


@dataclass(frozen=True)
class _Column:
    """One aggregate in all cells, in the order of the plan."""

    aggregate: Aggregate
    search: Search

    def found(self) -> Sequence[Found]:
        statistic, domain = self.aggregate.statistic, self.aggregate.domain
        if isinstance(statistic, Mode):
            return self._counts(range(len(domain.values)) if isinstance(domain, Categories) else _points(domain))
        return self._summaries(statistic, self.aggregate.grid)

    def _counts(self, points: range) -> list[tuple[int, ...]]:
        asked = self.search.asked
        times = self.search.queries.counts(asked.name(self.aggregate))
        return [tuple(times.get(cell, {}).get(point, 0) for point in points) for cell in asked.cells]

    def _summaries(self, statistic: Statistic, grid: Domain) -> list[Summary]:
        aggregate, search, asked = self.aggregate, self.search, self.search.asked
        if aggregate.column is None:
            return [Summary(grid, asked.moves(aggregate, search.records.get(cell, 0))) for cell in asked.cells]
        name = asked.name(aggregate)
        known = {cell: search.of(cell, name) for cell in asked.cells}
        moves = {cell: asked.moves(aggregate, known[cell].size) for cell in asked.cells}
        if isinstance(statistic, RangeCount):
            run = (statistic.first, statistic.last)
            inside = {cell: known[cell].ranges.get(run, 0) for cell in asked.cells}
            return [Summary(grid, statistic.moves(moves[cell], grid, inside[cell])) for cell in asked.cells]
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
                    for run in asked.runs(aggregate, known[cell].size)
                ),
                total=known[cell].total if statistic.needs_sums else None,
                squares=known[cell].squares if statistic.needs_squares else None,
                beside=beside.get(cell, {}),
                distinct=multiplicities.get(cell, (0, ()))[0] if statistic.needs_distinct else None,
                rarest=multiplicities.get(cell, (0, ()))[1],
            )
            for cell in asked.cells
        ]

    def _beside(
        self, statistic: Statistic, grid: Domain, known: Mapping[int, Known], moves: Mapping[int, Moves]
    ) -> dict[int, dict[Fraction, tuple[int, ...]]]:
        thresholds = {cell: list(statistic.thresholds(moves[cell], grid, known[cell].total)) for cell in known}
        pairs = {cell: [(floor(t), ceil(t)) for t in points] for cell, points in thresholds.items() if points}
        if not pairs:
            return {}
        found = self.search.queries.beside(self.search.asked.name(self.aggregate), pairs)
        return {cell: dict(zip(thresholds[cell], values, strict=True)) for cell, values in found.items()}


def _points(domain: Domain) -> range:
    if domain.lower is None or domain.upper is None:
        raise AssertionError("a mode is asked of a column with neither categories nor bounds")
    return range(domain.lower, domain.upper + 1)
