"""What is known of whole columns once a source is open: from statistics of Parquet files, or by reading a small table.

With the ends of a column, and knowing that all of it can be read, questions need no CASE and no test for NULL: DuckDB
takes longer to compile these than to read a small table.

It answers MIN and MAX from a file's statistics without decoding a value. Its optimiser trusts them as well: a
comparison that they decide becomes a constant. So nothing new is trusted here, and two things are saved for each
record: a CASE, whose dead branches DuckDB leaves in its plan; and looking for the ends of a column that is read whole.

The ends of single row groups say where the outermost values of a file are: with the k-th greatest of their maxima for
t, the values beyond t are in k − 1 of them, and DuckDB skips the others. That is a guess, whose result is counted.

NaN has no place in statistics. It reads as NULL wherever it is met, so that the ends of what can be read are told all
the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import duckdb

from idios.core.domain import LIMIT
from idios.data.engines.duckdb_dialect import DIALECT
from idios.data.sql.grid_sql import EVERY, GridColumn
from idios.data.sql.join_sql import Rows

MOST_GUESSES = 64
"""How many ends of row groups are remembered of each column."""

READS = "AGGREGATE"
"""What is found in the plan of a statement where DuckDB has to compare values."""


def use_statistics(connection: duckdb.DuckDBPyConnection, rows: Rows, metadata: str) -> Rows:
    """The same columns, with the ends that statistics tell and without comparisons that they decide.

    ``metadata`` is what stands after FROM to read what is told of row groups.
    """
    # a sentinel is a condition on each value, and has no statistics
    told = {name: column for name, column in rows.columns.items() if not column.declared.missing}
    quick = {name: column for name, column in told.items() if column.within is not None}
    ends = _tell_ends(connection, rows.table, quick)
    if ends is None:  # because of one of them, in which NaN may be all that a row group holds
        alone = [_tell_ends(connection, rows.table, {name: column}) for name, column in quick.items()]
        ends = {name: each for found in alone if found is not None for name, each in found.items()}
    columns = {name: _narrow(column, ends.get(name)) for name, column in rows.columns.items()}
    guesses = _guess_outermost(connection, told, metadata)
    return replace(rows, columns=columns | {name: replace(columns[name], guesses=guesses[name]) for name in guesses})


def measure_columns(connection: duckdb.DuckDBPyConnection, rows: Rows) -> Rows:
    """The same columns of a table that does not change and is read for this, without conditions that always hold."""
    columns = {name: column for name, column in rows.columns.items() if column.within is not None}
    if not columns:
        return rows
    points = ", ".join(f"{column.point} AS p{i}" for i, column in enumerate(columns.values()))
    found = ", ".join(f"MIN(p{i}), MAX(p{i}), COUNT(*) - COUNT(p{i})" for i in range(len(columns)))
    (values,) = connection.execute(f"SELECT {found} FROM (SELECT {points} FROM {rows.table}) AS points").fetchall()
    measured = {}
    for name, least, greatest, unread in zip(columns, *(values[i::3] for i in range(3)), strict=True):
        column = columns[name] if least is None else _narrow(columns[name], (least, greatest))
        measured[name] = column if unread else replace(column, given=EVERY, readable=EVERY)
    return replace(rows, columns={**rows.columns, **measured})


def _tell_ends(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, GridColumn]
) -> dict[str, tuple[int, int]] | None:
    """By column the least and the greatest point, as far as there are any; None if statistics do not tell them all."""
    if not columns:
        return {}
    held = list(dict.fromkeys(column.held for column in columns.values()))
    found = [_write_ends(table, held, columns, end) for end in ("MIN", "MAX")]
    if any(READS in str(connection.execute(f"EXPLAIN {text}").fetchall()) for text in found):
        return None
    least, greatest = (connection.execute(text).fetchall()[0] for text in found)
    told = zip(columns, least, greatest, strict=True)
    return {name: (low, high) for name, low, high in told if low is not None and high is not None}


def _write_ends(table: str, held: list[str], columns: Mapping[str, GridColumn], end: str) -> str:
    """The points of the least or the greatest of what is held: the map to points is monotone."""
    points = ", ".join(f"{column.point} AS point{i}" for i, column in enumerate(columns.values()))
    ends = ", ".join(f"{end}({each}) AS {each}" for each in held)
    return f"SELECT {points} FROM (SELECT {ends} FROM {table}) AS ends"


def _guess_outermost(
    connection: duckdb.DuckDBPyConnection, columns: Mapping[str, GridColumn], metadata: str
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The outermost ends of row groups, of columns whose literals are certain; a quarter of them at most."""
    certain = [name for name, column in columns.items() if column.first_held is not None]
    if not certain:
        return {}
    text = f"SELECT path_in_schema, type, stats_min_value, stats_max_value FROM {metadata}"
    told: dict[str, list[tuple[str, str, str]]] = {}
    for name, kind, *values in connection.execute(text).fetchall():
        if name in certain and None not in values:
            told.setdefault(name, []).append((kind, *values))
    guesses = {}
    for name, groups in told.items():
        real, few = all(kind == "DOUBLE" for kind, _, _ in groups), min(MOST_GUESSES, len(groups) // 4)
        try:
            least = sorted(_read_number(low, real) for _, low, _ in groups)[:few]
            greatest = sorted((_read_number(high, real) for _, _, high in groups), reverse=True)[:few]
        except ValueError:  # a field of a struct can be called as a column is, and hold text
            continue
        write = DIALECT.real if real else str
        guesses[name] = tuple(map(write, least)), tuple(map(write, greatest))
    return guesses


def _read_number(text: str, real: bool) -> float:
    return float(text) if real else int(text)


def _narrow(column: GridColumn, ends: tuple[int, int] | None) -> GridColumn:
    if ends is None:
        return column
    (least, greatest), grid = ends, column.declared.grid
    # a point at an end of the grid may have been moved there
    low = -LIMIT + 1 if grid.lower is None else max(grid.lower, -LIMIT + 1)
    high = LIMIT - 1 if grid.upper is None else min(grid.upper, LIMIT - 1)
    bounded = column.within if low <= least and greatest <= high else column.bounded
    return replace(column, bounded=bounded, told=(grid.clamp(least), grid.clamp(greatest)))
