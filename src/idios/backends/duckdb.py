"""DuckDB: files and frames, read in this process. The default engine.

The connection is the source's own. It is attached to that source and nothing else; then access to all other files is
shut off and the configuration locked. Every question has a cursor of its own, all of them made before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import ibis  # type: ignore[import-untyped]
import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType  # type: ignore[import-untyped]

from idios.backends import csv
from idios.backends.channel import AT_ONCE, Channel, Gate, Pool
from idios.backends.dialect import Dialect
from idios.backends.engine import SqlBackend
from idios.backends.memory import limit_memory
from idios.backends.progress import Progress
from idios.backends.reading import LIMIT, Reading, read_column
from idios.backends.search import Sample
from idios.backends.source import described, readings, refuse_absent, table_name
from idios.backends.statements import Statement
from idios.backends.temporary import TemporaryFolder
from idios.core.domain import Kind
from idios.errors import SourceError
from idios.query.schema import Dataset

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
    microseconds="CASE WHEN isfinite({x}) THEN epoch_us({x}) END",
    quantiles="quantile_disc({x}, {shares})",
    even_sample="random() < {share}",
    unscaled="CAST(replace(CAST({x} AS VARCHAR), '.', '') AS HUGEINT)",
    dictionaries=True,
)

STRETCHES = 8
"""How many stretches of records make a quick sample of a Parquet file; each costs a row group to be decoded."""

FILES = "a .csv or .parquet file, or file.duckdb::table"


def connect(source: object, dataset: Dataset, progress: Progress | None) -> DuckDbBackend:
    """Open a declared data set in a file or a frame."""
    attached = _attach(source)
    try:
        return DuckDbBackend(attached, dataset, progress)
    except BaseException:
        attached.close()
        raise


def describe(source: object) -> list[tuple[str, Kind, int]]:
    """The names and types of a file or a frame."""
    attached = _attach(source)
    try:
        return described(attached.held(attached.place.guess or attached.place.table))
    finally:
        attached.close()


@dataclass(frozen=True)
class _Place:
    """What a source is called in its connection."""

    table: str
    numbered: bool = False
    """Whether the records of a Parquet file carry their number, which makes stretches of them cheap to find."""
    guess: str | None = None
    """For a CSV file, its text as a table of guessed types."""


@dataclass(frozen=True)
class _Attached:
    """A connection that holds one source, and its cursors, of which it is the first."""

    cursors: tuple[duckdb.DuckDBPyConnection, ...]
    engines: tuple[ibis.BaseBackend, ...]
    directory: TemporaryFolder
    place: _Place

    def held(self, table: str) -> dict[str, dt.DataType]:
        """The names and types of a table."""
        try:
            columns = self.cursors[0].execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
        except duckdb.Error as error:
            raise SourceError("DuckDB cannot read the columns of the source") from error
        return {name: _type(text) for name, text, *_ in columns if not (self.place.numbered and name == NUMBER)}

    def close(self) -> None:
        """Let go of everything, spilled data included."""
        for cursor in reversed(self.cursors):
            cursor.close()
        self.directory.cleanup()


class DuckDbChannel(Channel):
    """A cursor."""

    dialect = DIALECT

    def run(self, statement: Statement) -> pa.Table:
        """Run a statement."""
        return self.connection.con.execute(statement.text).to_arrow_table().cast(statement.schema)

    def execute(self, text: str) -> list[tuple[object, ...]]:
        """Run a statement that selects nothing, or next to nothing."""
        with self.watch.interruptible(self.interrupt):
            found: list[tuple[object, ...]] = self.connection.con.execute(text).fetchall()
            return found

    def interrupt(self) -> None:
        """Interrupt this cursor alone."""
        self.connection.con.interrupt()

    def close(self) -> None:
        """Close the cursor."""
        self.connection.con.close()


NUMBER = "file_row_number"


class DuckDbBackend(SqlBackend):
    """A file or a frame."""

    dialect = DIALECT

    def __init__(self, attached: _Attached, dataset: Dataset, progress: Progress | None) -> None:
        engines = iter(attached.engines)
        super().__init__(dataset, Pool(lambda: DuckDbChannel(next(engines)), len(attached.engines)), progress)
        self._attached = attached
        self._preparing = Gate(1)
        self._text = attached.place.guess is not None
        self.table = attached.place.table
        held = attached.held(self.table)
        if self._text:
            refuse_absent(dataset, held)
            self.table, self.readings = self._fields()
        else:
            self.readings = readings(dataset, held, DIALECT)
        self._original = self.table, self.readings
        self.try_reading()

    def prepare(self, channel: Channel) -> None:
        """Turn a CSV file into grid points, once: text is slow to read again and again."""
        if not self._text:
            return
        with self._preparing.entered(channel.watch):
            if self._text:
                channel.watch.step("reading the file", 0.0)
                names = {name: DIALECT.identifier(f"x{i}") for i, name in enumerate(self.readings)}
                points = ", ".join(f"{reading.point} AS {names[name]}" for name, reading in self.readings.items())
                _own(channel).execute(f"CREATE OR REPLACE TABLE points AS SELECT {points} FROM {self.table}")
                self.readings = {name: _stored(reading, names[name]) for name, reading in self.readings.items()}
                self.table = "points"
                self._text = False  # last, since others look at it without waiting

    def original(self) -> tuple[str, Mapping[str, Reading]]:
        """Of a CSV file, its text."""
        return self._original

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

    def fits(self, column: str, channel: Channel) -> bool:
        """By the points of the least and the greatest value, which DuckDB knows of most files without reading."""
        reading = self.readings[column]
        ends = (f"SELECT {end}({reading.held}) AS {reading.held} FROM {self.table}" for end in ("MIN", "MAX"))
        text = f"SELECT {reading.point} AS point FROM ({' UNION ALL '.join(ends)}) AS ends"
        points = [point for (point,) in _own(channel).execute(text)]
        return all(isinstance(point, int) and abs(point) <= LIMIT for point in points)

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._attached.close()

    def _fields(self) -> tuple[str, dict[str, Reading]]:
        """A CSV file's fields read as their kinds, beside whether there is anything in them."""
        parts, found = [], {}
        for i, (name, column) in enumerate(self.dataset.columns.items()):
            field, value, given = (DIALECT.identifier(text) for text in (name, f"x{i}", f"given{i}"))
            text, held = csv.parsed(column.kind, field)
            parts.append(f"{text} AS {value}, {field} IS NOT NULL AS {given}")
            found[name] = replace(read_column(column, value, held, DIALECT), given=given)
        return f"(SELECT {', '.join(parts)} FROM {self.table}) AS fields", found


