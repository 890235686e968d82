"""How DuckDB comes to its sources: files and frames, all of one data set in one connection.

The connection is attached to these sources and nothing else; then access to all other files is shut off and the
configuration locked. Every question has a cursor of its own, all of them made before that.

A DuckDB file can hold statements beside its tables: views, macros, generated columns. None of them runs: its tables are
read, and nothing else. No extension is loaded or downloaded because a file asks for one.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import duckdb
import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType  # type: ignore[import-untyped]

from idios.data.backend import DataSource, split_table_name
from idios.data.connection_pool import AT_ONCE
from idios.data.engines.duckdb_dialect import DIALECT
from idios.data.formats.files import (
    FILES,
    UNKNOWN_TO_DUCKDB,
    UNTYPED,
    FileKind,
    FileSource,
    find_files,
    refuse_mislabelled,
)
from idios.data.formats.reader_process import run_reader
from idios.data.formats.resources import TemporaryFolder, limit_memory
from idios.data.formats.text_files import TextFile, open_text_file
from idios.errors import SourceError

NUMBER = "file_row_number"


SAFE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
}
"""How every connection is configured, so that DuckDB fetches nothing and finds no credentials of its user."""
MOST_ROWS, MOST_EACH = 2**30, 1000
"""Parquet files have at most so many rows, or so many for each of their bytes: run-length encoding has no limit."""
ROW_GROUP = 122_880
"""How many rows of a table DuckDB reads with one thread."""


LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""What DuckDB adds to the name of a file for the log of its changes."""


@dataclass(frozen=True)
class AttachedTable:
    """What a source is called in its connection."""

    table: str
    parquet: str | None = None
    """For a Parquet file, what stands after FROM to read all of it."""
    metadata: str | None = None
    """And to read what is told of its row groups."""
    numbered: bool = False
    """Whether the records of Parquet files carry their number, which makes stretches of them cheap to find."""
    files: int = 1
    """How many Parquet files there are, in each of which numbers begin anew."""
    text: TextFile | None = None
    """For a file without types, what reads it: its text is parsed here, and DuckDB sees its grid points only."""
    registered: bool = False
    """Whether it is a frame, in the memory of Python."""


@dataclass(frozen=True)
class Attached:
    """A connection that holds the sources of one data set, by name, and its cursors, of which it is the first."""

    cursors: tuple[duckdb.DuckDBPyConnection, ...]
    directory: TemporaryFolder
    places: dict[str, AttachedTable]

    def held(self, name: str) -> dict[str, dt.DataType]:
        """The names and types of a table."""
        place = self.places[name]
        try:
            columns = self.cursors[0].execute(f"DESCRIBE SELECT * FROM {place.table}").fetchall()
        except duckdb.Error as error:
            raise SourceError("DuckDB cannot read the columns of the source") from error
        return {column: _type(text) for column, text, *_ in columns if not (place.numbered and column == NUMBER)}

    def lock(self) -> None:
        """Let nothing change the configuration any more.

        Of tables with one group of rows, DuckDB reads none with two threads: to wake another costs more than it helps.
        """
        connection, tables = self.cursors[0], [place.table for place in self.places.values()]
        kept = connection.execute("SELECT table_name, estimated_size FROM duckdb_tables()").fetchall()
        if all(dict(kept).get(table, ROW_GROUP + 1) <= ROW_GROUP for table in tables):
            connection.execute("SET threads = 1")
        connection.execute("SET lock_configuration = true")

    def close(self) -> None:
        """Close the connection, and remove spilled data."""
        for cursor in reversed(self.cursors):
            cursor.close()
        self.directory.cleanup()


