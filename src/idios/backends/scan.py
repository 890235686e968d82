"""The query that every plan needs: one pass that counts, adds up, and fetches what lies inside some brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ibis  # type: ignore[import-untyped]
import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import ibis.expr.types as ir  # type: ignore[import-untyped]
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from idios.backends.arrays import exact_sum
from idios.backends.brackets import Bracket, Known, Piece
from idios.backends.dialect import Dialect
from idios.backends.group_counts import (
    BUCKET,
    Buckets,
    Spans,
    aggregate_buckets,
    count_spans,
    number_buckets,
    write_spans,
)
from idios.backends.queries import (
    WIDE,
    CellColumn,
    Queries,
    aggregate_by_cell,
    read_squares,
    read_sum,
    sum_exactly,
    sum_squares_exactly,
)
from idios.backends.selection import CELL, ONLY


@dataclass(frozen=True)
class Need:
    """What is asked of one column besides its inner order statistics."""

    total: bool = False
    squares: bool = False
    least: int = 0
    """How many of the least values."""
    greatest: int = 0
    """How many of the greatest."""


@dataclass(frozen=True)
class CellLists:
    """Values of some cells, one cell after the other, and how many each has."""

    values: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, lists: pa.ChunkedArray) -> CellLists:
        """The values of lists, as an array of our own."""
        chunks = lists.chunks
        values = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in chunks]
        lengths = [chunk.value_lengths().fill_null(0).to_numpy(zero_copy_only=False) for chunk in chunks]
        nothing = np.empty(0, np.int64)
        return cls(np.concatenate([nothing, *values]), np.concatenate([nothing, *lengths]))


@dataclass(frozen=True)
class CellCounts:
    """The cells that have records, how many, and by column how many values count and how many were not read."""

    cells: NDArray[np.int64]
    records: NDArray[np.int64]
    sizes: Mapping[str, NDArray[np.int64]]
    unread: Mapping[str, int]
    lists: Mapping[str, CellLists]
    """All values of each cell, in any order, if they were asked for."""


def count_cells(queries: Queries, names: Sequence[str], *, listed: bool = False) -> CellCounts:
    """What ``scan`` finds where nothing but counts is needed, as arrays; and the values, where they are ``listed``."""
    scans = _list_scans(queries, dict.fromkeys(names, Need()), {})
    table = queries.fetch(_count_and_list if listed else _count_and_add, scans)
    cells, records = (table[name].to_numpy() for name in (CELL, "records"))
    read = {column.name: table[f"{column.name}_read"].to_numpy() for column in scans}
    sizes = {column.name: read[column.name] if column.default is None else records for column in scans}
    unread = {name: int(sizes[name].sum() - read[name].sum()) for name in sizes}
    lists = {name: CellLists.of(table[f"{name}_listed"]) for name in sizes} if listed else {}
    return CellCounts(cells, records, sizes, unread, lists)


def scan(
    queries: Queries, needs: Mapping[str, Need], brackets: Mapping[CellColumn, Sequence[Bracket]]
) -> tuple[dict[int, int], dict[CellColumn, Known]]:
    """How many records each cell has, and of each column what it needs and what its brackets hold."""
    constants = {name: _bracket_ends(name, brackets) for name in needs}
    scans = _list_scans(queries, needs, constants)
    numbers = {end: numbers for ends in constants.values() for end, numbers in ends.items()}
    return _read_cells(queries.fetch(_count_and_add, scans, constants=numbers), scans, brackets)


def scan_in_buckets(
    queries: Queries, needs: Mapping[str, Need], name: str, spans: Spans
) -> tuple[dict[int, int], dict[CellColumn, Known], Buckets]:
    """The same without brackets, and in the same pass the buckets of one column, divided inside one span a cell."""
    scans = _list_scans(queries, needs, {})
    table = queries.fetch(_count_in_buckets, scans, name, count_spans(spans), constants=write_spans(spans))
    added = [column for column in table.column_names if not column.startswith(BUCKET) and column != CELL]
    cells = table.group_by(CELL).aggregate([(column, "sum") for column in added])
    cells = cells.select([CELL, *(f"{column}_sum" for column in added)]).rename_columns([CELL, *added])
    return *_read_cells(cells, scans, {}), Buckets.read(table)


def _list_scans(
    queries: Queries, needs: Mapping[str, Need], constants: Mapping[str, Mapping[str, object]]
) -> tuple[_ColumnScan, ...]:
    columns = {name: queries.selection.grid_column(name) for name in needs}
    return tuple(
        _ColumnScan(
            name,
            need,
            tuple(constants.get(name, ())),
            # the point of a category is never written out before what cannot be read was replaced
            flagged=columns[name].readable != columns[name].given or columns[name].place is not None,
            bounded=columns[name].bounded is not None,
            default=columns[name].default,
        )
        for name, need in needs.items()
    )


def _read_cells(
    table: pa.Table, scans: Sequence[_ColumnScan], brackets: Mapping[CellColumn, Sequence[Bracket]]
) -> tuple[dict[int, int], dict[CellColumn, Known]]:
    records: dict[int, int] = {}
    known: dict[CellColumn, Known] = {}
    # lists may be long, and stay as they are
    lists = [column for column in table.column_names if column.endswith("_inside")]
    for i, row in enumerate(table.drop_columns(lists).to_pylist()):
        cell = row.get(CELL, ONLY)
        records[cell] = row["records"]
        for scanned in scans:
            name = scanned.name
            pieces = tuple(
                _piece(bracket, row, table, i, f"{name}_{k}")
                for k, bracket in enumerate(brackets.get((cell, name), ()))
            )
            known[cell, name] = scanned.read(row, pieces)
    return records, known


@dataclass(frozen=True)
class _ColumnScan:
    """One column, what it needs, and the names of its brackets' ends."""

    name: str
    need: Need
    ends: tuple[str, ...]
    flagged: bool
    """Whether the condition that a value can be read is quicker than reading it, or all that there is."""
    bounded: bool
    """Whether points are within bounds before those that cannot be read are replaced."""
    default: int | None
    """What replaces them."""

    def read(self, row: Mapping[str, Any], pieces: tuple[Piece, ...]) -> Known:
        """What a row of the result says; of points, also what was not read."""
        name, need = self.name, self.need
        read = row[f"{name}_read"] or 0  # Spark counts by adding, and a sum of nothing is NULL
        size = read if self.default is None else row["records"]
        counted, default = (read, self.default or 0) if self.bounded else (size, 0)
        replaced = size - counted
        total = read_sum(row[f"{name}_sum"], counted) + replaced * default if need.total else 0
        squares = read_squares(row, name, counted) + replaced * default**2 if need.squares else 0
        if need.least:
            ends = _take(_list(row[f"{name}_least"]), [default] * min(replaced, need.least), need.least)
            pieces += (Piece(0, inside=ends),)
        if need.greatest:
            negative = [-value for value in _list(row[f"{name}_greatest"])]
            ends = -_take(negative, [-default] * min(replaced, need.greatest), need.greatest)
            pieces += (Piece(size - len(ends), below=total - exact_sum(ends), inside=ends),)
        return Known(size, total, squares, unread=size - read, pieces=pieces)


