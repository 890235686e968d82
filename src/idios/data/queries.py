"""The queries that are put to an engine about one selection: each answers for all cells.

``scan.py`` has the one that every plan needs, ``clipped_sums.py`` that of a second round.

Every result is keyed by the number of a cell; a cell that is absent has no records.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

import ibis  # type: ignore[import-untyped]
import ibis.expr.types as ir  # type: ignore[import-untyped]
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from idios.core.summary import Window
from idios.data.arrays import exact_sum
from idios.data.brackets import Piece, Sketch
from idios.data.connection_pool import Connection
from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import GridColumn
from idios.data.sql.selection import CELL, HELD, ONLY, Constants, Inquiry, Selection, SelectStatement, compile_statement

WIDE = "decimal(38, 0)"

CellColumn: TypeAlias = tuple[int, str]
"""A cell and a column of the relation."""
Run: TypeAlias = tuple[int, int]
"""Consecutive ranks, or points: the first and the last."""
CHANGED = "the source changed while it was being read: ask again"

HALF = 31
"""Squares are summed in halves of this many bits: for |v| ≤ 2⁶² no product of two halves leaves 64 bits."""


@dataclass(frozen=True)
class Queries:
    """A selection, read over a connection; ``source`` is what stands after FROM."""

    connection: Connection
    selection: Selection
    source: str
    kept: dict[Hashable, Any] | None = None
    """What earlier questions found in this source, which does not change; None if it may."""

    def fetch(
        self, inquiry: Inquiry, *arguments: Hashable, constants: Constants | None = None, held: str | None = None
    ) -> pa.Table:
        """The result of an inquiry about the selected records, to which ``constants`` are added as columns.

        What the source holds of the column that is called ``held`` is added as ``HELD``.
        """
        keyed = bool(self.selection.plan.groups) and (not constants or self.selection.joins_constants)
        relation = self.selection.relation(self.source, constants, keyed=keyed, held=held)
        statement = compile_statement(inquiry, relation, self.connection.dialect, *arguments)
        return self.connection.fetch(self.selection.number_cells(statement) if keyed else statement)

    def fetch_row(self, inquiry: Inquiry, *arguments: Hashable) -> Mapping[str, Any]:
        """The same of a selection in one cell, where the result is one row."""
        relation = self.selection.relation(self.source)
        return self.connection.fetch_row(compile_statement(inquiry, relation, self.connection.dialect, *arguments))

    def fetch_points(self, names: Sequence[str]) -> pa.Table:
        """The points of some columns, record by record; and of those without NULL, whether they could be read."""
        relation, quoted = self.selection.relation(self.source), self.connection.dialect.identifier
        columns = {name: self.selection.grid_column(name) for name in names}
        flags = [f"has_{name}" for name, each in columns.items() if each.default is not None and not each.complete]
        listed = ", ".join(map(quoted, [*names, *flags]))
        schema = [*((name, pa.int64()) for name in names), *((flag, pa.bool_()) for flag in flags)]
        return self.connection.fetch(
            SelectStatement(f"SELECT {listed} FROM ({relation.text}) AS selected", pa.schema(schema))
        )

    def sketches(self, names: Sequence[str], shares: Sequence[float], sampled: float) -> dict[CellColumn, Sketch]:
        """A sketch of every column in every cell, where the source is itself a sample with a share ``sampled``."""
        dialect, relation = self.connection.dialect, self.selection.relation(self.source)
        array = dialect.array.format(items=", ".join(map(repr, shares)))
        cell = [dialect.identifier(CELL)] if self.selection.plan.groups else []
        parts, schema = [*cell], [(CELL, pa.int64())] if cell else []
        for name in names:
            quoted = dialect.identifier(name)
            parts.append(f"COUNT({quoted}) AS {dialect.identifier(f'{name}_size')}")
            quantiles = dialect.quantiles.format(x=quoted, shares=array)
            parts.append(f"{quantiles} AS {dialect.identifier(f'{name}_values')}")
            schema += [(f"{name}_size", pa.int64()), (f"{name}_values", pa.list_(pa.int64()))]
        text = f"SELECT {', '.join(parts)} FROM ({relation.text}) AS sample"
        text += f" GROUP BY {cell[0]}" if cell else ""
        return {
            (number, name): Sketch(row[f"{name}_size"], sampled, tuple(shares), tuple(row[f"{name}_values"]))
            for number, row in rows_by_cell(self.connection.fetch(SelectStatement(text, pa.schema(schema))))
            for name in names
            if row[f"{name}_size"]
        }

    def fetch_quantiles(self, name: str, shares: Sequence[str], *, filtered: bool = True) -> pa.Table:
        """The points of a column at some shares in every cell, each in a row, beside how many values the cell holds.

        The source's own values are sorted, as in ``_end``; what cannot be read is counted and has a place among them.
        Labels that are not declared are left out before, where that is asked for: a list of their values may be as long
        as there are records.
        """
        selection, dialect, column = self.selection, self.connection.dialect, self.selection.grid_column(name)
        keys = ", ".join(dialect.identifier(key.name) for key in selection.keys)
        quantiles = dialect.quantiles.format(x=HELD, shares=dialect.array.format(items=", ".join(shares)))
        relation = selection.relation(self.source, keyed=True, held=name)
        listed = [
            (dialect.identifier(key.name), key.listed) for key in selection.keys if key.listed is not None and filtered
        ]
        declared = " AND ".join(f"{key} IN (SELECT label FROM {labels} AS declared)" for key, labels in listed)
        text = f"SELECT {keys}, COUNT({HELD}) AS held, {quantiles} AS at_shares FROM ({relation.text}) AS selected"
        text += f" WHERE {declared}" if declared else ""
        schema = pa.schema(
            [*((key.name, pa.string()) for key in selection.keys), ("held", pa.int64()), ("at_shares", pa.null())]
        )
        numbered = selection.number_cells(SelectStatement(f"{text} GROUP BY {keys}", schema)).text
        each = f"SELECT cell, held, unnest(at_shares) AS {column.held}, generate_subscripts(at_shares, 1) AS place"
        point = column.value(column.point) if column.bounded is None else column.bounded
        text = f"SELECT cell, held, place, {point} AS point FROM ({each} FROM ({numbered}) AS numbered) AS placed"
        # the values of a group are sorted when its result is made
        return self.connection.fetch(
            replace(SelectStatement.of_integers(text, CELL, "held", "place", "point"), at_once=True)
        )

    def fetch_lists(self, name: str) -> pa.Table:
        """All values of a column, in a list for each cell."""
        return self.fetch(_listed, name)

    def bottom(self, name: str, number: int) -> Piece:
        """The ``number`` least values of an ungrouped selection."""
        return Piece(0, inside=self._end(name, number, "ASC"))

    def top(self, name: str, number: int, size: int, total: int) -> Piece:
        """The ``number`` greatest of ``size`` values whose sum is ``total``."""
        inside = self._end(name, number, "DESC")
        return Piece(size - len(inside), below=total - exact_sum(inside), inside=inside)

    def _end(self, name: str, number: int, order: str) -> NDArray[np.int64]:
        """The first ``number`` values in ascending or descending order.

        The source's own values are sorted: the order is the same, there may be an index or statistics for it, and only
        those few have to be read onto the grid. What cannot be read is left out only if it is among them.
        """
        column = self.selection.grid_column(name)
        held, guesses = f"SELECT {column.held} FROM {self.source} WHERE", column.guesses[order == "DESC"]
        first = f"ORDER BY {column.held} {order} LIMIT {number}"
        if number <= len(guesses):
            read, end = f"{held} {column.readable} AND {column.held}", guesses[number - 1]
            beyond = f"{read} {'>' if order == 'DESC' else '<'} {end} {first}"
            found = self._read_held(column, f"({beyond}) UNION ALL ({read} = {end} LIMIT {number}) {first}")
            if len(found) == number:  # all that lies beyond the guess, and as many that are equal to it
                return np.asarray(found.to_numpy())
        for condition in (column.given, column.readable):
            found = self._read_held(column, f"{held} {condition} {first}")
            if not found.null_count:
                break
        return np.asarray(found.to_numpy())

    def _read_held(self, column: GridColumn, few: str) -> pa.ChunkedArray:
        """The points of some values that a statement gives."""
        points = f"SELECT {column.point} AS point FROM ({few}) AS few"
        text = f"SELECT {column.value('point')} AS point FROM ({points}) AS points"
        return self.connection.fetch(SelectStatement.of_integers(text, "point"))["point"]

    def sorted_windows(self, name: str, runs: Mapping[int, Sequence[Run]], *, sums: bool) -> dict[int, list[Window]]:
        """The windows of one column by ranking every record: slower than brackets, and never wrong."""
        constants = _numbered({"first": 0, "last": 1}, runs)
        return _cut(self.fetch(_ranked, name, len(constants) // 2, sums, constants=constants), runs)

    def beside(self, name: str, points: Mapping[int, Sequence[Run]]) -> dict[int, list[tuple[int, ...]]]:
        """For each pair (a, b) the greatest value up to a and the least from b on, as far as there are any."""
        constants = _numbered({"left": 0, "right": 1}, points)
        values = dict(rows_by_cell(self.fetch(_nearest, name, tuple(constants), constants=constants)))
        return {
            cell: [
                tuple(v for end in ("left", "right") if (v := values[cell][f"{end}_{k}_value"]) is not None)
                for k in range(len(pairs))
            ]
            for cell, pairs in points.items()
        }

    def label_counts(self, name: str) -> dict[int | None, int] | None:
        """How often each category of a column of labels occurs, and under None everything else; None if unknown."""
        text = self.selection.write_label_counts(name, self.source)
        if text is None:
            return None
        rows = self.connection.fetch(SelectStatement.of_integers(text, "place", "times")).to_pylist()
        return {None if row["place"] is None else row["place"] - 1: row["times"] for row in rows}

    def counts(self, name: str) -> dict[int, dict[int, int]]:
        """How often each value occurs: for categories, of which there are few."""
        times: dict[int, dict[int, int]] = {}
        for cell, row in rows_by_cell(self.fetch(_multiplicities, name)):
            times.setdefault(cell, {})[row[name]] = row["times"]
        return times

    def rarest(self, name: str, number: int) -> dict[int, tuple[int, tuple[int, ...]]]:
        """How many different values there are, and how often the ``number`` rarest occur."""
        multiplicities: dict[int, tuple[int, tuple[int, ...]]] = {
            cell: (row["distinct"], ()) for cell, row in rows_by_cell(self.fetch(_distinct, name))
        }
        few = rows_by_cell(self.fetch(_spectrum, name, number)) if number else ()
        for cell, row in sorted(few, key=lambda item: item[1]["times"]):
            distinct, so_far = multiplicities[cell]
            multiplicities[cell] = distinct, (*so_far, *[row["times"]] * min(row["values"], number - len(so_far)))
        return multiplicities


def rows_by_cell(table: pa.Table) -> Iterator[tuple[int, dict[str, Any]]]:
    """The cell and the values of each record of a result."""
    for row in table.to_pylist():
        yield row.get(CELL, ONLY), row


def aggregate_by_cell(relation: ir.Table, aggregates: Mapping[str, ir.Value]) -> ir.Table:
    """One record for each cell that occurs."""
    by = _cell(relation)
    return relation.group_by(by).aggregate(**aggregates) if by else relation.aggregate(**aggregates)


def sum_exactly(value: ir.IntegerValue, dialect: Dialect, where: ir.BooleanValue | None = None) -> ir.NumericValue:
    """A sum that cannot overflow."""
    return (value.cast(dialect.sum_as) if dialect.sum_as else value).sum(where=where)


def sum_squares_exactly(prefix: str, value: ir.IntegerValue, dialect: Dialect) -> dict[str, ir.Value]:
    """The sum of squares in three parts, from which ``read_squares`` makes one number."""
    high, low = value >> HALF, value & (2**HALF - 1)
    products = {"hh": high * high, "hl": high * low, "ll": low * low}
    return {f"{prefix}_{part}": sum_exactly(product, dialect).cast(WIDE) for part, product in products.items()}


def _ranked(relation: ir.Table, dialect: Dialect, name: str, runs: int, sums: bool) -> ir.Table:
    """The ranks and values of some runs, whose ends are constants of the cells."""
    ends = [f"{end}_{k}" for k in range(runs) for end in ("first", "last")]
    # a cell of which nothing is wanted has no first rank
    relation = relation.filter(relation[name].notnull(), relation[ends[0]].notnull())
    value, cell = relation[name], _cell(relation)
    order = {"order_by": value} | ({"group_by": [relation[name] for name in cell]} if cell else {})
    columns = {"rank": ibis.row_number().over(ibis.window(**order)) + 1, "value": value}
    if sums:
        # equal values count together, so that their order among themselves does not matter
        peers = ibis.range_window(preceding=None, following=0, **order)
        columns |= {"up_to": value.count().over(peers), "sum": sum_exactly(value, dialect).over(peers).cast(WIDE)}
    ranked = relation.select(**{column: relation[column] for column in [*cell, *ends]}, **columns)
    wanted = (ranked["rank"].between(ranked[f"first_{k}"], ranked[f"last_{k}"]) for k in range(runs))
    return ranked.filter(reduce(or_, wanted)).drop(*ends)


def _nearest(relation: ir.Table, dialect: Dialect, name: str, ends: tuple[str, ...]) -> ir.Table:
    value = relation[name]
    aggregates = {
        end: value.max(where=value <= relation[end])
        if end.startswith("left")
        else value.min(where=value >= relation[end])
        for end in ends
    }
    return aggregate_by_cell(relation, {f"{end}_value": nearest for end, nearest in aggregates.items()})


def _listed(relation: ir.Table, dialect: Dialect, name: str) -> ir.Table:
    return aggregate_by_cell(relation, {"listed": relation[name].collect()})


def _multiplicities(relation: ir.Table, dialect: Dialect, name: str) -> ir.Table:
    relation = relation.filter(relation[name].notnull())
    return relation.group_by([*_cell(relation), name]).aggregate(times=relation.count())


def _distinct(relation: ir.Table, dialect: Dialect, name: str) -> ir.Table:
    values = _multiplicities(relation, dialect, name)
    return aggregate_by_cell(values, {"distinct": values.count()})


def _spectrum(relation: ir.Table, dialect: Dialect, name: str, number: int) -> ir.Table:
    values = _multiplicities(relation, dialect, name)
    by = _cell(values)
    spectrum = values.group_by([*by, "times"]).aggregate(values=values.count())
    window = ibis.cumulative_window(
        order_by=spectrum["times"], **({"group_by": [spectrum[name] for name in by]} if by else {})
    )
    spectrum = spectrum.mutate(up_to=spectrum["values"].sum().over(window))
    return spectrum.filter(spectrum["up_to"] - spectrum["values"] < number)


def _cell(relation: ir.Table) -> list[str]:
    """What says in which cell records are, if they are in one: its number, or its keys."""
    return [CELL] if CELL in relation.columns else [name for name in relation.columns if name.startswith("key")]


def read_sum(total: Decimal | int | None, terms: int) -> int:
    """A sum as the engine gives it: NULL of no terms.

    Every engine adds in 38 digits or more, which hold the sum of 10¹⁹ points; NULL of any terms would hide an overflow.
    """
    if total is None and terms:
        raise AssertionError("a sum of points did not fit the engine's widest numbers")
    return int(total or 0)


def read_squares(row: Mapping[str, Any], prefix: str, terms: int) -> int:
    """The sum of squares from its parts: (h·2³¹ + l)² = h²·2⁶² + h·l·2³² + l²."""
    hh, hl, ll = (read_sum(row[f"{prefix}_{part}"], terms) for part in ("hh", "hl", "ll"))
    return (hh << 2 * HALF) + (hl << HALF + 1) + ll


def _numbered(ends: Mapping[str, int], pairs: Mapping[int, Sequence[Run]]) -> dict[str, dict[int, int]]:
    """The ends of each cell's k-th pair, as constants of the cells."""
    most = max(map(len, pairs.values()))
    return {
        f"{end}_{k}": {cell: listed[k][i] for cell, listed in pairs.items() if k < len(listed)}
        for k in range(most)
        for end, i in ends.items()
    }


def _cut(ranked: pa.Table, runs: Mapping[int, Sequence[Run]]) -> dict[int, list[Window]]:
    """The windows of each cell from records with a cell, a rank and a value, in any order."""
    ranks = ranked["rank"].to_numpy()
    cells = ranked[CELL].to_numpy() if CELL in ranked.column_names else np.full(len(ranks), ONLY)
    order = np.lexsort((ranks, cells))
    ranks, cells, values = ranks[order], cells[order], ranked["value"].to_numpy()[order]
    windows: dict[int, list[Window]] = {}
    for cell, wished in runs.items():
        start, stop = np.searchsorted(cells, [cell, cell + 1])
        for first, last in wished:
            i = int(start + np.searchsorted(ranks[start:stop], first))
            below = 0
            if "sum" in ranked.column_names:
                value, up_to, total = (ranked[name][int(order[i])].as_py() for name in ("value", "up_to", "sum"))
                below = read_sum(total, first) - value * (up_to - (first - 1))
            windows.setdefault(cell, []).append(Window(first, tuple(values[i : i + last - first + 1].tolist()), below))
    return windows
