"""What a csv file seems to be, from its beginning: for a controller to confirm.

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

from idios.backends.csv import LOOKED_AT, CsvFile, CsvFormat, guess_encoding
from idios.backends.files import ContentReader
from idios.backends.text_fields import propose_kind
from idios.core.domain import Kind
from idios.errors import SourceError

DELIMITERS = ",;\t|"
_NUMBER_WITH_COMMA = re.compile(r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?")
NULLS = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", ".", "-", "?")
"""What is proposed as missing where everything else in a column is a number or a date."""


def propose_format(path: Path, header: bool | None = None) -> CsvFormat:
    """The format that the beginning of a file seems to have; ``header`` says whether it begins with names."""
    raw = _read_beginning(path)
    if not raw.strip():
        raise SourceError(f"{path.name!r} is empty: not even names of columns are there")
    format, records = _divide(raw, guess_encoding(raw))
    if header is None:
        header = _has_header(records, format)
    if header is None:
        raise SourceError(
            f"whether the first line of {path.name!r} is a header or a record cannot be told from the file: say "
            "--header or --no-header"
        )
    names = [field.strip(" ") for field in records[0]] if header and records else []
    if not all(names) or len(set(names)) < len(names):
        raise SourceError(
            f"the first line of {path.name!r} has names, of which one is empty or there twice: name every column, or "
            "say --no-header if it is a record"
        )
    rest = records[1:] if header else records
    known = [[field for field in column if field not in NULLS] for column in _columns(rest)]
    commas = [column for column in known if column and all(map(_NUMBER_WITH_COMMA.fullmatch, column))]
    if format.delimiter != "," and any("," in field for column in commas for field in column):
        format = replace(format, decimal=",")
    nulls = {field for column in _columns(rest) for field in _find_nulls(column, format.decimal)}
    return replace(format, header=header, nulls=tuple(sorted(nulls)))


def propose_columns(path: Path, format: CsvFormat) -> list[tuple[str, Kind, int]]:
    """The names of a file's columns, and the kinds that the fields at its beginning can be read as."""
    names = CsvFile(path, format).read_names()
    records = _records(_read_beginning(path), format)
    columns = _columns(records[1:] if format.header else records)
    columns += [[] for _ in range(len(names) - len(columns))]
    return [
        (name, propose_kind(column, format.decimal, format.nulls), 0)
        for name, column in zip(names, columns, strict=False)
    ]


def _read_beginning(path: Path) -> bytes:
    with ContentReader(path) as content:
        return content.read(LOOKED_AT)


def _find_nulls(column: Sequence[str], decimal: str) -> set[str]:
    """The usual words for nothing that keep a column from being one of numbers or dates."""
    found = set(NULLS) & set(column)
    return found if found and propose_kind(column, decimal, NULLS) is not Kind.CATEGORY else set()


def _divide(raw: bytes, encoding: str) -> tuple[CsvFormat, list[list[str]]]:
    """The delimiter that divides every record into the same number of fields, most of them."""
    candidates = []
    for delimiter in DELIMITERS:
        format = CsvFormat(delimiter=delimiter, encoding=encoding)
        records = _records(raw, format)
        widths = {len(record) for record in records}
        candidates.append((len(widths) == 1, max(widths, default=0), format, records))
    even, width, format, records = max(candidates, key=lambda candidate: candidate[:2])
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


def _has_header(records: Sequence[Sequence[str]], format: CsvFormat) -> bool | None:
    """Whether the first record is one of names; None if it cannot be told."""
    if not records:
        return None
    first = [field.strip(" ") for field in records[0]]
    decimal = "," if format.delimiter != "," else "."
    if any(propose_kind([field], decimal) is not Kind.CATEGORY for field in first if field):
        return False
    rest = [propose_kind(column, decimal, NULLS) for column in _columns(records[1:])]
    if not all(first) or len(set(first)) < len(first):
        # names, of which one is missing or repeated, stand above numbers that have one
        return any(field and kind is not Kind.CATEGORY for field, kind in zip(first, rest, strict=False))
    return True if any(kind is not Kind.CATEGORY for kind in rest) else None