def attach(sources: Mapping[str, DataSource], wanted: Mapping[str, Sequence[str]] | None = None) -> Attached:
    """A connection to some sources, by name, and to nothing else; ``wanted`` are the columns that are read of each."""
    directory = TemporaryFolder()
    connection = duckdb.connect(":memory:", config={"temp_directory": directory.name, **SAFE})
    try:
        limit_memory(connection)
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        # No name in a question is one of a variable of Python
        connection.execute("SET GLOBAL python_enable_replacements = false")
        cursors = (connection, *(connection.cursor() for _ in range(AT_ONCE - 1)))
        finder = _Finder(cursors, directory.name)
        places = {name: finder.find(each, (wanted or {}).get(name)) for name, each in sources.items()}
        attached = Attached(cursors, directory, places)
        connection.execute("SET enable_external_access = false")
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

    def find(self, given: DataSource, wanted: Sequence[str] | None) -> AttachedTable:
        """Make a source known: its table, and what is special about it.

        What is read into memory is read of the ``wanted`` columns only."""
        number = str(self.found) if self.found else ""
        self.found += 1
        source = given.place
        if not isinstance(source, str | Path):
            return self._register(source, f"frame{number}")
        found = find_files(source, is_csv=given.csv_format is not None)
        refuse_mislabelled(found)
        if found.kind in UNTYPED:
            return AttachedTable(f"points{number}", text=open_text_file(found, given.csv_format))
        if found.kind in UNKNOWN_TO_DUCKDB:
            return self._register(run_reader(found, wanted), f"frame{number}")
        return self._open(found, number)

    def _register(self, source: object, name: str) -> AttachedTable:
        frame = _arrow(source)
        try:
            for cursor in self.cursors:  # a frame is known to the cursor alone that was given it
                cursor.register(name, frame)
        except duckdb.Error as error:
            raise SourceError("DuckDB cannot read a column of the frame: its type is not known there") from error
        return AttachedTable(name, registered=True)

    def _open(self, found: FileSource, number: str) -> AttachedTable:
        """Let DuckDB reach files and nothing else; whatever their names are, none of them is a pattern."""
        if found.kind is FileKind.DUCKDB:
            _refuse_unfinished(found.path)
        paths = [self._name_plainly(path, f"source{number}_{i}") for i, path in enumerate(found.files)]
        attached = paths[0] in self.paths  # DuckDB attaches a file once
        self.paths += [path for path in paths if path not in self.paths]
        connection, listed = self.cursors[0], [DIALECT.string(str(path)) for path in paths]
        connection.execute(f"SET allowed_paths = [{', '.join(DIALECT.string(str(each)) for each in self.paths)}]")
        try:
            if found.kind is FileKind.PARQUET:
                return _parquet(connection, listed, f"file{number}", found)
            base = f"base{self.paths.index(paths[0]) or ''}"
            if not attached:
                connection.execute(f"ATTACH {listed[0]} AS {base} (READ_ONLY, TYPE duckdb)")
        except duckdb.Error as error:
            raise SourceError(f"{found.path.name!r} cannot be read as {found.kind.in_words}") from error
        return AttachedTable(_chosen(connection, base, found))

    def _name_plainly(self, path: Path, name: str) -> Path:
        """The path, or where DuckDB would read it as a pattern, a link to it."""
        if not set(str(path)) & set("*?["):
            return path
        link = Path(self.directory) / f"{name}{path.suffix.lower()}"
        link.symlink_to(path)
        return link


def _refuse_unfinished(path: Path) -> None:
    """Refuse a DuckDB file with a log of changes beside it, or beside what it links to.

    DuckDB would replay the log into what is read, unchecked, and wait without end for one that is a pipe.
    """
    for log in (each.with_name(each.name + ending) for each in (path, path.resolve()) for ending in LOGS):
        if os.path.lexists(log):
            raise SourceError(
                f"{path.name!r} is not read while there is {log.name!r} beside it, with changes that it lacks: close "
                "the program that writes it, or open it with DuckDB and run CHECKPOINT"
            )


def _parquet(
    connection: duckdb.DuckDBPyConnection, listed: Sequence[str], view: str, found: FileSource
) -> AttachedTable:
    """A view of Parquet files, all of which must have the same columns; names of folders such as year=2024 are text."""
    held = [_describe_parquet(connection, literal, path) for literal, path in zip(listed, found.files, strict=True)]
    for path, columns in zip(found.files, held, strict=True):
        if columns != held[0] or _list_keys(path, found) != _list_keys(found.files[0], found):
            raise SourceError(
                f"{path.name!r} has other columns, or columns of other types, than {found.files[0].name!r}: the files "
                "of one source must be alike"
            )
    keyed = bool(_list_keys(found.files[0], found))
    options = f", hive_partitioning = {str(keyed).lower()}" + (", hive_types_autocast = false" if keyed else "")
    numbered = NUMBER not in {name.lower() for name, *_ in held[0]}
    options += f", {NUMBER} = true" if numbered else ""
    file = f"read_parquet([{', '.join(listed)}]{options})"
    connection.execute(f"CREATE VIEW {view} AS SELECT * FROM {file}")
    metadata = f"parquet_metadata([{', '.join(listed)}])"
    _refuse_endless(connection, f"parquet_file_metadata([{', '.join(listed)}])", found)
    return AttachedTable(view, parquet=file, metadata=metadata, numbered=numbered, files=len(listed))


def _refuse_endless(connection: duckdb.DuckDBPyConnection, metadata: str, found: FileSource) -> None:
    """Refuse Parquet files with so many rows that each question would take hours, as a few bytes can stand for them."""
    try:
        rows = connection.execute(f"SELECT COALESCE(SUM(num_rows), 0) FROM {metadata}").fetchall()[0][0]
    except duckdb.Error as error:
        raise SourceError(f"{found.path.name!r} cannot be read as {found.kind.in_words}") from error
    if rows > max(MOST_ROWS, MOST_EACH * sum(path.stat().st_size for path in found.files)):
        raise SourceError(
            f"{found.path.name!r} has {rows:,} rows, more than {MOST_ROWS:,} and than {MOST_EACH:,} for each byte: "
            "nothing is read of it"
        )