def _list(found: Sequence[int] | int | None) -> Sequence[int]:
    """Several values, or one, or none."""
    return [] if found is None else [found] if isinstance(found, int) else found


def _take(values: Sequence[int], more: Sequence[int], number: int) -> NDArray[np.int64]:
    """The least of some values and more of them."""
    return np.array(sorted([*values, *more])[:number], np.int64)


@ibis.udf.agg.builtin(name="min")  # type: ignore[untyped-decorator]
def _least(value: int, number: int) -> dt.Array(dt.int64):  # type: ignore[valid-type]
    """The least values, where an engine has such an aggregate."""


@ibis.udf.agg.builtin(name="max")  # type: ignore[untyped-decorator]
def _greatest(value: int, number: int) -> dt.Array(dt.int64):  # type: ignore[valid-type]
    """The greatest values."""


def _count_and_add(relation: ir.Table, dialect: Dialect, scans: tuple[_ColumnScan, ...]) -> ir.Table:
    aggregates: dict[str, ir.Value] = {"records": relation.count()}
    for column in scans:
        aggregates |= _totals(relation, dialect, column) | _inside(relation, dialect, column)
    return aggregate_by_cell(relation, aggregates)


def _count_and_list(relation: ir.Table, dialect: Dialect, scans: tuple[_ColumnScan, ...]) -> ir.Table:
    aggregates: dict[str, ir.Value] = {"records": relation.count()}
    for column in scans:
        listed = relation[column.name].collect(include_null=column.default is not None)  # there are none then
        aggregates |= _totals(relation, dialect, column) | {f"{column.name}_listed": listed}
    return aggregate_by_cell(relation, aggregates)


def _count_in_buckets(
    relation: ir.Table, dialect: Dialect, scans: tuple[_ColumnScan, ...], name: str, spans: int
) -> ir.Table:
    sums = any(column.need.total for column in scans if column.name == name)
    relation = relation.mutate(**{BUCKET: number_buckets(relation, name, spans)})
    aggregates: dict[str, ir.Value] = {"records": relation.count()}
    for column in scans:
        aggregates |= _totals(relation, dialect, column)
    aggregates |= aggregate_buckets(relation, dialect, name, sums)
    return relation.group_by([CELL, BUCKET]).aggregate(**aggregates).drop(BUCKET)


def _totals(relation: ir.Table, dialect: Dialect, column: _ColumnScan) -> dict[str, ir.Value]:
    name, need = column.name, column.need
    point = relation[f"p{name[1:]}"] if column.bounded else relation[name]
    only_counted = need == Need() and not column.ends
    if column.flagged and (only_counted or not (column.bounded or column.default is None)):
        read = relation.count(where=relation[f"has_{name}"])
    else:
        # of a column that cannot miss values, those before what cannot be read was replaced
        read = (point if column.bounded or column.default is None else relation[f"p{name[1:]}"]).count()
    aggregates: dict[str, ir.Value] = {f"{name}_read": read}
    if need.total:
        aggregates[f"{name}_sum"] = sum_exactly(point, dialect).cast(WIDE)
    if need.squares:
        aggregates |= sum_squares_exactly(name, point, dialect)
    if need.least:
        aggregates[f"{name}_least"] = _least(point, need.least) if need.least > 1 else point.min()
    if need.greatest:
        aggregates[f"{name}_greatest"] = _greatest(point, need.greatest) if need.greatest > 1 else point.max()
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


def _bracket_ends(name: str, brackets: Mapping[CellColumn, Sequence[Bracket]]) -> dict[str, dict[int, int]]:
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
