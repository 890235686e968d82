"""DuckDB: files and frames, read in this process. The default engine.

The connection is the data set's own (``duckdb_sources``), and every question has a cursor of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import duckdb
import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa

from idios.core.domain import LIMIT, Categories, Kind
from idios.data.backend import DataSource, add_derived_columns, describe_types, hold_rows, list_read
from idios.data.cancellation import Progress, silent
from idios.data.connection_pool import Connection, ConnectionPool
from idios.data.engines.duckdb_dialect import DIALECT
from idios.data.engines.duckdb_sources import NUMBER, Attached, AttachedTable, attach
from idios.data.engines.sql_backend import SqlBackend
from idios.data.formats.csv import CsvFormat
from idios.data.formats.text_fields import parse_field
from idios.data.formats.text_files import TextFile
from idios.data.guesses import ColumnSample
from idios.data.sql.grid_sql import EVERY, GridColumn, is_sentinel, make_grid_column, select_known
from idios.data.sql.join_sql import Rows, hold_key
from idios.data.sql.selection import SelectStatement
from idios.declare.schema import Dataset
from idios.errors import SourceError
from idios.plan.joins import find_table, list_keys
from idios.sql.suggestions import find_nearest

# What is known of whole columns once a source is open: from statistics of Parquet files, or by reading a small table.
#
# With the ends of a column, and knowing that all of it can be read, questions need no CASE and no test for NULL: DuckDB
# takes longer to compile these than to read a small table.
#
# It answers MIN and MAX from a file's statistics without decoding a value. Its optimiser trusts them as well: a
# comparison that they decide becomes a constant. So nothing new is trusted here, and two things are saved for each
# record: a CASE, whose dead branches DuckDB leaves in its plan; and looking for the ends of a column that is read
# whole.
#
# The ends of single row groups say where the outermost values of a file are: with the k-th greatest of their maxima for
# t, the values beyond t are in k − 1 of them, and DuckDB skips the others. That is a guess, whose result is counted.
#
# NaN has no place in statistics. It reads as NULL wherever it is met, so that the ends of what can be read are told all
# the same.


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


STRETCHES = 8
"""How many stretches of records make a quick sample of a Parquet file; each costs a row group to be decoded."""
HELD = "held"
"""The table that holds what a question reads several times."""
BATCH = 2**20
"""How many rows of a result come at once."""
KEPT = 2**20
"""Up to this many values, records times columns, a table is read once and kept: decoding it costs each question more
than answering does. It takes some 8 MiB without text, and what does not fit the memory is spilled like any other."""
KEPT_TEXT = 2**28
"""Bytes of text up to which it is kept: a file can name one long text in a million records."""

FEW_LABELS = 32
"""Up to this many declared labels are written out in a statement."""


def connect(
    source: DataSource, dataset: Dataset, progress: Progress | None, linked: Mapping[str, DataSource]
) -> DuckDbBackend:
    """Open a declared data set in a file or a frame."""
    sources = {dataset.name: source, **linked}
    attached = attach(sources, {name: list_read(dataset, name) for name in sources})
    try:
        rows = {name: _hold(attached, name, dataset, progress or silent) for name in sources}
        attached.lock()
        return DuckDbBackend(attached, rows, dataset, progress)
    except BaseException:
        attached.close()
        raise


def describe(source: object, csv_format: CsvFormat | None) -> list[tuple[str, Kind, int]]:
    """The names and types of a file or a frame; of a file without types, what its beginning looks like."""
    attached = attach({"": DataSource(source, csv_format)})
    try:
        if (file := attached.places[""].text) is not None:
            return file.propose_columns()
        return describe_types(attached.held(""))
    finally:
        attached.close()


def _hold(attached: Attached, name: str, dataset: Dataset, progress: Progress) -> Rows:
    """How a table of a data set is read."""
    place = attached.places[name]
    if place.text is not None:
        return _load_text(attached, name, place.text, dataset, progress)
    held = attached.held(name)
    rows = _keep_labels(attached, name, hold_rows(dataset, name, place.table, held, DIALECT))
    if place.parquet is not None:
        listed = select_known(find_table(dataset, name).columns, list_read(dataset, name), held, DIALECT)
        rows = replace(rows, table=place.table)  # the view of the file has no sentinels
        _open_parquet(attached, place, place.parquet, rows, held, listed)
    elif not place.registered:
        return rows
    kept, connection = _keep(attached, name, rows, held), attached.cursors[0]
    if kept is not rows:
        return measure_columns(connection, kept)
    return rows if place.metadata is None else use_statistics(connection, rows, place.metadata)


def _keep(attached: Attached, name: str, rows: Rows, held: Mapping[str, dt.DataType]) -> Rows:
    """Copy the declared columns of a small file or frame to a table, which is what questions read from now on.

    A file that changes afterwards is noticed as ever: its size and time were noted before it was opened.
    """
    place, connection = attached.places[name], attached.cursors[0]
    columns = _list_held(rows)
    counted = connection.execute(f"SELECT COUNT(*) FROM {rows.table}").fetchone()
    if counted is None or counted[0] * len(columns) > KEPT:
        return rows
    read = [(column.held, held[key]) for key, column in rows.columns.items() if column.derive is None]
    texts = {
        column for column, kind in [*read, *((key.held, key.type) for key in rows.keys.values())] if kind.is_string()
    }
    for column in texts:
        length = connection.execute(f"SELECT COALESCE(SUM(STRLEN({column})), 0) FROM {rows.table}").fetchall()[0][0]
        if length > KEPT_TEXT:
            return rows
    table = f"kept_{place.table}"
    try:
        connection.execute(f"CREATE TABLE {table} AS SELECT {', '.join(columns)} FROM {rows.table}")
    except duckdb.Error as error:
        raise SourceError("DuckDB cannot read every value of the declared columns") from error
    attached.places[name] = AttachedTable(table)
    return replace(rows, table=table)


def _keep_labels(attached: Attached, name: str, rows: Rows) -> Rows:
    """Put many declared labels in a table: an engine takes longer to read them in every statement than to join them."""
    columns, connection = dict(rows.columns), attached.cursors[0]
    for i, (key, column) in enumerate(rows.columns.items()):
        declared = column.declared.domain
        if not column.listed or not isinstance(declared, Categories) or len(declared.values) <= FEW_LABELS:
            continue
        table = f"labels_{list(attached.places).index(name)}_{i}"
        places = pa.array(range(1, len(declared.values) + 1), pa.int64())
        connection.register("labels", pa.table({"label": pa.array(declared.values, pa.string()), "place": places}))
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM labels")
        connection.unregister("labels")
        columns[key] = replace(column, listed=table)
    return replace(rows, columns=columns)


def _list_held(rows: Rows) -> list[str]:
    """The columns of a source that questions read, each once."""
    read = [column.held for column in rows.columns.values() if column.derive is None]
    return list(dict.fromkeys([*read, *(key.held for key in rows.keys.values())]))


class DuckDbConnection(Connection):
    """A cursor."""

    dialect = DIALECT
    materialises = True
    in_process = True

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        super().__init__()
        self.cursor = cursor

    def run(self, statement: SelectStatement) -> pa.Table:
        """Run a statement."""
        if statement.single:  # a stream of batches of it takes longer than the rest
            (row,) = self.cursor.execute(statement.text).fetchall()
            columns = [pa.array([value], kind) for value, kind in zip(row, statement.schema.types, strict=True)]
            return pa.Table.from_arrays(columns, schema=statement.schema)
        if statement.at_once:
            table = self.cursor.sql(statement.text).to_arrow_table()
        else:  # which takes a small result two thirds of the time
            table = self.cursor.execute(statement.text).to_arrow_reader(BATCH).read_all()
        return table if table.schema == statement.schema else table.cast(statement.schema)

    @contextmanager
    def materialise(self, source: str) -> Iterator[str]:
        """A table that only this cursor sees; DuckDB spills it to disk like any other."""
        self.fetch(
            SelectStatement.of_integers(f"CREATE OR REPLACE TEMP TABLE {HELD} AS SELECT * FROM {source}", "Count")
        )
        try:
            yield f"temp.{HELD}"
        finally:
            self.cursor.execute(f"DROP TABLE IF EXISTS temp.{HELD}")

    def interrupt(self) -> None:
        """Interrupt this cursor alone."""
        self.cursor.interrupt()

    def close(self) -> None:
        """Close the cursor."""
        self.cursor.close()


class DuckDbBackend(SqlBackend):
    """A file or a frame."""

    dialect = DIALECT

    def __init__(
        self, attached: Attached, rows: Mapping[str, Rows], dataset: Dataset, progress: Progress | None
    ) -> None:
        cursors = iter(attached.cursors)
        super().__init__(
            dataset, ConnectionPool(lambda: DuckDbConnection(next(cursors)), len(attached.cursors)), progress
        )
        self._attached = attached
        self._units: int | None = None
        self.kept = {}  # frames do not change, and of a file that changed no more is asked
        self.hold(rows)
        self.try_reading()

    def _count_units(self, connection: Connection) -> int:
        """Once: frames do not change, and of a file that changed no more is asked."""
        if self._units is None:
            self._units = super()._count_units(connection)
        return self._units

    def samplings(self, share: float, rows: int) -> list[ColumnSample]:
        """Whole blocks; of Parquet files, which have to be decoded to be sampled, a few long stretches of each."""
        place = self._attached.places[self.dataset.name]
        each = rows / place.files
        length = round(share * each / STRETCHES)
        if not place.numbered or not length:
            return [ColumnSample(f"{self.table} TABLESAMPLE SYSTEM ({100 * share} PERCENT)", share)]
        starts = [round((i + 0.5) * each / STRETCHES - length / 2) for i in range(STRETCHES)]
        parts = (
            f"SELECT * FROM {self.table} WHERE {NUMBER} BETWEEN {start} AND {start + length - 1}" for start in starts
        )
        return [ColumnSample(f"({' UNION ALL '.join(parts)}) AS stretches", share)]

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._attached.close()


def _load_text(attached: Attached, name: str, file: TextFile, whole: Dataset, progress: Progress) -> Rows:
    """Parse a file without types into a table of points, beside whether a field is given and whether it was cut."""
    dataset, keys, wanted = find_table(whole, name), list_keys(whole, name), list_read(whole, name)
    table = attached.places[name].table
    declared = {name: column for name, column in dataset.columns.items() if column.expression is None}
    names = file.read_names()
    if names is not None:
        _refuse_unnamed(dataset.name, names, wanted)
    fields, known, points, columns = [], [], [], {}
    for i, name in enumerate(keys):  # as text: two spellings of a number are two people
        fields.append(f"field{wanted.index(name)} AS key{i}")
        points.append(f"key{i}")
    for i, (name, column) in enumerate(declared.items()):
        field, value, given, beyond = f"field{i}", f"x{i}", f"given{i}", f"beyond{i}"
        text, held = parse_field(column.kind, field, file.notation, column.format)
        grid_column = make_grid_column(column, value, held, DIALECT)
        fields.append(f"{text} AS {value}, {field} IS NOT NULL AS {given}")
        if column.missing:
            condition = is_sentinel(column, value, held, DIALECT)
            hidden = [value, *(f"key{j}" for j, key in enumerate(keys) if key == name)]
            known += [f"CASE WHEN {condition} THEN NULL ELSE {each} END AS {each}" for each in hidden]
            known.append(f"CASE WHEN {condition} THEN FALSE ELSE {given} END AS {given}")
        points.append(f"{grid_column.point} AS {value}, {given}, COALESCE({grid_column.beyond}, FALSE) AS {beyond}")
        place = f"({value} + 1)" if grid_column.place else None
        columns[name] = GridColumn(column, value, given, value, f"{value} IS NOT NULL", beyond, place)
    text = f"(SELECT {', '.join(fields)} FROM piece) AS fields"
    text = f"(SELECT * REPLACE ({', '.join(known)}) FROM {text}) AS known" if known else text
    select = f"SELECT {', '.join(points)} FROM {text}"
    connection = attached.cursors[0]
    created = False
    for piece in file.read_records(names or wanted, wanted, progress):
        connection.register("piece", piece)
        target = f"INSERT INTO {table}" if created else f"CREATE TABLE {table} AS"
        connection.execute(f"{target} {select}")
        connection.unregister("piece")
        created = True
    progress("reading the file", 1.0)
    read = {key: hold_key(key, f"key{i}", dt.string, DIALECT) for i, key in enumerate(keys)}
    unit = [read[column].value for column in dataset.unit]
    return Rows(table, add_derived_columns(dataset, columns, DIALECT), unit, read)


def _refuse_unnamed(dataset: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Say which columns a file lacks, or has twice, and what may be wrong.

    What it has is not listed: without a header, its first line would be a record. The name nearest to the declared one
    is told only where another declared name is found, so that there is a header.
    """
    absent = [name for name in wanted if name not in names]
    if absent:
        advice = ""
        if len(absent) < len(wanted):
            nearest = find_nearest(absent[0], [name for name in names if name not in wanted])
            advice = "" if nearest is None else f". Did you mean {nearest!r}?"
        else:
            delimiter = ". Of a csv file, declare its delimiter" if len(names) == 1 else ""
            advice = (
                f"{delimiter}; if the file has no header, declare csv = {{ header = false }} and name its columns "
                "column1, column2, …"
            )
        raise SourceError(
            f"the source of {dataset!r} has no column {', '.join(map(repr, absent))} among its {len(names)}{advice}"
        )
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise SourceError(f"the file has {names.count(twice[0])} columns {twice[0]!r}: rename all but one")


