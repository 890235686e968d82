"""CSV files, read as the declared format and types and nothing else.

Rules:

1. The format is declared, or that of RFC 4180: commas, double quotes that are doubled inside quotes, a header, UTF-8.
   Nothing about it follows from the records (``propose_format`` looks at them, for a controller to confirm).
2. The whole file is parsed when it is opened. A file that does not have the format is refused then, as a whole: a
   record with too many or too few fields, a quote that is never closed, bytes that are no text.
3. Nothing is skipped: an empty line is a record of empty fields.
4. Every field is text first. It is read as its column's kind if, blanks around it aside, it is written as follows;
   otherwise it cannot be read, and ``check`` counts it. An empty field, quoted or not, is NULL, and so is a declared
   null string.

    integer     digits with a sign, or true and false
    number      digits, the decimal mark, an exponent
    decimal     up to 20 digits before and 18 after the decimal mark
    date        2024-12-31
    timestamp   2024-12-31 23:59, 2024-12-31T23:59:59.999999+01:00; UTC where no offset is written
    category    any text, blanks included

A proposal reads records. So it is never used by itself: it is shown, confirmed, and written into a configuration, from
where on it is declared. A first line that is a record must not become names: it counts as a header only where the
lines below look different.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.csv as arrow_csv

from idios.backends.cancellation import Progress, silent
from idios.core.domain import Kind
from idios.errors import InvalidInput, SourceError

BLOCK = 2**24
"""How many bytes are parsed at a time; no record may be longer."""


@dataclass(frozen=True)
class CsvFormat:
    """How records are written down. Without an ``escape`` a quote inside quotes is doubled."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    decimal: str = "."
    header: bool = True
    encoding: str = "utf-8"
    nulls: tuple[str, ...] = ()

    @classmethod
    def declare(cls, given: Mapping[str, Any]) -> CsvFormat:
        """Check what a controller writes; an empty ``quote`` or ``escape`` means that there is none.

        >>> CsvFormat.declare({"delimiter": ";", "decimal": ",", "nulls": ["NA"]}).nulls
        ('NA',)
        """
        unknown = [key for key in given if key not in CSV_KEYS]
        if unknown:
            raise InvalidInput(f"csv: {unknown[0]!r} is not known; known are {', '.join(CSV_KEYS)}")
        for key in ("delimiter", "quote", "escape"):
            mark = given.get(key, ",")
            least = 1 if key == "delimiter" else 0
            if not isinstance(mark, str) or not least <= len(mark) <= 1 or mark not in MARKS:
                raise InvalidInput(
                    f"csv: {key} must be one ASCII character that is no letter, digit or end of line, got {mark!r}"
                )
        if given.get("decimal", ".") not in (".", ","):
            raise InvalidInput(f'csv: decimal must be "." or ",", got {given["decimal"]!r}')
        if not isinstance(given.get("header", True), bool):
            raise InvalidInput(f"csv: header must be true or false, got {given['header']!r}")
        nulls = given.get("nulls", [])
        if isinstance(nulls, str) or not isinstance(nulls, Sequence) or not all(isinstance(n, str) for n in nulls):
            raise InvalidInput(f'csv: nulls must be a list of texts such as ["NA", "."], got {nulls!r}')
        try:
            "a".encode(codecs.lookup(str(given.get("encoding", "utf-8"))).name)
        except (LookupError, TypeError, UnicodeError):
            raise InvalidInput(f"csv: there is no text encoding {given['encoding']!r}") from None
        declared = cls(**{**given, "nulls": tuple(nulls)})
        marks = [mark for mark in (declared.delimiter, declared.quote, declared.escape) if mark]
        if len(set(marks)) != len(marks):
            raise InvalidInput("csv: delimiter, quote and escape must differ from each other")
        return replace(declared, quote=declared.quote or None, escape=declared.escape or None)


