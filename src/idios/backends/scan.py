"""The one pass over a selection that every plan needs: counts, sums, ends, and what lies inside brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ibis.expr.types as ir  # type: ignore[import-untyped]
import numpy as np
import pyarrow as pa

from idios.backends.brackets import Bracket, Known, Piece
from idios.backends.dialect import Dialect
from idios.backends.queries import WIDE, Key, Queries, added, aggregated, summed
from idios.backends.selection import CELL, ONLY

HALF = 31
"""Squares are summed in halves of this many bits: for |v| ≤ 2⁶² no product of two halves leaves 64 bits."""


@dataclass(frozen=True)
class Need:
    """What is asked of one column besides its order statistics."""

    total: bool = False
    squares: bool = False


def scan(
    queries: Queries, needs: Mapping[str, Need], brackets: Mapping[Key, Sequence[Bracket]]
) -> tuple[dict[int, int], dict[Key, Known]]:
    """How many records each cell has, and of each column what it needs and what its brackets hold."""
    constants = {name: _ends(name, brackets) for name in needs}
    readings = {name: queries.selection.reading(name) for name in needs}
    asked = tuple(
        _Asked(
            name,
            need,
            tuple(constants[name]),
            flagged=readings[name].readable != readings[name].given,
            nullable=readings[name].column.nullable,
        )
        for name, need in needs.items()
    )
    numbers = {end: numbers for ends in constants.values() for end, numbers in ends.items()}
    table = queries.ask(_counted, asked, constants=numbers)
    records: dict[int, int] = {}
    known: dict[Key, Known] = {}
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
            known[cell, name] = _known(row, name, need, pieces, readings[name].column.nullable)
    return records, known


@dataclass(frozen=True)
class _Asked:
    """One column, what it needs, and the names of its brackets' ends."""

    name: str
    need: Need
    ends: tuple[str, ...]
    flagged: bool
    """Whether the condition that a value can be read is quicker than reading it."""
    nullable: bool


def _counted(relation: ir.Table, dialect: Dialect, asked: tuple[_Asked, ...]) -> ir.Table:
    aggregates: dict[str, ir.Value] = {"records": relation.count()}
    for one in asked:
        aggregates |= _totals(relation, dialect, one) | _inside(relation, dialect, one)
    return aggregated(relation, aggregates)


def _totals(relation: ir.Table, dialect: Dialect, asked: _Asked) -> dict[str, ir.Value]:
    name, need, value = asked.name, asked.need, relation[asked.name]
    only_counted = need == Need() and not asked.ends
    if asked.flagged and (only_counted or not asked.nullable):
        read = relation.count(where=relation[f"has_{name}"])
    else:
        # of a column that cannot miss values, those before what cannot be read was replaced
        read = (value if asked.nullable else relation[f"p{name[1:]}"]).count()
    aggregates: dict[str, ir.Value] = {f"{name}_read": read}
    if need.total:
        aggregates[f"{name}_sum"] = summed(value, dialect).cast(WIDE)
    if need.squares:
        high, low = value >> HALF, value & (2**HALF - 1)
        for part, product in (("hh", high * high), ("hl", high * low), ("ll", low * low)):
            aggregates[f"{name}_{part}"] = summed(product, dialect).cast(WIDE)
    return aggregates


def _inside(relation: ir.Table, dialect: Dialect, asked: _Asked) -> dict[str, ir.Value]:
    value, ends = relation[asked.name], asked.ends
    aggregates: dict[str, ir.Value] = {}
    for end in ends:
        prefix, _, kind = end.rpartition("_")
        if kind == "low":
            low = relation[end]
            aggregates[f"{prefix}_below"] = value.count(where=value < low)
            if asked.need.total:
                aggregates[f"{prefix}_sum"] = summed(value, dialect, where=value < low).cast(WIDE)
            if f"{prefix}_first" in ends:
                aggregates[f"{prefix}_lows"] = value.count(where=value == low)
            first = relation[f"{prefix}_first"] if f"{prefix}_first" in ends else low
            inside = (value >= first) & (value <= relation[f"{prefix}_last"])
            aggregates[f"{prefix}_inside"] = value.collect(where=inside)
        elif kind == "high":
            aggregates[f"{prefix}_highs"] = value.count(where=value == relation[end])
    return aggregates


def _ends(name: str, brackets: Mapping[Key, Sequence[Bracket]]) -> dict[str, dict[int, int]]:
    """The ends of each cell's k-th bracket, as constants of the cells; ties only where there are any."""
    mine = {cell: found for (cell, column), found in brackets.items() if column == name}
    ends: dict[str, dict[int, int]] = {}
    for k in range(max(map(len, mine.values()), default=0)):
        kth = {cell: found[k] for cell, found in mine.items() if k < len(found)}
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
        hh, hl, ll = (added(row[f"{name}_{part}"], size) for part in ("hh", "hl", "ll"))
        squares = (hh << 2 * HALF) + (hl << HALF + 1) + ll
    return Known(
        size=size,
        total=added(row[f"{name}_sum"], size) if need.total else 0,
        squares=squares,
        unread=size - read,
        pieces=pieces,
    )


def _piece(bracket: Bracket, row: Mapping[str, Any], table: pa.Table, i: int, prefix: str) -> Piece:
    listed = table.column(f"{prefix}_inside")[i]
    start = row[f"{prefix}_below"]
    return Piece(
        start=start,
        below=added(row[f"{prefix}_sum"], start) if f"{prefix}_sum" in row else 0,
        low=bracket.low,
        lows=row[f"{prefix}_lows"] if bracket.tied_low else 0,
        inside=listed.values.to_numpy(zero_copy_only=False) if listed.is_valid else np.empty(0, np.int64),
        high=bracket.high,
        highs=row[f"{prefix}_highs"] if bracket.tied_high and bracket.high > bracket.low else 0,
    )
