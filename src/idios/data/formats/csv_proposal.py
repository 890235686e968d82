"""What a csv file seems to be: for a controller to confirm. Its beginning tells what divides it, and whether it has a
header; records from all of it tell how numbers are written, and what stands where there is none.

A proposal reads records. So it is never used by itself: it is shown, confirmed, and written into a configuration, from
where on it is declared. A first line that is a record must not become names: it counts as a header only where the
lines below look different.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from idios.core.domain import Kind
from idios.data.formats.csv import BLOCK, CsvFile, CsvFormat, guess_encoding
from idios.data.formats.files import ContentReader
from idios.data.formats.reservoir import ROWS, Reservoir
from idios.data.formats.text_fields import BLANKS, THOUSANDS, Notation
from idios.data.formats.text_proposals import (
    RARE,
    TextKind,
    find_wrong_name,
    is_no_answer,
    may_be_thousands,
    propose_kind,
    propose_reading,
    shows_decimals,
    strip_fields,
)
from idios.errors import SourceError

DELIMITERS = ",;\t|"
NULLS = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", ".", ":", "-", "?")
"""What programs write where there is nothing, so that it tells of nobody even if it is rare."""
LOOKED_AT = 2**18
"""How many bytes at the beginning tell what divides records, and whether the first one has names."""
_YEAR = re.compile(r"(19|20)[0-9]{2}")
_ANY = [Notation(decimal, mark) for decimal in ".," for mark in ("", *THOUSANDS) if mark != decimal]
"""Every way in which numbers are written."""


def propose_format(
    path: Path, header: bool | None = None, options: tuple[str, str] = ("--header", "--no-header")
) -> CsvFormat:
    """The format that a file seems to have; ``header`` says whether it begins with names.

    ``options`` are how that is said, with names and without.
    """
    raw = _read_beginning(path)
    if not raw.strip():
        raise SourceError(f"{path.name!r} is empty: not even names of columns are there")
    format, records = _divide(raw, _find_encoding(path))
    if header is None:
        header = _has_header(records, format)
    if header is not False and len(records) == 1 and len(raw) < LOOKED_AT:
        raise SourceError(f"{path.name!r} has a first line and no records below it: there is nothing to ask about")
    if header is None:
        raise SourceError(
            f"whether the first line of {path.name!r} is a header or a record cannot be told from the file: say "
            f"{options[0]} or {options[1]}"
        )
    if header and records and (wrong := find_wrong_name([field.strip(BLANKS) for field in records[0]])):
        raise SourceError(
            f"the first line of {path.name!r} has names, and {wrong}: give every column a name of its own, or say "
            f"{options[1]} if the line is a record"
        )
    columns = _sample_columns(CsvFile(path, replace(format, header=header)))
    notation = _propose_notation(columns, format.delimiter)
    nulls = _propose_nulls([propose_reading(column, notation) for column in columns], columns)
    return replace(
        format, header=header, decimal=notation.decimal, thousands=notation.thousands, nulls=tuple(sorted(nulls))
    )


def propose_columns(path: Path, format: CsvFormat) -> list[tuple[str, Kind, int]]:
    """The names of a file's columns, and the kinds that the fields at its beginning can be read as."""
    names = CsvFile(path, format).read_names()
    records = _records(_read_beginning(path), format)
    columns = _columns(records[1:] if format.header else records)
    columns += [[] for _ in range(len(names) - len(columns))]
    notation = Notation(format.decimal, format.thousands)
    return [
        (name, propose_kind(column, notation, format.nulls), 0) for name, column in zip(names, columns, strict=False)
    ]


def _sample_columns(file: CsvFile) -> list[Counter[str]]:
    """How often each field of some records occurs, by column: what marks numbers or stands for none may come late."""
    drawn, names = Reservoir(ROWS), file.read_names()
    for piece in file.read_records(names, names):
        drawn.add(piece)
    return [strip_fields(Counter(filter(None, column.to_pylist()))) for column in drawn.read().columns]


def _find_encoding(path: Path) -> str:
    """The encoding that all bytes of a file fit: a single letter may come late."""
    with ContentReader(path) as content:
        return guess_encoding(iter(lambda: content.read(BLOCK), b""))


def _read_beginning(path: Path) -> bytes:
    with ContentReader(path) as content:
        return content.read(LOOKED_AT)


def _propose_notation(columns: Sequence[Counter[str]], delimiter: str) -> Notation:
    """The marks of numbers: a mark of thousands where it is certain, in some column, and no other speaks against it.

    It is certain where three digits follow each, and a field has two of them, or one and a decimal mark beside, or
    another column has the other mark for its decimals: a file has one decimal mark.
    """
    decimals = [mark for mark in ".," if any(shows_decimals(column, mark) for column in columns)]
    plain = Notation("," if delimiter != "," and any(_has_commas(column) for column in columns) else ".")
    for notation in sorted(_ANY, key=lambda each: each.decimal != plain.decimal):
        decided = decimals == [notation.decimal] and notation.thousands in (".", ",")
        if not any(
            _are_certain(column, notation) or (decided and may_be_thousands(column, notation.thousands))
            for column in columns
        ):
            continue
        if all(_is_number(column, notation) or not _is_number(column, plain) for column in columns):
            return notation
    return plain


def _is_number(column: Counter[str], notation: Notation) -> bool:
    return propose_reading(column, notation).kind in (Kind.INTEGER, Kind.NUMBER)


