"""How DuckDB comes to its sources: files and frames, all of one data set in one connection.

The connection is attached to these sources and nothing else; then access to all other files is shut off and the
configuration locked. Every question has a cursor of its own, all of them made before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType  # type: ignore[import-untyped]

from idios.backends.base import split_table_name
from idios.backends.connection_pool import AT_ONCE
from idios.backends.duckdb_dialect import DIALECT
from idios.backends.resources import TemporaryFolder, limit_memory
from idios.errors import SourceError

NUMBER = "file_row_number"


FILES = "a .csv or .parquet file, or file.duckdb::table"


@dataclass(frozen=True)
class Place:
    """What a source is called in its connection."""

    table: str
    parquet: str | None = None
    """For a Parquet file, what stands after FROM to read all of it."""
    numbered: bool = False
    """Whether the records of a Parquet file carry their number, which makes stretches of them cheap to find."""
    text: Path | None = None
    """For a csv file, where it is: its text is parsed here, and DuckDB sees its grid points only."""
    registered: bool = False
    """Whether it is a frame, in the memory of Python."""


@dataclass(frozen=True)
class Attached:
    """A connection that holds the sources of one data set, by name, and its cursors, of which it is the first."""

    cursors: tuple[duckdb.DuckDBPyConnection, ...]
    directory: TemporaryFolder
    places: dict[str, Place]

    def held(self, name: str) -> dict[str, dt.DataType]:
        """The names and types of a table."""
        place = self.places[name]
        try:
            columns = self.cursors[0].execute(f"DESCRIBE SELECT * FROM {place.table}").fetchall()
        except duckdb.Error as error:
            raise SourceError("DuckDB cannot read the columns of the source") from error
        return {column: _type(text) for column, text, *_ in columns if not (place.numbered and column == NUMBER)}

    def close(self) -> None:
        """Close the connection, and remove spilled data."""
        for cursor in reversed(self.cursors):
            cursor.close()
        self.directory.cleanup()


def attach(sources: Mapping[str, object]) -> Attached:
    """A connection to some sources, by name, and to nothing else."""
    directory = TemporaryFolder()
    connection = duckdb.connect(":memory:", config={"temp_directory": directory.name})
    try:
        limit_memory(connection)
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        # No name in a question is one of a variable of Python
        connection.execute("SET GLOBAL python_enable_replacements = false")
        cursors = (connection, *(connection.cursor() for _ in range(AT_ONCE - 1)))
        finder = _Finder(cursors, directory.name)
        attached = Attached(cursors, directory, {name: finder.find(each) for name, each in sources.items()})
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        directory.cleanup()
        raise
    return attached


@dataclass
class _Finder:
    """Makes sources known to a connection, each under names of its own."""

    cursors: Sequence[duckdb.DuckDBPyConnection]
    directory: str
    paths: list[Path] = field(default_factory=list)
    found: int = 0

    def find(self, source: object) -> Place:
        """Make a source known: its table, and what is special about it."""
        number = str(self.found) if self.found else ""
        self.found += 1
        if not isinstance(source, str | Path):
            return self._register(source, f"frame{number}")
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
            return Place(f"points{number}", text=path)
        if set(str(path)) & set("*?["):
            # DuckDB reads such a name as a glob pattern, so it is given another name
            link = Path(self.directory) / f"source{number}{suffix}"
            link.symlink_to(path)
            path = link
        return self._open(path, written, table, number)

    def _register(self, source: object, name: str) -> Place:
        frame = _arrow(source)
        try:
            for cursor in self.cursors:  # a frame is known to the cursor alone that was given it
                cursor.register(name, frame)
        except duckdb.Error as error:
            raise SourceError("DuckDB cannot read a column of the frame: its type is not known there") from error
        return Place(name, registered=True)

    def _open(self, path: Path, written: str, table: str, number: str) -> Place:
        attached = path in self.paths  # DuckDB attaches a file once
        if not attached:
            self.paths.append(path)
        literal = DIALECT.string(str(path))
        self.cursors[0].execute(f"SET allowed_paths = [{', '.join(DIALECT.string(str(each)) for each in self.paths)}]")
        try:
            if path.suffix.lower() == ".parquet":
                return _parquet(self.cursors[0], literal, f"file{number}")
            base = "base" if self.paths.index(path) == 0 else f"base{self.paths.index(path)}"
            if not attached:
                self.cursors[0].execute(f"ATTACH {literal} AS {base} (READ_ONLY)")
        except duckdb.Error as error:
            raise SourceError(f"{written!r} cannot be read as a {path.suffix.lower()} file") from error
        return Place(_chosen(self.cursors[0], base, written, table))


def _parquet(connection: duckdb.DuckDBPyConnection, literal: str, view: str) -> Place:
    columns = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({literal})").fetchall()
    numbered = NUMBER not in {name.lower() for name, *_ in columns}
    option = f", {NUMBER} = true" if numbered else ""
    file = f"read_parquet({literal}{option})"
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {file}")
    return Place(view, parquet=file, numbered=numbered)


def _chosen(connection: duckdb.DuckDBPyConnection, base: str, written: str, table: str) -> str:
    """The table of a DuckDB file that was named, or its only one."""
    tables = connection.execute(
        f"SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = '{base}'"
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
    return DIALECT.identifier(base, *matching[0])


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
    for i, held in enumerate(frame.schema):
        if pa.types.is_timestamp(held.type) and held.type.tz and held.type.unit != "us":
            plain = frame.column(i).cast(pa.int64()).cast(pa.timestamp(held.type.unit))
            frame = frame.set_column(i, held.name, plain)
    return frame


def _type(text: str) -> dt.DataType:
    try:
        return DuckDBType.from_string(text)
    except Exception:  # whatever Ibis cannot name, no declared column can be
        return dt.unknown
