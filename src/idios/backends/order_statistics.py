"""How the order statistics of a plan are found, and the one scan that counts and adds up for every plan.

1. In a small table: by sorting.
2. At the ends of a large column: by asking for its first and last few, in order.
3. Elsewhere: a sample is sketched, brackets are guessed from it, and the scan that counts anyway fetches what lies
   inside. Ranks that were missed are looked for again with an even sample, and then by sorting.

Each is one query for all cells, whatever their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import ibis.expr.types as ir  # type: ignore[import-untyped]
import numpy as np
import pyarrow as pa

from idios.backends.brackets import Bracket, Known, Piece, outermost, shares_near
from idios.backends.cancellation import Progress
from idios.backends.dialect import Dialect
from idios.backends.queries import WIDE, CellColumn, Queries, Run, aggregate_by_cell, read_sum, sum_exactly
from idios.backends.requirements import NOMINAL, Need, Requirements
from idios.backends.selection import CELL, ONLY
from idios.core.summary import Window
from idios.query.predicates import ALWAYS

SMALL = 50_000
"""Up to this many records, sorting is as fast as any other way."""

FEW = 5_000
"""Up to this many values at either end are fetched with ORDER BY and LIMIT."""

HALF = 31
"""Squares are summed in halves of this many bits: for |v| ≤ 2⁶² no product of two halves leaves 64 bits."""


@dataclass(frozen=True)
class Sample:
    """A way to take a sample: what stands after FROM, and about what share of the records it gives."""

    source: str
    share: float


@dataclass
class RankSearch:
    """The counts, sums and order statistics of one run of a plan."""

    requirements: Requirements
    queries: Queries
    needs: Mapping[str, Need]
    samples: Sequence[Sample]
    """Ways to take a sample, quickest first; none if the table is small."""
    progress: Progress
    records: dict[int, int] = field(default_factory=dict)
    known: dict[CellColumn, Known] = field(default_factory=dict)
    windows: dict[tuple[int, str, Run], Window] = field(default_factory=dict)

    def scan(self) -> None:
        """Count, add up, and look into the first brackets."""
        brackets: dict[CellColumn, tuple[Bracket, ...]] = {}
        if self.samples and self._inner:
            self.progress("sampling", 0.0)
            brackets = self._guess(self.samples[0])
        self.progress("scanning", 0.2)
        self.records, self.known = scan(self.queries, self.needs, brackets)

    def complete(self) -> None:
        """Find the order statistics that are not known yet."""
        if self._plain:
            self._take_ends()
        for sample in self.samples[1:]:
            missing = {(cell, name) for name, cells in self._missing().items() for cell in cells}
            if sum(self.known[key].size for key in missing) > SMALL:
                self._search_again(sample, missing)
        for name, runs in self._missing().items():
            self.progress("sorting", 0.6)
            sorted_windows = self.queries.sorted_windows(name, runs, sums=self.needs[name].total)
            for cell, windows in sorted_windows.items():
                self.windows |= {(cell, name, run): cut for run, cut in zip(runs[cell], windows, strict=True)}

    def of(self, cell: int, name: str) -> Known:
        """What is known of a column in a cell."""
        return self.known.get((cell, name), Known())

    def window(self, cell: int, name: str, run: Run, *, sums: bool) -> Window:
        """One run of ranks, with the sum of everything below it if wanted."""
        window = self.of(cell, name).window(*run, sums=sums)
        if window is None:
            window = self.windows[cell, name, run]
        return window if sums else replace(window, below=0)

    @property
    def _plain(self) -> bool:
        """Whether a large column is read as it stands in the source, so that its ends are quick to find there."""
        return bool(self.samples) and not self.requirements.plan.groups and self.requirements.plan.filter == ALWAYS

    @cached_property
    def _inner(self) -> dict[str, list[Run]]:
        """The columns for which brackets are needed, and the ranks they would be asked for."""
        inner = {name: self._bracketed(runs, NOMINAL) for name, runs in self.requirements.nominal.items()}
        return {name: runs for name, runs in inner.items() if runs}

    def _bracketed(self, runs: Iterable[Run], size: int) -> list[Run]:
        return [run for run in runs if not (self._plain and (run[0] <= FEW or size - run[1] < FEW))]

    def _guess(self, sample: Sample, only: Iterable[CellColumn] | None = None) -> dict[CellColumn, tuple[Bracket, ...]]:
        """Where the wanted ranks should lie, by a sample; of some columns in some cells ``only``."""
        if not self._inner:
            return {}  # ends alone, which the source could not give in order: sorting finds them
        places = {rank / NOMINAL for runs in self._inner.values() for run in runs for rank in run}
        sampled = replace(self.queries, source=sample.source)
        sketches = sampled.sketches(sorted(self._inner), shares_near(places), sample.share)
        guesses: dict[CellColumn, tuple[Bracket, ...]] = {}
        for key, sketch in sketches.items():
            if only is not None and key not in only:
                continue
            brackets = [
                sketch.bracket(*run)
                for aggregate in self.requirements.ranked
                if self.requirements.alias(aggregate) == key[1]
                for run in self._bracketed(self.requirements.runs(aggregate, sketch.population), sketch.population)
            ]
            guesses[key] = outermost(bracket for bracket in brackets if bracket is not None)
        return {key: outer for key, outer in guesses.items() if outer}

    def _take_ends(self) -> None:
        for name, runs in self.requirements.nominal.items():
            known = self.known[ONLY, name]
            if known.unread:
                continue  # the order of the source is not that of the points
            bottom = max((last for first, last in runs if first <= FEW), default=0)
            top = max((NOMINAL - first + 1 for first, last in runs if NOMINAL - last < FEW), default=0)
            pieces = [self.queries.bottom(name, bottom)] if bottom else []
            pieces += [self.queries.top(name, top, known.size, known.total)] if top else []
            self.known[ONLY, name] = known.extended(pieces)

    def _search_again(self, sample: Sample, missing: set[CellColumn]) -> None:
        self.progress("sampling again", 0.5)
        brackets = self._guess(sample, missing)
        needs = {name: Need(total=self.needs[name].total) for _, name in brackets}
        _, scanned = scan(self.queries, needs, brackets)
        for key in brackets:
            self.known[key] = self.known[key].extended(scanned[key].pieces)

    def _missing(self) -> dict[str, dict[int, list[Run]]]:
        """The runs of ranks that no piece holds, by column and cell."""
        missing: dict[str, dict[int, list[Run]]] = {}
        for aggregate in self.requirements.ranked:
            name = self.requirements.alias(aggregate)
            for cell in self.requirements.cells:
                known = self.of(cell, name)
                for run in self.requirements.runs(aggregate, known.size):
                    wanted = missing.setdefault(name, {}).setdefault(cell, [])
                    if not known.holds(*run) and run not in wanted:
                        wanted.append(run)
        missing = {name: {c: runs for c, runs in cells.items() if runs} for name, cells in missing.items()}
        return {name: cells for name, cells in missing.items() if cells}


def scan(
    queries: Queries, needs: Mapping[str, Need], brackets: Mapping[CellColumn, Sequence[Bracket]]
) -> tuple[dict[int, int], dict[CellColumn, Known]]:
    """How many records each cell has, and of each column what it needs and what its brackets hold."""
    constants = {name: _ends(name, brackets) for name in needs}
    columns = {name: queries.selection.grid_column(name) for name in needs}
    scans = tuple(
        _ColumnScan(
            name,
            need,
            tuple(constants[name]),
            flagged=columns[name].readable != columns[name].given,
            nullable=columns[name].declared.nullable,
        )
        for name, need in needs.items()
    )
    numbers = {end: numbers for ends in constants.values() for end, numbers in ends.items()}
    table = queries.fetch(_count, scans, constants=numbers)
    records: dict[int, int] = {}
    known: dict[CellColumn, Known] = {}
    # lists may be long, and stay as they are
    lists = [column for column in table.column_names if column.endswith("_inside")]
    for i, row in enumerate(table.drop_columns(lists).to_pylist()):
        cell = row.get(CELL, ONLY)
        records[cell] = row["records"]
        for name, need in needs.items():
            pieces = tuple(
                _piece(bracket, row, table, i, f"{name}_{k}")
                for k, bracket in enumerate(brackets.get((cell, name), ()))
            )
            known[cell, name] = _known(row, name, need, pieces, columns[name].declared.nullable)
    return records, known


@dataclass(frozen=True)
class _ColumnScan:
    """One column, what it needs, and the names of its brackets' ends."""

    name: str
    need: Need
    ends: tuple[str, ...]
    flagged: bool
    """Whether the condition that a value can be read is quicker than reading it."""
    nullable: bool


