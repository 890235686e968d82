"""Order statistics of groups as arrays.

Where each cell is asked for many ranks, all values are fetched in one statement, unless there are too many, and the
ranks are found here: for an engine that is a second pass, with the ends of a bracket for every cell. Where each is
asked for few, one statement counts, and one more fetches quantiles at shares that hit these ranks in all cells. What
is found is what ``RankSearch`` finds, which goes on where this cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idios.core.cell_windows import CellWindows
from idios.core.statistics.order import OrderStatistic
from idios.data.cancellation import Progress
from idios.data.group_ranks import MOST_LISTED, NARROW, WIDE_ENOUGH, choose_shares, find_hit, read_points
from idios.data.queries import Queries, Run
from idios.data.requirements import Requirements
from idios.data.scan import CellCounts, Need, count_cells
from idios.plan.question import Aggregate

GROUPS = "groups"
"""Where the counts of the groups that were asked about last are kept."""


@dataclass(frozen=True)
class GroupWindows:
    """By aggregate, what it reads of every cell; how many records there are, and by column how many were not read."""

    columns: list[CellWindows]
    records: int
    unread: Mapping[str, int]


@dataclass(frozen=True)
class _Wanted:
    """The ranks that some aggregates want of one column, by the size of a cell."""

    name: str
    aggregates: Sequence[Aggregate]
    sizes: NDArray[np.int64]
    """By cell, in the plan's order."""
    runs: Mapping[int, Sequence[Sequence[Run]]]
    """By size, for each aggregate the run that it reads, or none."""
    times: Mapping[int, int]
    """By size, how many cells have it."""

    @property
    def narrow(self) -> bool:
        """Whether there are few ranks in every cell."""
        return all(last - first < NARROW for runs in self.runs.values() for run in runs for first, last in run)

    @property
    def dense(self) -> bool:
        """Whether so many ranks are wanted that all may be fetched."""
        wanted = sum(
            self.times[size] * sum(last - first + 1 for run in runs for first, last in run)
            for size, runs in self.runs.items()
        )
        return int(self.sizes.sum()) <= min(WIDE_ENOUGH * wanted, MOST_LISTED)

    def find_runs(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """By cell, the first rank that an aggregate reads, and how many it reads."""
        runs = [listed[number] for listed in self.runs.values()]  # by size, which ascends
        firsts = np.array([run[0][0] if run else 1 for run in runs], np.int64)
        counts = np.array([run[0][1] - run[0][0] + 1 if run else 0 for run in runs], np.int64)
        places = np.searchsorted(np.array(list(self.runs), np.int64), self.sizes)
        return firsts[places], counts[places]


@dataclass(frozen=True)
class GroupReader:
    """Reads a plan with many cells, of which all aggregates are order statistics."""

    requirements: Requirements
    queries: Queries
    progress: Progress

    @property
    def applies(self) -> bool:
        """Whether this can be tried: public facts alone."""
        plan, selection = self.requirements.plan, self.requirements.selection
        if not plan.groups or not self.queries.connection.dialect.exact_quantiles:
            return False
        ordered = all(a.column is not None and isinstance(a.reading, OrderStatistic) for a in plan.aggregates)
        if not ordered or any(need != Need() for need in self.requirements.needs().values()):
            return False
        columns = [selection.grid_column(self.requirements.alias(aggregate)) for aggregate in plan.aggregates]
        return all(column.derive is None and column.place is None for column in columns)

    def read(self) -> GroupWindows | None:
        """What every aggregate reads of every cell; None if the question needs the general way."""
        self.progress("scanning", 0.2)
        counts = self._count()
        self.progress("ranking", 0.4)
        by_name: dict[str, list[Aggregate]] = {}
        for aggregate in self.requirements.plan.aggregates:
            by_name.setdefault(self.requirements.alias(aggregate), []).append(aggregate)
        found: dict[int, CellWindows] = {}
        for name, aggregates in by_name.items():
            windows = self._read_column(self._want(name, aggregates, counts), counts)
            if windows is None:
                return None
            found |= {id(aggregate): window for aggregate, window in zip(aggregates, windows, strict=True)}
        columns = [found[id(aggregate)] for aggregate in self.requirements.plan.aggregates]
        return GroupWindows(columns, int(counts.records.sum()), counts.unread)

    def _count(self) -> CellCounts:
        """How many records each cell has, which is counted once, unless values are listed with it."""
        names, plan = list(self.requirements.needs()), self.requirements.plan
        if self._lists_at_once:
            return count_cells(self.queries, names, listed=True)
        counted = {} if self.queries.kept is None else self.queries.kept
        # names are those of a relation, and stand for other columns in other plans
        columns = tuple((name, self.requirements.selection.column_name(name)) for name in names)
        key, (kept, known) = (plan.groups, plan.filter, self.queries.source, columns), counted.get(GROUPS, (None, None))
        if known is None or kept != key:
            known = count_cells(self.queries, names)
            counted[GROUPS] = key, known  # those of one question are kept: of many groups they are much
        found: CellCounts = known
        return found

    @property
    def _lists_at_once(self) -> bool:
        """Whether each cell is asked for many ranks, if cells are of equal size, and all values are few enough."""
        requirements = self.requirements
        rows, cells = requirements.rows, len(requirements.cells)
        runs = [run for a in requirements.plan.aggregates for run in requirements.runs(a, max(1, rows // cells))]
        return rows <= MOST_LISTED and any(last - first >= NARROW for first, last in runs)

    def _want(self, name: str, aggregates: Sequence[Aggregate], counts: CellCounts) -> _Wanted:
        sizes = np.zeros(self.requirements.selection.span + 1, np.int64)
        sizes[counts.cells] = counts.sizes[name]
        sizes = sizes[self._codes]
        different, times = np.unique(sizes, return_counts=True)
        runs = {n: [self.requirements.runs(aggregate, n) for aggregate in aggregates] for n in different.tolist()}
        return _Wanted(name, aggregates, sizes, runs, dict(zip(different.tolist(), times.tolist(), strict=True)))

    @property
    def _codes(self) -> NDArray[np.int64]:
        return np.array(self.requirements.cells, np.int64)

    def _read_column(self, wanted: _Wanted, counts: CellCounts) -> list[CellWindows] | None:
        if any(len(run) > 1 for runs in wanted.runs.values() for run in runs):
            return None
        if counts.lists:
            return self._cut_lists(wanted, counts)
        if wanted.dense:
            listed = count_cells(self.queries, [wanted.name], listed=True)
            return self._cut_lists(self._want(wanted.name, wanted.aggregates, listed), listed)
        if wanted.narrow and not counts.unread[wanted.name]:
            # labels that are not declared are left out first, unless there are so few that this takes longer
            filtered = 2 * int(counts.records.sum()) < self.requirements.rows
            return self._read_shares(wanted, filtered=filtered)
        return None

    def _cut_lists(self, wanted: _Wanted, counts: CellCounts) -> list[CellWindows]:
        """The wanted ranks of lists in any order, which are sorted as far as that takes."""
        values, lengths = counts.lists[wanted.name].values, counts.lists[wanted.name].lengths
        stops = np.cumsum(lengths)
        spans = {
            size: (min(first for first, _ in found), max(last for _, last in found))
            for size, runs in wanted.runs.items()
            if (found := [span for run in runs for span in run])
        }
        for stop, size in zip(stops.tolist(), lengths.tolist(), strict=True):
            if size in spans:
                first, last = spans[size]
                part = values[stop - size : stop]
                if WIDE_ENOUGH * (last - first + 1) < size:
                    part.partition((first - 1, last - 1))
                    part[first - 1 : last].sort()
                else:
                    part.sort()
        begun = self._spread(counts.cells, stops - lengths)
        windows = []
        for i, aggregate in enumerate(wanted.aggregates):
            firsts, kept = wanted.find_runs(i)
            windows.append(self._make(aggregate, wanted.sizes, firsts, begun + firsts - 1, kept, values))
        return windows

    def _read_shares(self, wanted: _Wanted, *, filtered: bool) -> list[CellWindows] | None:
        """The few values that are wanted, where there are shares that hit them in every cell."""
        ranks = {
            size: sorted({rank for run in runs for first, last in run for rank in range(first, last + 1)})
            for size, runs in wanted.runs.items()
        }
        spans = [(rank - 1, rank, size, wanted.times[size]) for size in ranks for rank in ranks[size]]
        shares = choose_shares(spans)
        hits = {size: {find_hit(share, size): i for i, share in enumerate(shares)} for size in ranks}
        if not shares or any(rank not in hits[size] for size in ranks for rank in ranks[size]):
            return None
        points = read_points(self.queries, wanted.name, shares, filtered=filtered)
        rows, held = (self._spread(points.cells, numbers) for numbers in (np.arange(len(points.cells)), points.held))
        if (held != wanted.sizes).any():
            return None
        return [self._cut(wanted, i, hits, points.points, rows) for i in range(len(wanted.aggregates))]

    def _cut(
        self,
        wanted: _Wanted,
        number: int,
        hits: Mapping[int, Mapping[int, int]],
        points: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> CellWindows:
        """The windows of one aggregate, from the points of each cell at all shares."""
        sizes, (firsts, counts) = wanted.sizes, wanted.find_runs(number)
        starts = np.cumsum(counts) - counts
        hit: dict[int, list[int]] = {}
        for size, runs in wanted.runs.items():
            hit[size] = [hits[size][rank] for first, last in runs[number] for rank in range(first, last + 1)]
            if hit[size] != sorted(hit[size]):
                raise AssertionError("shares that ascend hit ranks that do not")
        # by size, the columns of its points one after the other; by value, its cell and which of these it is
        different = np.array(sorted(hit), np.int64)
        columns = np.array([column for size in sorted(hit) for column in hit[size]], np.int64)
        begun = np.cumsum([0, *(len(hit[size]) for size in sorted(hit))])[np.searchsorted(different, sizes)]
        cells = np.repeat(np.arange(len(sizes)), counts)
        values = points[rows[cells], columns[np.arange(len(cells)) - starts[cells] + begun[cells]]]
        return self._make(wanted.aggregates[number], sizes, firsts, starts, counts, values)

    def _spread(self, cells: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the cells that there are, by cell in the plan's order; 0 for the others."""
        spread = np.zeros(self.requirements.selection.span + 1, np.int64)
        spread[cells] = numbers
        found: NDArray[np.int64] = spread[self._codes]
        return found

    def _make(
        self,
        aggregate: Aggregate,
        sizes: NDArray[np.int64],
        firsts: NDArray[np.int64],
        starts: NDArray[np.int64],
        counts: NDArray[np.int64],
        values: NDArray[np.int64],
    ) -> CellWindows:
        moves = self.requirements.moves
        return CellWindows(aggregate.grid, lambda size: moves(aggregate, size), sizes, firsts, starts, counts, values)