MARKS = "\t" + "".join(mark for mark in map(chr, range(32, 127)) if not mark.isalnum())
"""What may stand between and around fields."""
CSV_KEYS = tuple(CsvFormat.__dataclass_fields__)

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
FORMS: dict[Kind, tuple[str, str, dt.DataType]] = {
    Kind.INTEGER: (r"[+-]?0*[0-9]{1,38}", "HUGEINT", dt.Decimal(38, 0)),
    Kind.NUMBER: (r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", "DOUBLE", dt.float64),
    Kind.DECIMAL: (r"[+-]?([0-9]{1,20}(\.[0-9]{0,18})?|\.[0-9]{1,18})", "DECIMAL(38, 18)", dt.Decimal(38, 18)),
    Kind.DATE: (_DATE, "DATE", dt.date),
    Kind.TIMESTAMP: (
        _DATE + r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?",
        "TIMESTAMPTZ",
        dt.Timestamp(timezone="UTC", scale=6),
    ),
}
"""By kind: how a field is written, as what it is cast, and what that gives."""
_MARKED = (Kind.NUMBER, Kind.DECIMAL)
"""The kinds that are written with a decimal mark."""


def parse_field(kind: Kind, field: str, format: CsvFormat) -> tuple[str, dt.DataType]:
    """The SQL that reads one text field as a kind, and the type it gives."""
    if kind is Kind.CATEGORY:
        return field, dt.string
    form, type_name, held = FORMS[kind]
    text = f"trim({field})"
    if kind in _MARKED and format.decimal != ".":
        # a point is no decimal mark then, and must not become one
        text = f"translate({text}, '{format.decimal}.', '.{format.decimal}')"
    value = f"WHEN regexp_full_match({text}, '{form}') THEN TRY_CAST({text} AS {type_name})"
    if kind is Kind.INTEGER:
        # what is too long for the type lies beyond every grid, and reads as its end
        value += f" WHEN regexp_full_match({text}, '[+]?[0-9]+') THEN CAST('{10**38}' AS HUGEINT)"
        value += f" WHEN regexp_full_match({text}, '-[0-9]+') THEN CAST('{-(10**38)}' AS HUGEINT)"
        value += f" WHEN lower({text}) = 'true' THEN 1 WHEN lower({text}) = 'false' THEN 0"
    return f"CASE {value} END", held


def read_names(path: Path, format: CsvFormat) -> list[str]:
    """The names of a file's columns: its header, or column1, column2, … where it has none."""
    with path.open("rb") as file:
        names = list(_open(_Text(file, format), format).schema.names)
    return names if format.header else [f"column{i}" for i in range(1, len(names) + 1)]


def read_records(
    path: Path, format: CsvFormat, names: Sequence[str], wanted: Sequence[str], progress: Progress = silent
) -> Iterator[pa.Table]:
    """The text of some columns as field0, field1, …, in pieces; the file is well-formed if the last piece is reached.

    A sentinel record is appended to the file. If it is read as it was written, no quote was left open.
    """
    mark = secrets.token_hex(16)
    size = max(1, path.stat().st_size)
    held: pa.Table | None = None
    with path.open("rb") as file:
        text = _Text(file, format, ending=format.delimiter.join([mark] * len(names)))
        reader = _open(text, format, names, wanted)
        while (piece := _next(reader)) is not None:
            progress("reading the file", min(1.0, file.tell() / size))
            if not piece.num_rows:
                continue  # a block in which no record ends
            if held is not None:
                yield held
            # by number: DuckDB does not tell names apart that differ in their capitals
            held = pa.Table.from_batches([piece]).rename_columns([f"field{i}" for i in range(len(wanted))])
    if held is None or set(held.slice(held.num_rows - 1).to_pylist()[0].values()) != {mark}:
        raise SourceError("a quote of the csv file is never closed: mend the file, or declare its quote and escape")
    yield held.slice(0, held.num_rows - 1)


class _Text:
    """A file as UTF-8 without a byte order mark, with a line of its own at the end."""

    closed = False

    def __init__(self, file: BinaryIO, format: CsvFormat, ending: str | None = None) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(format.encoding)(errors="strict")
        self._encoding = format.encoding
        self._ending = ending
        self._last: str | None = None
        self._buffer = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes: so many, or as many as there are left.

        If a CR is the last of them, it is kept for the next time: pyarrow drops an LF that begins a block after one, in
        quotes too.
        """
        wanted = BLOCK if size < 0 else size
        while not self._ended and len(self._buffer) <= wanted:
            self._buffer += self._decoded(self._file.read(BLOCK))
        end = wanted - 1 if wanted > 1 and self._buffer[wanted - 1 : wanted] == b"\r" else wanted
        content, self._buffer = self._buffer[:end], self._buffer[end:]
        return content

    def _decoded(self, raw: bytes) -> bytes:
        try:
            text = self._decoder.decode(raw, final=not raw)
            if self._last is None:
                text = text.removeprefix("\ufeff")
            if not raw:
                self._ended = True
                text += self._final(text)
            self._last = text[-1:] or self._last
            return text.encode()
        except UnicodeError:
            raise SourceError(
                f'the csv file is not {self._encoding}: declare its encoding, such as csv = {{ encoding = "latin-1" }}'
            ) from None

    def _final(self, text: str) -> str:
        """The end of the last line, if it has none, and the line of our own."""
        last = text[-1:] or self._last
        end = "" if last in (None, "\r", "\n") else "\n"
        return end if self._ending is None else f"{end}{self._ending}\n"

    def close(self) -> None:
        self.closed = True


def _open(
    text: _Text, format: CsvFormat, names: Sequence[str] | None = None, wanted: Sequence[str] | None = None
) -> arrow_csv.CSVStreamingReader:
    reading = arrow_csv.ReadOptions(
        column_names=names,
        skip_rows_after_names=1 if names is not None and format.header else 0,
        autogenerate_column_names=names is None and not format.header,
        block_size=BLOCK,
        use_threads=False,
    )
    parsing = arrow_csv.ParseOptions(
        delimiter=format.delimiter,
        quote_char=format.quote or False,
        double_quote=format.escape is None,
        escape_char=format.escape or False,
        newlines_in_values=True,
        ignore_empty_lines=False,
    )
    converting = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names or (), pa.string()),
        include_columns=wanted,
        null_values=["", *format.nulls],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    try:
        return arrow_csv.open_csv(pa.PythonFile(text, "r"), reading, parsing, converting)
    except pa.ArrowInvalid as error:
        raise _malformed(error) from None


def _next(reader: arrow_csv.CSVStreamingReader) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except pa.ArrowInvalid as error:
        raise _malformed(error) from None


def _malformed(error: pa.ArrowInvalid) -> SourceError:
    """What is wrong, in numbers; the parser's own words quote the record."""
    fields = re.search(r"(?:Row #([0-9]+): )?Expected ([0-9]+) columns, got ([0-9]+)", str(error))
    if fields:
        where = f"line {int(fields[1]):,}" if fields[1] else "a line"
        return SourceError(
            f"the csv file is malformed: {where} has {fields[3]} fields and not {fields[2]}; nothing is read of it. "
            "Mend it, or declare its delimiter, quote and escape"
        )
    if "Empty CSV file" in str(error):
        return SourceError("the csv file is empty: not even a header is there")
    return SourceError(
        f"the csv file is malformed: a record is longer than {BLOCK:,} bytes, or a quote is never closed; nothing is "
        "read of it. Mend it, or declare its quote and escape"
    )


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