def _count(relation: ir.Table, dialect: Dialect, scans: tuple[_ColumnScan, ...]) -> ir.Table:
    aggregates: dict[str, ir.Value] = {"records": relation.count()}
    for column in scans:
        aggregates |= _totals(relation, dialect, column) | _inside(relation, dialect, column)
    return aggregate_by_cell(relation, aggregates)


def _totals(relation: ir.Table, dialect: Dialect, column: _ColumnScan) -> dict[str, ir.Value]:
    name, need, value = column.name, column.need, relation[column.name]
    only_counted = need == Need() and not column.ends
    if column.flagged and (only_counted or not column.nullable):
        read = relation.count(where=relation[f"has_{name}"])
    else:
        # of a column that cannot miss values, those before what cannot be read was replaced
        read = (value if column.nullable else relation[f"p{name[1:]}"]).count()
    aggregates: dict[str, ir.Value] = {f"{name}_read": read}
    if need.total:
        aggregates[f"{name}_sum"] = sum_exactly(value, dialect).cast(WIDE)
    if need.squares:
        high, low = value >> HALF, value & (2**HALF - 1)
        for part, product in (("hh", high * high), ("hl", high * low), ("ll", low * low)):
            aggregates[f"{name}_{part}"] = sum_exactly(product, dialect).cast(WIDE)
    return aggregates