def _has_commas(column: Counter[str]) -> bool:
    """Whether numbers have a decimal comma."""
    reading = propose_reading(column, Notation(","))
    return reading.kind is Kind.NUMBER and any("," in field for field in column if field not in reading.words)


def _are_certain(column: Counter[str], notation: Notation) -> bool:
    """Whether numbers have marks of thousands, of which one has two, or one and a decimal mark."""
    if not notation.thousands:
        return False
    mark, grouped = re.compile(THOUSANDS[notation.thousands]), re.compile(notation.grouped)
    certain = (
        len(mark.findall(field)) > 1 or notation.decimal in field for field in column if grouped.fullmatch(field)
    )
    return any(certain) and _is_number(column, notation)


def _propose_nulls(readings: Sequence[TextKind], columns: Sequence[Counter[str]]) -> set[str]:
    """The words that stand among numbers and dates and mean "missing".

    Other words than those that programs write are proposed only if they are not rare; and if they do not usually mean
    "no answer", only if no column of text has them as values. Among numbers and dates all read as missing in any case.
    """
    read = list(zip(readings, columns, strict=True))
    values = {word for reading, column in read if reading.kind is Kind.CATEGORY for word in column}
    return {
        word
        for reading, column in read
        for word in reading.words
        if word in NULLS or (column[word] >= RARE and (is_no_answer(word) or word not in values))
    }


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
        raise _describe_uneven(raw, [(format, records) for _, _, format, records in candidates])
    return format, records


def _describe_uneven(raw: bytes, candidates: Sequence[tuple[CsvFormat, list[list[str]]]]) -> SourceError:
    """Which line has another number of fields than most, as the delimiter divides it that divides most lines alike."""
    what_to_do = "mend the file, or declare its csv format in idios.toml"
    likely = [(Counter(map(len, records)).most_common(1)[0], format) for format, records in candidates if records]
    (width, _), format = max(likely, key=lambda each: (each[0][0] > 1, each[0][1]), default=((1, 0), CsvFormat()))
    line, reader = 1, _parse(raw if likely else b"", format)
    for record in reader:
        if record and len(record) != width:
            fields = f"{len(record)} {'field' if len(record) == 1 else 'fields'}"
            return SourceError(
                f"the lines of the csv file have different numbers of fields: divided by {format.delimiter!r}, line "
                f"{line:,} has {fields} and most have {width}. It may be a title, a note or a total, or have a "
                f"delimiter too many or too few: {what_to_do}"
            )
        line = reader.line_num + 1
    return SourceError(
        f"the lines of the csv file have different numbers of fields, whatever divides them: {what_to_do}"
    )


def _parse(raw: bytes, format: CsvFormat) -> Any:
    """The reader of the records at the beginning of a file."""
    text = codecs.getincrementaldecoder(format.encoding)(errors="replace").decode(raw).removeprefix("\ufeff")
    options = {"quotechar": format.quote} if format.quote else {"quoting": csv.QUOTE_NONE}
    lines = io.StringIO(text, newline="")
    return csv.reader(lines, delimiter=format.delimiter, escapechar=format.escape, **options)


def _records(raw: bytes, format: CsvFormat) -> list[list[str]]:
    """The records at the beginning of a file; the last one may be cut off, and is left out then."""
    try:
        records = [record for record in _parse(raw, format) if record]
    except csv.Error:
        return []
    return records[:-1] if len(raw) == LOOKED_AT else records


def _columns(records: Sequence[Sequence[str]]) -> list[list[str]]:
    """The fields of each column that are not empty."""
    width = max(map(len, records), default=0)
    return [[r[i].strip(BLANKS) for r in records if i < len(r) and r[i].strip(BLANKS)] for i in range(width)]


def _has_header(records: Sequence[Sequence[str]], format: CsvFormat) -> bool | None:
    """Whether the first record is one of names; None if it cannot be told."""
    if not records:
        return None
    first = [field.strip(BLANKS) for field in records[0]]
    columns = [Counter(column) for column in _columns(records[1:])]
    columns += [Counter() for _ in first[len(columns) :]]
    written = [
        (field, column)
        for field, column in zip(first, columns, strict=False)
        if field and any(propose_reading({field: 1}, each).kind is not Kind.CATEGORY for each in _ANY)
    ]
    if written:
        years = all(_YEAR.fullmatch(field) for field, _ in written)
        # 2019 above amounts may be a name, and among other years it is one of them
        named = any(field not in column and not all(map(_YEAR.fullmatch, column)) for field, column in written)
        return None if years and named else False
    notation = Notation("," if format.delimiter != "," else ".")
    marked = _propose_notation(columns, format.delimiter)
    rest = [_looks_different(name, column, (notation, marked)) for name, column in zip(first, columns, strict=False)]
    if not all(first) or len(set(first)) < len(first):
        # names, of which one is missing or repeated, stand above numbers that have one
        return any(field and different for field, different in zip(first, rest, strict=False))
    return True if any(rest) else None


def _looks_different(name: str, column: Counter[str], notations: Sequence[Notation]) -> bool:
    """Whether fields are numbers or dates, and a name above them is none of the words that stand among these."""
    if name in column or is_no_answer(name):
        return False
    return any(propose_reading(column, notation).kind is not Kind.CATEGORY for notation in dict.fromkeys(notations))
