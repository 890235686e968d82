"""What the format and the types of a csv file seem to be, for a controller to confirm.

A proposal reads records. So it is never used by itself: it is shown, confirmed, and written into a configuration, from
where on it is declared. A first line that is a record must not become names: it counts as a header only where the
lines below look different.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from idios.backends.csv import FORMS, CsvFormat, read_names
from idios.core.domain import Kind
from idios.errors import SourceError

DELIMITERS = ",;\t|"
_NUMBER_WITH_COMMA = re.compile(r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?")
_ORDER = (Kind.INTEGER, Kind.NUMBER, Kind.DATE, Kind.TIMESTAMP)
LOOKED_AT = 2**18
"""How many bytes at the beginning of a file a proposal reads."""


def propose_format(path: Path, header: bool | None = None) -> CsvFormat:
    """The format that the beginning of a file seems to have; ``header`` says whether it begins with names."""
    with path.open("rb") as file:
        raw = file.read(LOOKED_AT)
    encoding = _encoding(raw)
    format, records = _divided(raw, encoding)
    if header is None:
        header = _has_header(records, format)
    if header is None:
        raise SourceError(
            f"whether the first line of {path.name!r} is a header or a record cannot be told from the file: say "
            "--header or --no-header"
        )
    rest = records[1:] if header else records
    commas = [column for column in _columns(rest) if column and all(map(_NUMBER_WITH_COMMA.fullmatch, column))]
    if format.delimiter != "," and any("," in field for column in commas for field in column):
        format = replace(format, decimal=",")
    return replace(format, header=header)


def propose_columns(path: Path, format: CsvFormat) -> list[tuple[str, Kind, int]]:
    """The names of a file's columns, and the kinds that the fields at its beginning can be read as."""
    names = read_names(path, format)
    with path.open("rb") as file:
        records = _records(file.read(LOOKED_AT), format)
    columns = _columns(records[1:] if format.header else records)
    columns += [[] for _ in range(len(names) - len(columns))]
    return [(name, _kind(column, format), 0) for name, column in zip(names, columns, strict=False)]


def _encoding(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw)
        return "utf-8"
    except UnicodeDecodeError:
        return "latin-1"


def _divided(raw: bytes, encoding: str) -> tuple[CsvFormat, list[list[str]]]:
    """The delimiter that divides every record into the same number of fields, most of them."""
    found = []
    for delimiter in DELIMITERS:
        format = CsvFormat(delimiter=delimiter, encoding=encoding)
        records = _records(raw, format)
        widths = {len(record) for record in records}
        found.append((len(widths) == 1, max(widths, default=0), format, records))
    even, width, format, records = max(found, key=lambda one: one[:2])
    if not even or (width == 1 and any(mark in record[0] for record in records for mark in DELIMITERS)):
        raise SourceError(
            "the lines of the csv file have different numbers of fields, whatever divides them: mend it, or declare "
            "its csv format in idios.toml"
        )
    return format, records


def _records(raw: bytes, format: CsvFormat) -> list[list[str]]:
    """The records at the beginning of a file; the last one may be cut off, and is left out then."""
    text = codecs.getincrementaldecoder(format.encoding)(errors="replace").decode(raw).removeprefix("\ufeff")
    options = {"quotechar": format.quote} if format.quote else {"quoting": csv.QUOTE_NONE}
    lines = io.StringIO(text, newline="")
    try:
        read = csv.reader(lines, delimiter=format.delimiter, escapechar=format.escape, **options)
        records = [record for record in read if record]
    except csv.Error:
        return []
    return records[:-1] if len(raw) == LOOKED_AT else records


def _columns(records: Sequence[Sequence[str]]) -> list[list[str]]:
    """The fields of each column that are not empty."""
    width = max(map(len, records), default=0)
    return [[r[i].strip(" ") for r in records if i < len(r) and r[i].strip(" ")] for i in range(width)]


def _kind(fields: Sequence[str], format: CsvFormat) -> Kind:
    fields = [field for field in fields if field not in format.nulls]
    if fields and all(field.lower() in ("true", "false") for field in fields):
        return Kind.INTEGER
    for kind in _ORDER:
        marked = [field.replace(",", ".") for field in fields] if format.decimal == "," else fields
        if fields and all(re.fullmatch(FORMS[kind][0], field) for field in marked):
            return kind
    return Kind.CATEGORY


def _has_header(records: Sequence[Sequence[str]], format: CsvFormat) -> bool | None:
    """Whether the first record is one of names; None if it cannot be told."""
    if not records:
        return None
    first = [field.strip(" ") for field in records[0]]
    both = replace(format, decimal="," if format.delimiter != "," else ".")
    if not all(first) or len(set(first)) < len(first) or any(_kind([f], both) is not Kind.CATEGORY for f in first):
        return False
    return True if any(_kind(column, both) is not Kind.CATEGORY for column in _columns(records[1:])) else None