def _open_parquet(
    attached: Attached,
    place: AttachedTable,
    file: str,
    rows: Rows,
    held: Mapping[str, dt.DataType],
    select: Sequence[str],
) -> None:
    """Make a view of the declared columns, and read once what DuckDB may fail to decode, so that no question does.

    That is text which is no UTF-8, a timestamp too far away, a decimal with more digits than its type. In a view of all
    columns, the statistics of an undeclared one are enough to make DuckDB fail.
    """
    connection = attached.cursors[0]
    read = {name: grid_column for name, grid_column in rows.columns.items() if grid_column.derive is None}
    listed = [*select, *[NUMBER] * place.numbered]
    points = [
        f"SUM(STRLEN({grid_column.held}))" if held[name].is_string() else f"COUNT({grid_column.point})"
        for name, grid_column in read.items()
        if held[name].is_string() or held[name].is_timestamp() or held[name].is_decimal()
    ]
    points += [f"{'SUM(STRLEN' if key.type.is_string() else '(COUNT'}({key.held}))" for key in rows.keys.values()]
    try:
        connection.execute(f"CREATE OR REPLACE VIEW {place.table} AS SELECT {', '.join(listed)} FROM {file}")
        # a record of each file: one that is encrypted, or has its records in another file, has none
        first = f"WHERE {NUMBER} = 0" if place.numbered else "LIMIT 1"
        connection.execute(f"SELECT MAX(HASH(COLUMNS(*))) FROM (SELECT * FROM {place.table} {first})").fetchall()
        connection.execute(f"SELECT {', '.join(['COUNT(*)', *points])} FROM {place.table}").fetchall()
    except duckdb.Error as error:
        raise SourceError(
            "DuckDB cannot decode every text, timestamp and decimal of the Parquet file (text that is not UTF-8, a "
            "timestamp too far away for microseconds, a decimal longer than its type): mend the file, or leave these "
            "columns out"
        ) from error