def _stored(reading: Reading, point: str) -> Reading:
    """A column whose points are stored."""
    given = f"{point} IS NOT NULL"
    place = f"({point} + 1)" if reading.place else None
    return Reading(reading.column, point, given, point, readable=given, place=place)


def _own(channel: Channel) -> DuckDbChannel:
    if not isinstance(channel, DuckDbChannel):
        raise AssertionError("a DuckDB source has channels of DuckDB only")
    return channel


def _attach(source: object) -> _Attached:
    directory = TemporaryFolder()
    connection = duckdb.connect(":memory:", config={"temp_directory": directory.name})
    try:
        limit_memory(connection)
        cursors = (connection, *(connection.cursor() for _ in range(AT_ONCE - 1)))
        # Ibis changes settings when it takes a connection over, so it comes before they are locked
        engines = tuple(ibis.duckdb.from_connection(cursor) for cursor in cursors)
        attached = _Attached(cursors, engines, directory, _place(cursors, source, directory.name))
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        directory.cleanup()
        raise
    return attached


def _place(cursors: Sequence[duckdb.DuckDBPyConnection], source: object, directory: str) -> _Place:
    """Make the source known to the connection: its table, and what is special about it."""
    connection = cursors[0]
    if not isinstance(source, str | Path):
        frame = _arrow(source)
        for cursor in cursors:  # a frame is known to the cursor alone that was given it
            cursor.register("frame", frame)
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
    if set(str(path)) & set("*?["):
        # DuckDB takes such a name for a pattern of many files, so it is given another name
        link = Path(directory) / f"source{suffix}"
        link.symlink_to(path)
        path = link
    literal = DIALECT.string(str(path))
    connection.execute(f"SET allowed_paths = [{literal}]")
    try:
        if suffix == ".csv":
            connection.execute(f"CREATE VIEW file AS SELECT * FROM read_csv({literal}, {csv.OPTIONS})")
            return _Place("file", guess=f"read_csv({literal}, {csv.GUESSED})")
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
    connection.execute(f"CREATE VIEW file AS SELECT * FROM read_parquet({literal}{option})")
    return _Place("file", numbered)


def _chosen(connection: duckdb.DuckDBPyConnection, written: str, table: str) -> str:
    """The table of a DuckDB file that was named, or its only one."""
    found = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'base'"
    ).fetchall()
    wanted = ("main", *table_name(table))[-2:] if table else None
    matching = [names for names in found if wanted in (None, names)]
    if len(matching) != 1:
        names = ", ".join(repr(name if schema == "main" else f"{schema}.{name}") for schema, name in found)
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
    try:
        return pa.table(dict(source) if isinstance(source, Mapping) else source)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        # the driver's words may quote a value
        raise SourceError(
            "the columns of a frame must be equally long, and the values of each of one type that fits 64 bits"
        ) from error


def _type(text: str) -> dt.DataType:
    try:
        return DuckDBType.from_string(text)
    except Exception:  # whatever Ibis cannot name, no declared column can be
        return dt.unknown
