"""Files with types that DuckDB does not read by itself, as Arrow tables: Arrow and Feather, Delta, Iceberg.

They are read once, when the source is opened, and only the declared columns. A table of Delta or Iceberg is read as the
version that is the newest then; later versions are not seen until it is opened again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc

from idios.backends.files import FileKind, FileSource, import_reader
from idios.errors import SourceError


def read_typed_file(source: FileSource, wanted: Sequence[str] | None) -> pa.Table:
    """Some columns of a file, those of them that it has; all of them if none are named."""
    if source.kind is FileKind.ARROW:
        return _read_arrow(source.path, wanted)
    read = _read_delta if source.kind is FileKind.DELTA else _read_iceberg
    try:
        return read(source, wanted)
    except SourceError:
        raise
    except Exception as error:  # of Rust, of Avro, of a file that is gone: the readers share no kind of error
        raise SourceError(
            f"{source.path.name!r} cannot be read as {source.kind.in_words}: it is damaged, or has features that its "
            "reader does not know"
        ) from error


def _read_arrow(path: Path, wanted: Sequence[str] | None) -> pa.Table:
    try:
        with path.open("rb") as file:
            beginning = file.read(8)
        if beginning.startswith(b"FEA1"):
            table = feather.read_table(path, memory_map=False)
        elif beginning.startswith(b"ARROW1"):
            with path.open("rb") as file:
                table = ipc.open_file(file).read_all()
        else:
            with path.open("rb") as file:
                table = ipc.open_stream(file).read_all()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"{path.name!r} cannot be read as an Arrow file: it is damaged, cut off, or none") from error
    return table if wanted is None else table.select(_keep(wanted, table.column_names))


def _read_delta(source: FileSource, wanted: Sequence[str] | None) -> Any:
    table = import_reader("deltalake").DeltaTable(str(source.path))
    names = [field.name for field in table.schema().fields]
    return table.to_pyarrow_table(columns=_keep(wanted, names))


def _read_iceberg(source: FileSource, wanted: Sequence[str] | None) -> Any:
    table = import_reader("pyiceberg.table").StaticTable.from_metadata(str(source.files[0]))
    names = [field.name for field in table.schema().fields]
    return table.scan(selected_fields=tuple(_keep(wanted, names))).to_arrow()


def _keep(wanted: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """The wanted ones of some names: which of them are absent is said where columns are declared."""
    return [name for name in names if wanted is None or name in wanted]
