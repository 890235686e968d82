"""Files that other libraries read: Arrow and Feather, Delta, Iceberg, Excel, Stata, SPSS and SAS transport.

All of this runs in a process of its own (``reader_process``). Rules:

1. A file is read as data. Its metadata names no code: no property of it reaches a library as a setting.
2. It names no other file: whatever its metadata names must lie below its folder, links resolved, or is refused.
3. It names no server: only files of this machine are opened, by functions of this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.fs as fs
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet

from idios.data.formats.files import FileKind, FileSource, import_reader
from idios.errors import SourceError

FACTS = b"idios facts"
"""Where the schema of a table has what is told of the file besides its columns, in JSON."""
STATISTICS = {FileKind.STATA: "read_dta", FileKind.SPSS: "read_sav", FileKind.SAS: "read_xport"}
_RECORD = 80
"""A SAS transport file consists of records of so many bytes."""
_CHECKPOINT = re.compile(r"[0-9]{20}\.checkpoint(\.[0-9]{10}\.[0-9]{10})?\.parquet")
"""What a checkpoint of Delta is called, unless it may name other files."""
_NAME_MAPPING = "schema.name-mapping.default"
"""The only property of an Iceberg table that says how its records are read."""


def read_foreign_file(
    source: FileSource, wanted: Sequence[str] | None = None, most: int | None = None, *, records: bool = True
) -> pa.Table:
    """Some columns of a file, or all, and at most some of its rows; without ``records`` the facts alone."""
    try:
        if source.kind is FileKind.EXCEL:
            return _read_excel(source, most)
        if source.kind in STATISTICS:
            return _read_statistics(source, wanted, records)
        read = {FileKind.ARROW: _read_arrow, FileKind.DELTA: _read_delta, FileKind.ICEBERG: _read_iceberg}[source.kind]
        return _drop_unknown_types(read(source, wanted))
    except (SourceError, MemoryError):
        raise
    except Exception as error:  # of Rust, of Avro, of a file that is gone: the libraries share no kind of error
        unknown = ", or has features that its reader does not know" if source.kind in _FOLDERS else ", cut off, or none"
        raise SourceError(
            f"{source.path.name!r} cannot be read as {source.kind.in_words}: it is damaged{unknown}"
        ) from error


_FOLDERS = (FileKind.DELTA, FileKind.ICEBERG)


def read_facts(table: pa.Table) -> dict[str, Any]:
    """What is told of a file besides its columns."""
    return dict(json.loads(table.schema.metadata[FACTS]))


def find_below(folder: Path, named: str) -> Path:
    """The file that the metadata of a table names, as a path or a ``file:`` address; it must lie below its folder.

    The path is taken as it is written: what is percent-encoded is a file called like that.
    """
    path = (folder / re.sub(r"^file:(//(localhost)?(?=/))?", "", named)).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        shown = named if len(named) <= 200 else f"{named[:200]}…"
        raise SourceError(
            f"{folder.name!r} names the file {shown!r}, which is not below it: a table is read from the files of its "
            "own folder alone"
        )
    return path


def _read_arrow(source: FileSource, wanted: Sequence[str] | None) -> pa.Table:
    with source.path.open("rb") as file:
        beginning = file.read(8)
        file.seek(0)
        if beginning.startswith(b"FEA1"):
            table = feather.read_table(file, memory_map=False)
        elif beginning.startswith(b"ARROW1"):
            table = ipc.open_file(file).read_all()
        else:
            table = ipc.open_stream(file).read_all()
    table.validate(full=True)
    return table if wanted is None else table.select(_keep(wanted, table.column_names))


def _read_delta(source: FileSource, wanted: Sequence[str] | None) -> pa.Table:
    library = import_reader("deltalake")
    for path in source.files:
        # A checkpoint with sidecars names files, which the library opens wherever they are
        plain = ".checkpoint." not in path.name or _CHECKPOINT.fullmatch(path.name)
        if not plain or (path.suffix == ".parquet" and _names_sidecars(path)):
            raise SourceError(
                f"{source.path.name!r} has checkpoints in parts that name other files, which are not read: write it a "
                "classic checkpoint (delta.checkpointPolicy = classic)"
            )
    table = library.DeltaTable(str(source.path))
    names = [field.name for field in table.schema().fields]
    return table.to_pyarrow_table(columns=_keep(wanted, names), filesystem=fs.PyFileSystem(_FilesBelow(source.path)))


def _names_sidecars(checkpoint: Path) -> bool:
    with parquet.ParquetFile(checkpoint) as file:
        if "sidecar" not in file.schema_arrow.names:
            return False
        columns = file.read(columns=["sidecar"]).columns
    return any(column.null_count < len(column) for column in columns)


class _FilesBelow(fs.FSSpecHandler):  # type: ignore[misc]
    """Reads files below a folder, and can do nothing else."""

    def __init__(self, folder: Path) -> None:
        super().__init__(None)
        self._folder = folder

    def get_type_name(self) -> str:
        return "files below a folder"

    def normalize_path(self, path: str) -> str:
        return path

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.OSFile(str(find_below(self._folder, path)), "rb")

    open_input_stream = open_input_file


def _read_iceberg(source: FileSource, wanted: Sequence[str] | None) -> pa.Table:
    library, reader = import_reader("pyiceberg.table"), _IcebergFiles(source.path)
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.serializers import FromInputFile

    place = str(source.files[0])
    metadata = FromInputFile.table_metadata(reader.new_input(place))
    kept = {key: value for key, value in metadata.properties.items() if key == _NAME_MAPPING}
    metadata = metadata.model_copy(update={"properties": kept})
    table = library.StaticTable(("table",), metadata, place, reader, NoopCatalog("none"))
    if metadata.current_snapshot_id is not None and table.current_snapshot() is None:
        raise ValueError("its records are in a snapshot that it does not have")  # which reads as none
    names = [field.name for field in table.schema().fields]
    return table.scan(selected_fields=tuple(_keep(wanted, names))).to_arrow()


class _IcebergFiles:
    """What pyiceberg opens files with; properties of a table, which could name another class, have no part in it."""

    properties: Mapping[str, str] = {}

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new_input(self, location: str) -> Any:
        from pyiceberg.io.pyarrow import PyArrowFile

        return PyArrowFile(location, str(find_below(self._folder, location)), fs.LocalFileSystem())


def _drop_unknown_types(table: pa.Table) -> pa.Table:
    """The same without metadata, and types that only their name tells as what they are stored as."""
    columns = [
        pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
        if isinstance(column.type, pa.UnknownExtensionType)
        else column
        for column in table.columns
    ]
    fields = [pa.field(name, column.type) for name, column in zip(table.column_names, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _read_excel(source: FileSource, most: int | None) -> pa.Table:
    """The cells of a sheet, all rows equally long, as text; the facts have the number of the first row."""
    name = source.path.name
    workbook = import_reader("python_calamine").CalamineWorkbook.from_path(str(source.path))
    sheets = list(workbook.sheet_names)
    if source.table not in sheets and (source.table or len(sheets) != 1):
        listed = ", ".join(map(repr, sheets)) or "none"
        raise SourceError(
            f"{name!r} has no sheet {source.table!r}; it has {listed}"
            if source.table
            else f"write the sheet after the file, as in {name}::sheet; it has {listed}"
        )
    sheet = workbook.get_sheet_by_name(source.table or sheets[0])
    rows = sheet.to_python(nrows=most)
    if not rows:
        raise SourceError(f"the sheet of {name!r} is empty: not even names of columns are there")
    columns = [pa.array(map(_write_cell, column), pa.large_string()) for column in zip(*rows, strict=True)]
    return _make_table(columns, {"row": sheet.start[0] + 1})


def _write_cell(cell: Any) -> str | None:
    """A cell as text: dates and times as ISO 8601, with a blank between the two."""
    if isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    if hasattr(cell, "hour") and hasattr(cell, "year"):
        return str(cell.isoformat(sep=" "))
    return str(cell)


def _read_statistics(source: FileSource, wanted: Sequence[str] | None, records: bool) -> pa.Table:
    """Variables as numbers or text; the facts have the names of all, the formats and the labels of their values."""
    library = import_reader("pyreadstat")
    if source.kind is FileKind.SAS and source.path.stat().st_size % _RECORD:
        raise ValueError("cut off")  # it does not say how many rows it has
    options = {"usecols": list(wanted)} if wanted is not None else {}
    content, facts = getattr(library, STATISTICS[source.kind])(
        str(source.path), output_format="dict", disable_datetime_conversion=True, metadataonly=not records, **options
    )
    stored = facts.readstat_variable_types
    columns = [_hold(content[name], stored.get(name) == "string") for name in wanted or () if records]
    if any(facts.number_rows is not None and len(column) != facts.number_rows for column in columns):
        raise ValueError("cut off")
    told = {
        "names": list(facts.column_names),
        "stored": {name: str(each) for name, each in stored.items()},
        "formats": {name: str(each) for name, each in facts.original_variable_types.items()},
        "labels": {
            name: [
                (str(int(code)) if isinstance(code, float) and code.is_integer() else str(code), str(label))
                for code, label in each.items()
            ]
            for name, each in facts.variable_value_labels.items()
        },
    }
    return _make_table(columns, told)


def _hold(values: Sequence[Any], is_text: bool) -> pa.Array:
    if is_text:
        texts = [None if value in (None, "") else str(value) for value in values]
        try:
            return pa.array(texts, pa.large_string())
        except UnicodeEncodeError:  # half a character
            return pa.array([text and text.encode("utf-8", "replace").decode() for text in texts], pa.large_string())
    return pa.array(np.array([np.nan if value is None else value for value in values], dtype=np.float64))


def _make_table(columns: Sequence[pa.Array], facts: Mapping[str, Any]) -> pa.Table:
    """Columns by their number: names could be there twice."""
    schema = pa.schema([(str(i), column.type) for i, column in enumerate(columns)], {FACTS: json.dumps(facts)})
    return pa.Table.from_arrays(columns, schema=schema)


def _keep(wanted: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """The wanted ones of some names: which of them are absent is said where columns are declared."""
    return [name for name in names if wanted is None or name in wanted]
