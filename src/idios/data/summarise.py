"""From a plan to the summaries that its statistics read.

    plan ─▶ what it requires of columns and cells ─▶ one scan that counts and adds up ─▶ order statistics ─▶ summaries

Order statistics are found:

1. In a small table: by sorting; here, if the engine is in this process (``fetched_columns.py``).
2. At the ends of a large column, if nothing else is asked of it: by asking for its first and last few, in order.
3. Elsewhere: a sample is sketched, brackets are guessed from it, and the scan that counts anyway fetches what lies
   inside. Ends that were missed are asked for as in 2; other ranks are looked for again with an even sample, and then
   by sorting.
4. Where PostgreSQL has an index: ``indexed.py``.
5. In groups: ``group_ranks.py``, or in Spark ``group_counts.py``.

Each is one query for all cells, whatever their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

from idios.core.calibration import Method
from idios.core.cell_windows import SummaryTable
from idios.core.domain import Domain
from idios.core.neighbours import Moves
from idios.core.statistics import Reading
from idios.core.summary import Summary, Window
from idios.data.brackets import Bracket, Known
from idios.data.cancellation import CancellationToken, Progress
from idios.data.clip import Totals
from idios.data.fetched_columns import FetchedColumns, fetch_columns
from idios.data.group_counts import LARGE, Buckets, divide_all, search_by_counting
from idios.data.group_ranks import Wanted, read_brackets, read_by_shares, read_lists
from idios.data.group_windows import GroupReader
from idios.data.guesses import FEW, ColumnSample, Guesses
from idios.data.queries import CHANGED, CellColumn, Queries, Run
from idios.data.requirements import Requirements
from idios.data.scan import Need, count_whole, scan, scan_in_buckets
from idios.data.sql.selection import ONLY
from idios.errors import SourceError
from idios.plan.question import Aggregate

SMALL = 50_000
"""Up to this many records, sorting is as fast as any other way."""


@dataclass
class RankSearch:
    """The counts, sums and order statistics of one run of a plan."""

    requirements: Requirements
    queries: Queries
    needs: Mapping[str, Need]
    samples: Sequence[ColumnSample]
    """Ways to take a sample, quickest first; none if the table is small."""
    progress: Progress
    records: dict[int, int] = field(default_factory=dict)
    known: dict[CellColumn, Known] = field(default_factory=dict)
    windows: dict[tuple[int, str, Run], Window] = field(default_factory=dict)
    labels: dict[str, dict[int, int]] = field(default_factory=dict)
    """How often each category occurs, of a column that is all that is asked about."""
    spans: dict[str, dict[int, list[Run]]] = field(default_factory=dict)
    """By column where ranks are looked for by counting."""
    buckets: dict[str, Buckets] = field(default_factory=dict)
    """Those of the first of these columns, from the scan."""
    fetched: FetchedColumns | None = None
    """All columns, if that is less work than asking about them."""

    def scan(self) -> None:
        """Count, add up, and look into the first brackets."""
        if list(self.needs.values()) == [Need()] and not self.requirements.nominal and self._count_labels(*self.needs):
            return
        if self._is_fetched:
            self.fetched = fetch_columns(self.queries, list(self.needs))
            self.records, self.known = {ONLY: self.fetched.records}, self.fetched.know(self.needs)
            return
        brackets: dict[CellColumn, tuple[Bracket, ...]] = {}
        if self.samples and self._guesses.inner and not self._in_groups:
            self.progress("sampling", 0.0)
            if self._counts_groups:
                self.spans = self._guesses.guess_spans(self.samples[0])
            else:
                brackets = self._guesses.guess(self.samples[0])
        self.progress("scanning", 0.2)
        if self.spans:
            name = next(iter(self.spans))
            found = scan_in_buckets(self.queries, self.needs, name, self.spans[name])
            self.records, self.known, self.buckets[name] = found
            return
        if not brackets and self.requirements.selection.is_whole and set(self.needs.values()) <= {Need()}:
            self.records, self.known = count_whole(self.queries, list(self.needs))
            return
        self.records, self.known = scan(self.queries, self.needs, brackets)
        self._guesses.keep(brackets, self.known)

    @property
    def _is_fetched(self) -> bool:
        """Whether columns are fetched whole: few records, and more to ask than their number and sums."""
        plan, in_process = self.requirements.plan, self.queries.connection.in_process
        small = in_process and not plan.groups and self.requirements.rows <= SMALL
        readings = (aggregate.reading for aggregate in plan.aggregates if aggregate.column is not None)
        return small and (
            bool(self.requirements.nominal)
            or any(each.needs_distinct or each.needs_counts or each.needs_squares for each in readings)
        )

    @property
    def reader(self) -> Queries | FetchedColumns:
        """What says the rest of a column."""
        return self.queries if self.fetched is None else self.fetched

    @property
    def _in_groups(self) -> bool:
        """Whether the order statistics of all cells are found together."""
        return bool(self.requirements.plan.groups) and self.queries.connection.dialect.exact_quantiles

    @property
    def _counts_groups(self) -> bool:
        """Whether the order statistics of large cells are found by counting."""
        plan, dialect = self.requirements.plan, self.queries.connection.dialect
        return bool(plan.groups) and dialect.quick_counts and self.requirements.rows >= LARGE * len(plan.cells)

    def complete(self) -> None:
        """Find the order statistics that are not known yet."""
        if not self._missing():
            return
        self._take_ends()
        for name, runs in self._missing().items():
            if name in self.spans:
                self._count_groups(Wanted(name, runs, {cell: self.known[cell, name].size for cell in runs}))
        if self._in_groups:
            for name, runs in self._missing().items():
                self._rank_groups(Wanted(name, runs, {cell: self.known[cell, name].size for cell in runs}))
        for sample in self.samples[1:]:
            missing = {(cell, name) for name, cells in self._missing().items() for cell in cells}
            if sum(self.known[key].size for key in missing) > SMALL:
                self._search_again(sample, missing)
        for name, runs in self._missing().items():
            self.progress("sorting", 0.6)
            sorted_windows = self.queries.sorted_windows(name, runs, sums=self.needs[name].below)
            for cell, windows in sorted_windows.items():
                self.windows |= {(cell, name, run): cut for run, cut in zip(runs[cell], windows, strict=True)}

    def _count_groups(self, wanted: Wanted) -> None:
        """Find order statistics of large cells by counting; those of the first column were divided by the scan."""
        self.progress("counting", 0.4)
        name, sums = wanted.name, self.needs[wanted.name].below
        buckets = self.buckets.get(name) or divide_all(self.queries, name, self.spans[name], sums=sums)
        windows = search_by_counting(self.queries, wanted, buckets, sums=sums)
        self.windows |= {(cell, name, run): window for (cell, run), window in windows.items()}

    def _rank_groups(self, wanted: Wanted) -> None:
        """Find order statistics of many cells: by shares, in lists, or in brackets."""
        self.progress("ranking", 0.4)
        name, sums = wanted.name, self.needs[wanted.name].below
        column = self.requirements.selection.grid_column(name)
        if wanted.dense:
            for cell, piece in read_lists(self.queries, wanted).items():
                if (cell, name) in self.known:
                    self.known[cell, name] = self.known[cell, name].extended([piece])
        elif (
            column.derive is None and column.place is None and not any(self.known[c, name].unread for c in wanted.runs)
        ):
            if wanted.narrow and not sums:
                windows = read_by_shares(self.queries, wanted)
                self.windows |= {(cell, name, run): window for (cell, run), window in windows.items()}
            else:
                self._scan_again(read_brackets(self.queries, wanted))

    def _count_labels(self, name: str) -> bool:
        """Count each category, if that is all there is to do."""
        counted = self.queries.label_counts(name)
        if counted is None:
            return False
        records, others = sum(counted.values()), counted.get(None, 0)
        times = {index: number for index, number in counted.items() if index is not None}
        default = self.requirements.selection.grid_column(name).default
        if default is not None and others:
            times[default] = times.get(default, 0) + others
        self.records, self.labels[name] = {ONLY: records}, times
        self.known[ONLY, name] = Known(sum(times.values()), unread=0 if default is None else others)
        return True

    def of(self, cell: int, name: str) -> Known:
        """What is known of a column in a cell."""
        return self.known.get((cell, name), Known())

    def window(self, cell: int, name: str, run: Run, *, sums: bool) -> Window:
        """One run of ranks, with the sum of everything below it if wanted."""
        window = self.of(cell, name).window(*run, sums=sums)
        if window is None:
            window = self.windows[cell, name, run]
        return window if sums else replace(window, below=0)

    @cached_property
    def _guesses(self) -> Guesses:
        return Guesses(self.requirements, self.queries, self.needs, large=bool(self.samples))

    def _take_ends(self) -> None:
        for name, missing in self._missing().items():
            if not self._guesses.is_large_and_plain(name) or self.known[ONLY, name].unread:
                continue  # the order of the source is not that of the points
            known = self.known[ONLY, name]
            least, greatest = self.requirements.count_ends(missing[ONLY], FEW, known.size)
            pieces = [self.queries.bottom(name, least)] if least else []
            pieces += [self.queries.top(name, greatest, known.size, known.total)] if greatest else []
            self.known[ONLY, name] = known.extended(pieces)

    def _search_again(self, sample: ColumnSample, missing: set[CellColumn]) -> None:
        self.progress("sampling again", 0.5)
        self._scan_again(self._guesses.guess(sample, missing))

    def _scan_again(self, brackets: Mapping[CellColumn, tuple[Bracket, ...]]) -> None:
        """Look into some brackets."""
        if not brackets:
            return
        needs = {name: Need(total=self.needs[name].below, below=self.needs[name].below) for _, name in brackets}
        _, scanned = scan(self.queries, needs, brackets)
        self._guesses.keep(brackets, scanned)
        for key in brackets:
            self.known[key] = self.known[key].extended(scanned[key].pieces)

    def _missing(self) -> dict[str, dict[int, list[Run]]]:
        """The runs of ranks that no piece holds, by column and cell."""
        missing: dict[str, dict[int, list[Run]]] = {}
        for aggregate in self.requirements.ranked:
            name = self.requirements.alias(aggregate)
            cells = missing.setdefault(name, {})
            for cell in self.requirements.cells:
                known = self.of(cell, name)
                for run in self.requirements.runs(aggregate, known.size):
                    if (cell, name, run) in self.windows or known.holds(*run):
                        continue
                    wanted = cells.setdefault(cell, [])
                    if run not in wanted:
                        wanted.append(run)
        return {name: cells for name, cells in missing.items() if cells}


@dataclass(frozen=True)
class Summaries:
    """What every aggregate of a plan needs of every cell."""

    cells: Sequence[Sequence[Summary]]
    unread: Mapping[str, int]
    """By column that is declared not nullable: how many selected values were missing or could not be read."""
    totals: Mapping[int, Totals] = field(default_factory=dict)
    """By the index of an aggregate whose limits will be drawn: what is known of all values."""


def summarise(
    requirements: Requirements,
    queries: Queries,
    samples: Sequence[ColumnSample],
    cancellation: CancellationToken,
    find_ordered: Callable[[RankSearch], bool],
) -> Summaries:
    """For every cell of a plan, what each of its aggregates needs; ``find_ordered`` tells if it found it all."""
    if (arrays := _summarise_groups(requirements, queries, cancellation)) is not None:
        return arrays
    search = RankSearch(requirements, queries, requirements.needs(), samples, cancellation.step)
    if not find_ordered(search):
        if not requirements.plan.groups:
            search.needs = requirements.needs(clipped=True)
        search.scan()
        if sum(search.records.values()) > requirements.rows:
            raise SourceError(CHANGED)
        search.complete()
    cancellation.step("summarising", 0.9)
    columns = [_AggregateInCells(aggregate, search).summarise() for aggregate in requirements.plan.aggregates]
    unread: dict[str, int] = {}
    for (_, name), known in search.known.items():
        column = requirements.selection.column_name(name)
        unread[column] = unread.get(column, 0) + known.unread
    return Summaries([list(cell) for cell in zip(*columns, strict=True)], unread, dict(_list_totals(search)))


def _list_totals(search: RankSearch) -> Iterator[tuple[int, Totals]]:
    """The sums that were read of ungrouped columns whose limits will be drawn."""
    plan = search.requirements.plan
    for index, aggregate in enumerate(plan.aggregates):
        if aggregate.choice.clipping is None or plan.groups:
            continue
        name, squares = search.requirements.alias(aggregate), aggregate.statistic.needs_squares
        need = search.needs[name]
        if need.total and (need.squares or not squares):
            known = search.of(ONLY, name)
            yield index, Totals(known.total, known.squares if squares else None)


def _summarise_groups(
    requirements: Requirements, queries: Queries, cancellation: CancellationToken
) -> Summaries | None:
    """The same over arrays, where there are many cells and that serves."""
    reader = GroupReader(requirements, queries, cancellation.step)
    found = reader.read() if reader.applies else None
    if found is None:
        return None
    if found.records > requirements.rows:
        raise SourceError(CHANGED)
    unread = {requirements.selection.column_name(name): number for name, number in found.unread.items()}
    return Summaries(SummaryTable(found.columns), unread)


@dataclass(frozen=True)
class _AggregateInCells:
    """One aggregate in all cells, in the order of the plan."""

    aggregate: Aggregate
    search: RankSearch

    def summarise(self) -> list[Summary]:
        aggregate, search, requirements = self.aggregate, self.search, self.search.requirements
        reading, grid = aggregate.reading, aggregate.grid
        if aggregate.column is None:
            # what is told exactly is the number of records, which is public, and nothing that was counted
            exact = aggregate.choice.method is Method.EXACT
            sizes = (requirements.rows if exact else search.records.get(cell, 0) for cell in requirements.cells)
            return [Summary(grid, requirements.moves(aggregate, size)) for size in sizes]
        name = requirements.alias(aggregate)
        known = {cell: search.of(cell, name) for cell in requirements.cells}
        moves = {cell: requirements.moves(aggregate, known[cell].size) for cell in requirements.cells}
        beside = self._beside(reading, grid, known, moves)
        multiplicities: Mapping[int, tuple[int, tuple[int, ...]]] = {}
        if reading.needs_distinct and name in search.labels:
            times = sorted(search.labels[name].values())
            multiplicities = {ONLY: (len(times), tuple(times[: aggregate.distance]))}
        elif reading.needs_distinct:
            multiplicities = search.reader.rarest(name, aggregate.distance)
        counts = self._counts(grid) if reading.needs_counts else {}
        return [
            Summary(
                grid,
                moves[cell],
                windows=tuple(
                    search.window(cell, name, run, sums=reading.needs_sums)
                    for run in requirements.runs(aggregate, known[cell].size)
                ),
                total=known[cell].total if reading.needs_sums else None,
                squares=known[cell].squares if reading.needs_squares else None,
                beside=beside.get(cell, {}),
                distinct=multiplicities.get(cell, (0, ()))[0] if reading.needs_distinct else None,
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
        name = requirements.alias(self.aggregate)
        known = self.search.labels.get(name)
        times = self.search.reader.counts(name) if known is None else {ONLY: known}
        return {cell: tuple(times.get(cell, {}).get(point, 0) for point in points) for cell in requirements.cells}

    def _beside(
        self, reading: Reading, grid: Domain, known: Mapping[int, Known], moves: Mapping[int, Moves]
    ) -> dict[int, dict[Fraction, tuple[int, ...]]]:
        thresholds = {cell: list(reading.thresholds(moves[cell], grid, known[cell].total)) for cell in known}
        pairs = {cell: [(floor(t), ceil(t)) for t in points] for cell, points in thresholds.items() if points}
        if not pairs:
            return {}
        nearest = self.search.reader.beside(self.search.requirements.alias(self.aggregate), pairs)
        return {cell: dict(zip(thresholds[cell], values, strict=True)) for cell, values in nearest.items()}
