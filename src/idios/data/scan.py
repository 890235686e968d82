"""The query that every plan needs: one pass that counts, adds up, and fetches what lies inside some brackets.

Whole numbers of 64 bits are their own points, but for NULL and for those beyond the ends of the grid. Where brackets
allow, such a column is read as it is held, which spares an engine half its work (``_find_held``), and gives the same:

1. For a point t strictly between the ends l and u, n < t, n ≤ t and n = t are the same of n and of its point.
2. Σ point = Σn − Σ(n − point), where only n beyond l or u count; brackets that are open at both ends list all of these.
3. NULL in a column that cannot miss values has a point, which no bracket counts. If there is any, points are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_
from typing import Any

import ibis  # type: ignore[import-untyped]
import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import ibis.expr.types as ir  # type: ignore[import-untyped]
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from idios.data.arrays import exact_sum
from idios.data.brackets import Bracket, Known, Piece
from idios.data.group_counts import (
    BUCKET,
    Buckets,
    Spans,
    aggregate_buckets,
    count_spans,
    number_buckets,
    write_spans,
)
from idios.data.queries import (
    WIDE,
    CellColumn,
    Queries,
    aggregate_by_cell,
    read_squares,
    read_sum,
    sum_exactly,
    sum_squares_exactly,
)
from idios.data.sql.dialect import Dialect
from idios.data.sql.selection import CELL, HELD, ONLY

_NOTHING: NDArray[np.int64] = np.empty(0, np.int64)


@dataclass(frozen=True)
class Need:
    """What is asked of one column besides its inner order statistics."""

    total: bool = False
    squares: bool = False
    below: bool = False
    """Whether the sum of all values below an inner order statistic is asked for."""
    least: int = 0
    """How many of the least values."""
    greatest: int = 0
    """How many of the greatest."""

    @property
    def asks_one_end(self) -> bool:
        """Whether of each end at most one value is asked for, and of one of them any."""
        return max(self.least, self.greatest) == 1


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
        return cls(np.concatenate([_NOTHING, *values]), np.concatenate([_NOTHING, *lengths]))


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
    if not brackets and not queries.selection.plan.groups:
        scans = _list_scans(queries, needs, constants)
        row = queries.fetch_row(_count_and_add, scans)
        return {ONLY: row["records"]}, {(ONLY, column.name): column.read(row) for column in scans}
    numbers = {end: numbers for ends in constants.values() for end, numbers in ends.items()}
    for held in (_find_held(queries, needs, brackets), None):
        scans = _list_scans(queries, needs, constants, held)
        found = _read_cells(queries.fetch(_count_and_add, scans, constants=numbers, held=held), scans, brackets)
        if held is None or not found[1][ONLY, held].unread:
            break
    return found


def _find_held(
    queries: Queries, needs: Mapping[str, Need], brackets: Mapping[CellColumn, Sequence[Bracket]]
) -> str | None:
    """The column that can be read as it is held; None if there is none."""
    if len(needs) > 1 or queries.selection.plan.groups:
        return None
    for name, need in needs.items():
        column, of_column = queries.selection.grid_column(name), brackets.get((ONLY, name), ())
        low, high = column.ends
        inside = all(
            (bracket.open_low or low < bracket.low < high)
            and (bracket.open_high or low < bracket.high < high)
            and not (bracket.open_low and bracket.open_high)  # its lower end is compared with, as that of a point
            for bracket in of_column
        )
        listed = any(bracket.open_low for bracket in of_column) and any(bracket.open_high for bracket in of_column)
        if column.whole and of_column and inside and need in ([Need(), Need(total=True)] if listed else [Need()]):
            return name
    return None


def count_whole(queries: Queries, names: Sequence[str]) -> tuple[dict[int, int], dict[CellColumn, Known]]:
    """What ``scan`` finds where nothing but counts of all records is needed: once, of a source that does not change."""
    counted = {} if queries.kept is None else queries.kept
    keys = [(queries.source, None), *((queries.source, queries.selection.column_name(name)) for name in names)]
    found: list[Any] = [counted.get(key) for key in keys]
    if None in found:
        records, known = scan(queries, dict.fromkeys(names, Need()), {})
        found = [records[ONLY], *(known[ONLY, name] for name in names)]
        counted |= zip(keys, found, strict=True)
    return {ONLY: found[0]}, {(ONLY, name): column for name, column in zip(names, found[1:], strict=True)}


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
    queries: Queries,
    needs: Mapping[str, Need],
    constants: Mapping[str, Mapping[str, object]],
    held: str | None = None,
) -> tuple[_ColumnScan, ...]:
    columns = {name: queries.selection.grid_column(name) for name in needs}
    whole = (name for name in needs if queries.selection.is_whole)
    told = {name: ends for name in whole if needs[name].asks_one_end and (ends := columns[name].told) is not None}
    return tuple(
        _ColumnScan(
            name,
            replace(need, least=0, greatest=0) if name in told else need,
            tuple(constants.get(name, ())),
            # the point of a category is never written out before what cannot be read was replaced
            flagged=columns[name].readable != columns[name].given or columns[name].place is not None,
            bounded=columns[name].bounded is not None,
            default=columns[name].default,
            ends_of_grid=columns[name].ends if name == held else None,
            told=told.get(name),
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
            of_column, read = brackets.get((cell, scanned.name), ()), scanned.read(row)
            inside = _read_list(table.column(f"{scanned.name}_inside")[i]) if of_column else _NOTHING
            if scanned.ends_of_grid is not None:
                points = np.clip(inside, *scanned.ends_of_grid)
                beyond = points != inside
                read = replace(read, total=read.total - exact_sum(inside[beyond]) + exact_sum(points[beyond]))
                inside = points
            pieces = (
                _make_piece(bracket, row, f"{scanned.name}_{k}", inside, read.size)
                for k, bracket in enumerate(of_column)
            )
            known[cell, scanned.name] = read.extended(pieces)
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
    ends_of_grid: tuple[int, int] | None = None
    """The least and the greatest point, where the column is read as it is held."""
    told: tuple[int, int] | None = field(default=None, compare=False)  # no part of a statement
    """The least and the greatest value that can be read, where they are known and need not be found."""

    def read(self, row: Mapping[str, Any]) -> Known:
        """What a row of the result says beside its brackets; of points, also what was not read."""
        name, need = self.name, self.need
        pieces: tuple[Piece, ...] = ()
        read = row[f"{name}_read"] or 0  # Spark counts by adding, and a sum of nothing is NULL
        size = read if self.default is None else row["records"]
        counted, default = (read, self.default or 0) if self.bounded else (size, 0)
        replaced = size - counted
        total = read_sum(row[f"{name}_sum"], counted) + replaced * default if need.total else 0
        squares = read_squares(row, name, counted) + replaced * default**2 if need.squares else 0
        least, greatest = (need.least, need.greatest) if self.told is None else (1, 1)
        if least:
            values = _list(row[f"{name}_least"] if self.told is None else self.told[0])
            ends = _take(values, [default] * min(replaced, least), least)
            pieces += (Piece(0, inside=ends),)
        if greatest:
            values = _list(row[f"{name}_greatest"] if self.told is None else self.told[1])
            ends = -_take([-value for value in values], [-default] * min(replaced, greatest), greatest)
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
    point = point if column.ends_of_grid is None else relation[HELD]
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
    """How many values lie below each bracket, how many at its tied ends, and in one list what all of them hold.

    A bracket that is open below has none below it; of one that is open above, those are all the others.
    """
    name, ends = column.name, column.ends
    value = relation[name if column.ends_of_grid is None else HELD]
    aggregates: dict[str, ir.Value] = {}
    insides: list[ir.BooleanValue] = []
    for prefix in dict.fromkeys(end.rpartition("_")[0] for end in ends):
        low, first, last, high = (
            relation[f"{prefix}_{kind}"] if f"{prefix}_{kind}" in ends else None
            for kind in ("low", "first", "last", "high")
        )
        if low is not None and (last is not None or column.need.below):
            if f"{prefix}_start" not in ends:
                aggregates[f"{prefix}_below"] = _count_where(value < low, dialect)
            if column.need.below:
                aggregates[f"{prefix}_sum"] = sum_exactly(value, dialect, where=value < low).cast(WIDE)
        if first is not None:
            aggregates[f"{prefix}_lows"] = _count_where(value == low, dialect)
        if high is not None:
            aggregates[f"{prefix}_highs"] = _count_where(value == high, dialect)
        start = low if first is None else first
        from_start = [] if start is None else [value >= start]
        insides.append(reduce(and_, [*from_start, *([] if last is None else [value <= last])]))
    if insides:
        # no value inside a bracket is NULL, and each comparison takes time
        aggregates[f"{name}_inside"] = value.collect(where=reduce(or_, insides), include_null=dialect.vectorised)
    return aggregates


def _count_where(condition: ir.BooleanValue, dialect: Dialect) -> ir.IntegerValue:
    """How many records meet a condition: by adding, where an engine does that quicker than it filters."""
    return condition.sum() if dialect.vectorised else condition.count(where=condition)


def _bracket_ends(name: str, brackets: Mapping[CellColumn, Sequence[Bracket]]) -> dict[str, dict[int, int]]:
    """The ends of each cell's k-th bracket, as constants of the cells; those alone that some bracket has.

    Where all are open at both ends, the lower one tells the cells that have a bracket from those that have none.
    """
    of_cell = {cell: listed for (cell, column), listed in brackets.items() if column == name}
    ends: dict[str, dict[int, int]] = {}
    for k in range(max(map(len, of_cell.values()), default=0)):
        kth = {cell: listed[k] for cell, listed in of_cell.items() if k < len(listed)}
        if not all(bracket.open_low for bracket in kth.values()) or all(bracket.open_high for bracket in kth.values()):
            ends[f"{name}_{k}_low"] = {cell: bracket.low for cell, bracket in kth.items()}
        if not all(bracket.open_high for bracket in kth.values()):
            ends[f"{name}_{k}_last"] = {cell: bracket.last for cell, bracket in kth.items()}
        if all(bracket.start is not None for bracket in kth.values()):
            ends[f"{name}_{k}_start"] = {cell: bracket.start or 0 for cell, bracket in kth.items()}
        if any(bracket.tied_low for bracket in kth.values()):
            ends[f"{name}_{k}_first"] = {cell: bracket.first for cell, bracket in kth.items()}
        if any(bracket.tied_high for bracket in kth.values()):
            ends[f"{name}_{k}_high"] = {cell: bracket.high for cell, bracket in kth.items()}
    return ends


def _read_list(listed: pa.ListScalar) -> NDArray[np.int64]:
    return listed.values.to_numpy(zero_copy_only=False) if listed.is_valid else _NOTHING


def _make_piece(bracket: Bracket, row: Mapping[str, Any], prefix: str, listed: NDArray[np.int64], size: int) -> Piece:
    """What a bracket holds of ``size`` values; ``listed`` are those inside of any."""
    lows = (row[f"{prefix}_lows"] or 0) if bracket.tied_low else 0
    highs = (row[f"{prefix}_highs"] or 0) if bracket.tied_high and bracket.high > bracket.low else 0
    inside = listed[(listed >= bracket.first) & (listed <= bracket.last)]
    if bracket.start is not None:
        start = bracket.start
    elif f"{prefix}_below" in row:
        start = row[f"{prefix}_below"] or 0
    else:
        start = 0 if bracket.open_low else size - lows - len(inside) - highs
    below = read_sum(row[f"{prefix}_sum"], start) if f"{prefix}_sum" in row else 0
    return Piece(start, below, bracket.low, lows, inside, bracket.high, highs)