def _describe_parquet(connection: duckdb.DuckDBPyConnection, literal: str, path: Path) -> list[tuple[str, ...]]:
    try:
        text = f"DESCRIBE SELECT * FROM read_parquet({literal}, hive_partitioning = false)"
        return connection.execute(text).fetchall()
    except duckdb.Error as error:
        raise SourceError(f"{path.name!r} cannot be read as {FileKind.PARQUET.in_words}") from error


def _list_keys(path: Path, found: FileSource) -> list[str]:
    """What the names of the folders between a source and its file tell: year, of year=2024."""
    folders = () if found.base is None else path.relative_to(found.base).parts[:-1]
    return [name for name, mark, _ in (folder.partition("=") for folder in folders) if mark]


def _chosen(connection: duckdb.DuckDBPyConnection, base: str, found: FileSource) -> str:
    """The table of a DuckDB file that was named, or its only one."""
    written, table = found.path.name, found.table
    known = f"FROM information_schema.tables WHERE table_catalog = '{base}'"
    views = connection.execute(f"SELECT table_schema, table_name {known} AND table_type <> 'BASE TABLE'").fetchall()
    tables = connection.execute(f"SELECT table_schema, table_name {known} AND table_type = 'BASE TABLE'").fetchall()
    wanted = ("main", *split_table_name(table))[-2:] if table else None
    matching = [names for names in tables if wanted in (None, names)]
    if wanted in views:
        raise SourceError(
            f"{table!r} in {written!r} is a view, which is a statement that the file brings, and none of them is run: "
            "store what it selects as a table"
        )
    if len(matching) != 1:
        names = ", ".join(repr(name if schema == "main" else f"{schema}.{name}") for schema, name in tables)
        raise SourceError(
            f"{written!r} has no table {table!r}; it has {names or 'none'}"
            if table
            else f"write the table after the file, as in {written}::table; it has {names or 'none'}"
        )
    statement = connection.execute(
        f"SELECT sql FROM duckdb_tables() WHERE database_name = '{base}' AND schema_name = ? AND table_name = ?",
        matching[0],
    ).fetchall()[0][0]
    if "GENERATED ALWAYS AS" in re.sub(r"""'([^']|'')*'|"([^"]|"")*\"""", "", statement):
        raise SourceError(
            f"a table of {written!r} has generated columns, which are statements that the file brings, and none of "
            "them is run: store their values in plain columns"
        )
    return DIALECT.identifier(base, *matching[0])


def _arrow(source: object) -> pa.Table:
    """A frame, or a dict of columns, as an Arrow table; what is lazy, or a stream, is read to its end here."""
    if type(source).__name__ == "LazyFrame" and type(source).__module__.startswith("polars"):
        try:
            source = cast(Any, source).collect()
        except Exception as error:  # polars' words may quote a value
            raise SourceError("the LazyFrame cannot be collected; collect it yourself to see why") from error
    if not (isinstance(source, Mapping) or hasattr(source, "__arrow_c_stream__")):
        raise SourceError(
            f"a source must be {FILES}, a database, an Arrow table or stream, a pandas or polars frame or a dict of "
            f"lists, got {type(source).__name__}"
        )
    if isinstance(source, Mapping):
        for name, values in source.items():
            types = {type(value).__name__ for value in values if value is not None} if isinstance(values, list) else ()
            if len(types) > 1:
                # one element would decide what all others are read as
                raise SourceError(f"the list {name!r} mixes the types {' and '.join(sorted(types))}: give it one type")
    if type(source).__module__.startswith("pandas"):  # which Arrow would refuse in other words
        _refuse_repeated([str(name) for name in cast(Any, source).columns])
    try:
        frame = pa.table(dict(source) if isinstance(source, Mapping) else source)
        frame.validate(full=True)  # text that is no UTF-8, say, is found now and not by a question
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        # the driver's words may quote a value
        raise SourceError(
            "the columns of a frame must be equally long, and the values of each of one type that fits 64 bits"
        ) from error
    _refuse_repeated(frame.column_names)
    held = source.values() if isinstance(source, Mapping) else [source]
    kinds = {type(each).__module__.partition(".")[0] for each in held}
    return _without_zones(frame if kinds <= {"builtins", "pyarrow", "polars"} else _copy(frame))


def _copy(frame: pa.Table) -> pa.Table:
    """The same in memory of its own: arrays of numpy and frames of pandas, say, can be written to by their callers."""
    copied = pa.BufferOutputStream()
    with pa.ipc.new_stream(copied, frame.schema) as stream:
        stream.write_table(frame)
    return pa.ipc.open_stream(copied.getvalue()).read_all()


def _refuse_repeated(names: Sequence[str]) -> None:
    if not names:
        raise SourceError("the frame has no columns")
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise SourceError(f"several columns of the frame are called {repeated[0]!r}: rename them")


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
