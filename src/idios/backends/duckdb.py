"""DuckDB: files and frames, read in this process. The default engine.

The connection is the source's own. It is attached to that source and nothing else; then access to all other files is
shut off and the configuration locked. Every question has a cursor of its own, all of them made before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import ibis  # type: ignore[import-untyped]
import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType  # type: ignore[import-untyped]

from idios.backends.base import add_derived_columns, describe_types, make_grid_columns, split_table_name
from idios.backends.cancellation import Progress, silent
from idios.backends.connection_pool import AT_ONCE, Connection, ConnectionPool
from idios.backends.csv import CsvFormat, parse_field, propose_columns, read_names, read_records
from idios.backends.dialect import Dialect
from idios.backends.grid_sql import GridColumn, make_grid_column
from idios.backends.resources import TemporaryFolder, limit_memory
from idios.backends.selection import Statement
from idios.backends.sql_backend import SqlBackend
from idios.backends.summarise import Sample
from idios.core.domain import Kind
from idios.errors import SourceError
from idios.query.schema import Dataset


def _unscaled(x: str, precision: int, scale: int) -> str:
    """A product of two decimals of up to 18 digits has 18 digits, and overflows; wider ones are slower than text."""
    unit = f"CAST({10**scale} AS DECIMAL({scale + 1}, 0))"
    if precision + scale < 18:
        return f"CAST({x} * {unit} AS BIGINT)"
    if precision <= 18 and scale <= 9:
        return f"(CAST(trunc({x}) AS BIGINT) * {10**scale} + CAST(({x} - trunc({x})) * {unit} AS BIGINT))"
    return f"CAST(replace(CAST({x} AS VARCHAR), '.', '') AS HUGEINT)"


_COARSE = (
    "CASE WHEN {x} IN (CAST('infinity' AS {type}), CAST('-infinity' AS {type})) THEN NULL "
    "WHEN {x} > CAST('294247-01-10 04:00:54' AS {type}) THEN 9223372036854775807 "
    "WHEN {x} < CAST('290309-12-22 (BC)' AS {type}) THEN -9223372036854775807 ELSE epoch_us({x}) END"
)
"""A timestamp in units that reach further than microseconds of 64 bits, which is where it is cut off."""

DIALECT = Dialect(
    name="duckdb",
    compiler="duckdb",
    double="DOUBLE",
    wide="HUGEINT",
    widest=2**127 - 1,
    text="CAST({x} AS VARCHAR)",
    array="[{items}]",
    integers="BIGINT[]",
    element="list_extract({array}, {i})",
    position="list_position({array}, {x})",
    quotient="(({n}) // ({d}))",
    # never a comparison, which DuckDB may decide by a Parquet file's statistics, and those do not count NaN
    finite="isfinite({x})",
    days="CASE WHEN isfinite({x}) THEN date_diff('day', DATE '1970-01-01', {x}) END",
    timestamps={
        # DuckDB raises where seconds or milliseconds do not fit its microseconds, in TRY_CAST too
        0: _COARSE.format(type="TIMESTAMP_S", x="{x}"),
        3: _COARSE.format(type="TIMESTAMP_MS", x="{x}"),
        6: "CASE WHEN isfinite({x}) THEN epoch_us({x}) END",
        9: "CASE WHEN isfinite({x}) THEN epoch_ns({x}) // 1000 - CAST(epoch_ns({x}) % 1000 < 0 AS BIGINT) END",
    },
    quantiles="quantile_disc({x}, {shares})",
    even_sample="random() < {share}",
    unscaled=_unscaled,
    dictionaries=True,
)

STRETCHES = 8
"""How many stretches of records make a quick sample of a Parquet file; each costs a row group to be decoded."""

FILES = "a .csv or .parquet file, or file.duckdb::table"


def connect(source: object, dataset: Dataset, progress: Progress | None, csv_format: CsvFormat) -> DuckDbBackend:
    """Open a declared data set in a file or a frame."""
    attached = _attach(source)
    try:
        if attached.place.text is not None:
            columns = _load_csv(attached, attached.place.text, dataset, csv_format, progress or silent)
        else:
            columns = make_grid_columns(dataset, attached.held(), DIALECT)
            if attached.place.parquet is not None:
                _open_parquet(attached, attached.place.parquet, columns, dataset.unit)
        return DuckDbBackend(attached, columns, dataset, progress)
    except BaseException:
        attached.close()
        raise


def describe(source: object, csv_format: CsvFormat) -> list[tuple[str, Kind, int]]:
    """The names and types of a file or a frame; of a csv file, what its beginning looks like."""
    attached = _attach(source)
    try:
        if attached.place.text is not None:
            return propose_columns(attached.place.text, csv_format)
        return describe_types(attached.held())
    finally:
        attached.close()


@dataclass(frozen=True)
class _Place:
    """What a source is called in its connection."""

    table: str
    parquet: str | None = None
    """For a Parquet file, what stands after FROM to read all of it."""
    numbered: bool = False
    """Whether the records of a Parquet file carry their number, which makes stretches of them cheap to find."""
    text: Path | None = None
    """For a csv file, where it is: its text is parsed here, and DuckDB sees its grid points only."""


@dataclass(frozen=True)
class _Attached:
    """A connection that holds one source, and its cursors, of which it is the first."""

    cursors: tuple[duckdb.DuckDBPyConnection, ...]
    engines: tuple[ibis.BaseBackend, ...]
    directory: TemporaryFolder
    place: _Place

    def held(self) -> dict[str, dt.DataType]:
        """The names and types of the table."""
        try:
            columns = self.cursors[0].execute(f"DESCRIBE SELECT * FROM {self.place.table}").fetchall()
        except duckdb.Error as error:
            raise SourceError("DuckDB cannot read the columns of the source") from error
        return {name: _type(text) for name, text, *_ in columns if not (self.place.numbered and name == NUMBER)}

    def close(self) -> None:
        """Close the connection, and remove spilled data."""
        for cursor in reversed(self.cursors):
            cursor.close()
        self.directory.cleanup()


class DuckDbConnection(Connection):
    """A cursor."""

    dialect = DIALECT

    def run(self, statement: Statement) -> pa.Table:
        """Run a statement."""
        return self.ibis_backend.con.execute(statement.text).to_arrow_table().cast(statement.schema)

    def interrupt(self) -> None:
        """Interrupt this cursor alone."""
        self.ibis_backend.con.interrupt()

    def close(self) -> None:
        """Close the cursor."""
        self.ibis_backend.con.close()


NUMBER = "file_row_number"


class DuckDbBackend(SqlBackend):
    """A file or a frame."""

    dialect = DIALECT

    def __init__(
        self, attached: _Attached, columns: Mapping[str, GridColumn], dataset: Dataset, progress: Progress | None
    ) -> None:
        engines = iter(attached.engines)
        super().__init__(
            dataset, ConnectionPool(lambda: DuckDbConnection(next(engines)), len(attached.engines)), progress
        )
        self._attached = attached
        self.table = attached.place.table
        self.columns = columns
        self.try_reading()

    @property
    def unit_columns(self) -> Sequence[str]:
        """What tells people apart; of a csv file, by number, as its other columns are."""
        if self._attached.place.text is None:
            return super().unit_columns
        return [f"unit{i}" for i in range(len(self.dataset.unit))]

    def samplings(self, share: float, rows: int) -> list[Sample]:
        """Whole blocks; of a Parquet file, which has to be decoded to be sampled, a few long stretches."""
        if not self._attached.place.numbered:
            return [Sample(f"{self.table} TABLESAMPLE SYSTEM ({100 * share} PERCENT)", share)]
        length = round(share * rows / STRETCHES)
        starts = [round((i + 0.5) * rows / STRETCHES - length / 2) for i in range(STRETCHES)]
        parts = (
            f"SELECT * FROM {self.table} WHERE {NUMBER} BETWEEN {start} AND {start + length - 1}" for start in starts
        )
        return [Sample(f"({' UNION ALL '.join(parts)}) AS stretches", share)]

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._attached.close()


def _load_csv(
    attached: _Attached, path: Path, dataset: Dataset, format: CsvFormat, progress: Progress
) -> dict[str, GridColumn]:
    """Parse a csv file into a table of grid points, beside whether a field holds anything and whether it was cut."""
    names = read_names(path, format)
    declared = {name: column for name, column in dataset.columns.items() if column.expression is None}
    wanted = list(dict.fromkeys([*declared, *dataset.unit]))
    absent = [name for name in wanted if name not in names]
    if absent:
        # what the file has is not listed: without a header, its first line would be a record
        raise SourceError(
            f"the source of {dataset.name!r} has no column {', '.join(map(repr, absent))} among its {len(names)}; if "
            "the file has no header, declare csv = { header = false } and name its columns column1, column2, …"
        )
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise SourceError(f"the csv file has {names.count(twice[0])} columns {twice[0]!r}: rename all but one")
    fields, points, columns = [], [], {}
    for i, name in enumerate(dataset.unit):  # as text: two spellings of a number are two people
        fields.append(f"field{wanted.index(name)} AS unit{i}")
        points.append(f"unit{i}")
    for i, (name, column) in enumerate(declared.items()):
        field, value, given, beyond = f"field{i}", f"x{i}", f"given{i}", f"beyond{i}"
        text, held = parse_field(column.kind, field, format)
        grid_column = make_grid_column(column, value, held, DIALECT)
        fields.append(f"{text} AS {value}, {field} IS NOT NULL AS {given}")
        points.append(f"{grid_column.point} AS {value}, {given}, COALESCE({grid_column.beyond}, FALSE) AS {beyond}")
        place = f"({value} + 1)" if grid_column.place else None
        columns[name] = GridColumn(column, value, given, value, f"{value} IS NOT NULL", beyond, place)
    select = f"SELECT {', '.join(points)} FROM (SELECT {', '.join(fields)} FROM piece) AS fields"
    connection = attached.cursors[0]
    created = False
    for piece in read_records(path, format, names, wanted, progress):
        connection.register("piece", piece)
        target = f"INSERT INTO {attached.place.table}" if created else f"CREATE TABLE {attached.place.table} AS"
        connection.execute(f"{target} {select}")
        connection.unregister("piece")
        created = True
    progress("reading the file", 1.0)
    return add_derived_columns(dataset, columns, DIALECT)


def _open_parquet(attached: _Attached, file: str, columns: Mapping[str, GridColumn], unit: Sequence[str]) -> None:
    """Make a view of the declared columns, and read once what DuckDB may fail to decode, so that no question does.

    That is text which is no UTF-8, a timestamp too far away, a decimal with more digits than its type. In a view of all
    columns, the statistics of an undeclared one are enough to make DuckDB fail.
    """
    held, connection = attached.held(), attached.cursors[0]
    read = {name: grid_column for name, grid_column in columns.items() if grid_column.derive is None}
    held_columns = [*(grid_column.held for grid_column in read.values()), *map(DIALECT.identifier, unit)]
    listed = [*dict.fromkeys(held_columns), *[NUMBER] * attached.place.numbered]
    points = [
        f"COUNT({grid_column.point})"
        for name, grid_column in read.items()
        if held[name].is_string() or held[name].is_timestamp() or held[name].is_decimal()
    ]
    points += [f"COUNT({DIALECT.identifier(name)})" for name in unit]
    try:
        connection.execute(f"CREATE OR REPLACE VIEW file AS SELECT {', '.join(listed)} FROM {file}")
        connection.execute(f"SELECT {', '.join(['COUNT(*)', *points])} FROM file").fetchall()
    except duckdb.Error as error:
        raise SourceError(
            "DuckDB cannot decode every text, timestamp and decimal of the Parquet file (text that is not UTF-8, a "
            "timestamp too far away for microseconds, a decimal longer than its type): mend the file, or leave these "
            "columns out"
        ) from error


def _attach(source: object) -> _Attached:
    directory = TemporaryFolder()
    connection = duckdb.connect(":memory:", config={"temp_directory": directory.name})
    try:
        limit_memory(connection)
        cursors = (connection, *(connection.cursor() for _ in range(AT_ONCE - 1)))
        # Ibis changes settings when it takes a connection over, so it comes before they are locked
        engines = tuple(ibis.duckdb.from_connection(cursor) for cursor in cursors)
        attached = _Attached(cursors, engines, directory, _find(cursors, source, directory.name))
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        directory.cleanup()
        raise
    return attached


def _find(cursors: Sequence[duckdb.DuckDBPyConnection], source: object, directory: str) -> _Place:
    """Make the source known to the connection: its table, and what is special about it."""
    connection = cursors[0]
    if not isinstance(source, str | Path):
        frame = _arrow(source)
        try:
            for cursor in cursors:  # a frame is known to the cursor alone that was given it
                cursor.register("frame", frame)
        except duckdb.Error as error:
            raise SourceError("DuckDB cannot read a column of the frame: its type is not known there") from error
        return _Place("frame")
    written, _, table = str(source).partition("::")
    path = Path(written).absolute()
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet", ".duckdb"):
        raise SourceError(f"a source file must be {FILES}, got {str(source)!r}")
    if not path.is_file():
        raise SourceError(f"there is no file {written!r}")
    if table and suffix != ".duckdb":
        raise SourceError(f"only a .duckdb file has tables to choose from: write {written!r} alone")
    if suffix == ".csv":
        return _Place("points", text=path)
    if set(str(path)) & set("*?["):
        # DuckDB reads such a name as a glob pattern, so it is given another name
        link = Path(directory) / f"source{suffix}"
        link.symlink_to(path)
        path = link
    literal = DIALECT.string(str(path))
    connection.execute(f"SET allowed_paths = [{literal}]")
    try:
        if suffix == ".parquet":
            return _parquet(connection, literal)
        connection.execute(f"ATTACH {literal} AS base (READ_ONLY)")
    except duckdb.Error as error:
        raise SourceError(f"{written!r} cannot be read as a {suffix} file") from error
    return _Place(_chosen(connection, written, table))


def _parquet(connection: duckdb.DuckDBPyConnection, literal: str) -> _Place:
    columns = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({literal})").fetchall()
    numbered = NUMBER not in {name.lower() for name, *_ in columns}
    option = f", {NUMBER} = true" if numbered else ""
    file = f"read_parquet({literal}{option})"
    connection.execute(f"CREATE VIEW file AS SELECT * FROM {file}")
    return _Place("file", parquet=file, numbered=numbered)


def _chosen(connection: duckdb.DuckDBPyConnection, written: str, table: str) -> str:
    """The table of a DuckDB file that was named, or its only one."""
    tables = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'base'"
    ).fetchall()
    wanted = ("main", *split_table_name(table))[-2:] if table else None
    matching = [names for names in tables if wanted in (None, names)]
    if len(matching) != 1:
        names = ", ".join(repr(name if schema == "main" else f"{schema}.{name}") for schema, name in tables)
        raise SourceError(
            f"{written!r} has no table {table!r}; it has {names or 'none'}"
            if table
            else f"write the table after the file, as in {written}::table; it has {names or 'none'}"
        )
    return DIALECT.identifier("base", *matching[0])


def _arrow(source: object) -> pa.Table:
    """A frame, or a dict of columns, as an Arrow table."""
    if not (isinstance(source, Mapping) or hasattr(source, "__arrow_c_stream__")):
        raise SourceError(
            f"a source must be {FILES}, a database, an Arrow table, a pandas or polars frame or a dict of lists, "
            f"got {type(source).__name__}"
        )
    if isinstance(source, Mapping):
        for name, values in source.items():
            types = {type(value).__name__ for value in values if value is not None} if isinstance(values, list) else ()
            if len(types) > 1:
                # one element would decide what all others are read as
                raise SourceError(f"the list {name!r} mixes the types {' and '.join(sorted(types))}: give it one type")
    try:
        frame = pa.table(dict(source) if isinstance(source, Mapping) else source)
        frame.validate(full=True)  # text that is no UTF-8, say, is found now and not by a question
        return _without_zones(frame)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        # the driver's words may quote a value
        raise SourceError(
            "the columns of a frame must be equally long, and the values of each of one type that fits 64 bits"
        ) from error


def _without_zones(frame: pa.Table) -> pa.Table:
    """Timestamps in UTC without a time zone: with one DuckDB has microseconds only, and may fail to convert."""
    for i, field in enumerate(frame.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz and field.type.unit != "us":
            plain = frame.column(i).cast(pa.int64()).cast(pa.timestamp(field.type.unit))
            frame = frame.set_column(i, field.name, plain)
    return frame


def _type(text: str) -> dt.DataType:
    try:
        return DuckDBType.from_string(text)
    except Exception:  # whatever Ibis cannot name, no declared column can be
        return dt.unknown