def _inside(relation: ir.Table, dialect: Dialect, column: _ColumnScan) -> dict[str, ir.Value]:
    value, ends = relation[column.name], column.ends
    aggregates: dict[str, ir.Value] = {}
    for end in ends:
        prefix, _, kind = end.rpartition("_")
        if kind == "low":
            low = relation[end]
            aggregates[f"{prefix}_below"] = value.count(where=value < low)
            if column.need.total:
                aggregates[f"{prefix}_sum"] = sum_exactly(value, dialect, where=value < low).cast(WIDE)
            if f"{prefix}_first" in ends:
                aggregates[f"{prefix}_lows"] = value.count(where=value == low)
            first = relation[f"{prefix}_first"] if f"{prefix}_first" in ends else low
            inside = (value >= first) & (value <= relation[f"{prefix}_last"])
            aggregates[f"{prefix}_inside"] = value.collect(where=inside)
        elif kind == "high":
            aggregates[f"{prefix}_highs"] = value.count(where=value == relation[end])
    return aggregates


def _ends(name: str, brackets: Mapping[CellColumn, Sequence[Bracket]]) -> dict[str, dict[int, int]]:
    """The ends of each cell's k-th bracket, as constants of the cells; ties only where there are any."""
    of_cell = {cell: listed for (cell, column), listed in brackets.items() if column == name}
    ends: dict[str, dict[int, int]] = {}
    for k in range(max(map(len, of_cell.values()), default=0)):
        kth = {cell: listed[k] for cell, listed in of_cell.items() if k < len(listed)}
        ends[f"{name}_{k}_low"] = {cell: bracket.low for cell, bracket in kth.items()}
        ends[f"{name}_{k}_last"] = {cell: bracket.last for cell, bracket in kth.items()}
        if any(bracket.tied_low for bracket in kth.values()):
            ends[f"{name}_{k}_first"] = {cell: bracket.first for cell, bracket in kth.items()}
        if any(bracket.tied_high for bracket in kth.values()):
            ends[f"{name}_{k}_high"] = {cell: bracket.high for cell, bracket in kth.items()}
    return ends


def _known(row: Mapping[str, Any], name: str, need: Need, pieces: tuple[Piece, ...], nullable: bool) -> Known:
    read = row[f"{name}_read"] or 0  # Spark counts by adding, and a sum of nothing is NULL
    size = read if nullable else row["records"]
    squares = 0
    if need.squares:
        hh, hl, ll = (read_sum(row[f"{name}_{part}"], size) for part in ("hh", "hl", "ll"))
        squares = (hh << 2 * HALF) + (hl << HALF + 1) + ll
    return Known(
        size=size,
        total=read_sum(row[f"{name}_sum"], size) if need.total else 0,
        squares=squares,
        unread=size - read,
        pieces=pieces,
    )


def _piece(bracket: Bracket, row: Mapping[str, Any], table: pa.Table, i: int, prefix: str) -> Piece:
    listed = table.column(f"{prefix}_inside")[i]
    start = row[f"{prefix}_below"]
    return Piece(
        start=start,
        below=read_sum(row[f"{prefix}_sum"], start) if f"{prefix}_sum" in row else 0,
        low=bracket.low,
        lows=row[f"{prefix}_lows"] if bracket.tied_low else 0,
        inside=listed.values.to_numpy(zero_copy_only=False) if listed.is_valid else np.empty(0, np.int64),
        high=bracket.high,
        highs=row[f"{prefix}_highs"] if bracket.tied_high and bracket.high > bracket.low else 0,
    )
