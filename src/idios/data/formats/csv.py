"""CSV files, read as the declared format and types and nothing else.

Rules:

1. The format is declared, or that of RFC 4180: commas, double quotes that are doubled inside quotes, a header, UTF-8.
   A file called .tsv has tabs instead of commas, and one called .gz is compressed. Nothing about it follows from the
   records (``csv_proposal`` looks at them, for a controller to confirm).
2. The whole file is parsed when it is opened. A file that does not have the format is refused then, as a whole: a
   record with too many or too few fields, a quote that is never closed, bytes that are no text.
3. Nothing is skipped: an empty line is a record of empty fields.
4. Every field is text first, and read as its column's kind (``text_fields``). An empty field, quoted or not, is NULL,
   and so is a declared null string.
"""

from __future__ import annotations

import codecs
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv as arrow_csv

from idios.core.domain import Kind
from idios.data.cancellation import Progress, silent
from idios.data.formats.files import ContentReader
from idios.data.formats.text_fields import THOUSANDS, Notation
from idios.errors import InvalidInput, SourceError

BLOCK = 2**24
"""How many bytes are parsed at a time; no record may be longer."""
MOST_COLUMNS = 10_000
"""A file may have no more: its parser takes some kilobytes for each, so that a short header could take all memory."""


@dataclass(frozen=True)
class CsvFormat:
    """How records are written down. Without an ``escape`` a quote inside quotes is doubled."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    decimal: str = "."
    thousands: str = ""
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
        if given.get("thousands", "") not in ("", *THOUSANDS):
            listed = ", ".join(f'"{mark}"' for mark in THOUSANDS)
            raise InvalidInput(f'csv: thousands must be one of {listed}, or "" for none, got {given["thousands"]!r}')
        if given.get("thousands") == given.get("decimal", "."):
            raise InvalidInput("csv: decimal and thousands must differ from each other")
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


def read_format(path: Path, given: Mapping[str, Any] | None) -> CsvFormat:
    """The declared format of a csv file, which has tabs for commas if it is called .tsv and nothing else is declared.

    >>> read_format(Path("people.tsv.gz"), {"decimal": ","}).delimiter
    '\\t'
    """
    usual = {"delimiter": "\t"} if ".tsv" in [suffix.lower() for suffix in path.suffixes[-2:]] else {}
    return CsvFormat.declare({**usual, **(given or {})})


@dataclass(frozen=True)
class CsvFile:
    """A csv file and its format."""

    path: Path
    format: CsvFormat
    typed: ClassVar[bool] = False

    @property
    def notation(self) -> Notation:
        """How its numbers are written."""
        return Notation(self.format.decimal, self.format.thousands)

    def read_names(self) -> list[str]:
        """The names of its columns: its header, or column1, column2, … where it has none."""
        with ContentReader(self.path) as content:
            names = list(_open(_Text(content, self.format), self.format).schema.names)
        return names if self.format.header else [f"column{i}" for i in range(1, len(names) + 1)]

    def read_records(
        self, names: Sequence[str], wanted: Sequence[str], progress: Progress = silent
    ) -> Iterator[pa.Table]:
        """The text of some columns as field0, field1, …, in pieces; it is well-formed if the last piece is reached.

        A sentinel record is appended to the file. If it is read as it was written, no quote was left open.
        """
        mark = secrets.token_hex(16)
        held: pa.Table | None = None
        with ContentReader(self.path) as content:
            text = _Text(content, self.format, ending=self.format.delimiter.join([mark] * len(names)))
            reader = _open(text, self.format, names, wanted)
            while (piece := _next(reader)) is not None:
                progress("reading the file", content.share)
                if not piece.num_rows:
                    continue  # a block in which no record ends
                if held is not None:
                    yield held
                # by number: DuckDB does not tell names apart that differ in their capitals
                held = pa.Table.from_batches([piece]).rename_columns([f"field{i}" for i in range(len(wanted))])
        if held is None or set(held.slice(held.num_rows - 1).to_pylist()[0].values()) != {mark}:
            raise SourceError("a quote of the csv file is never closed: mend the file, or declare its quote and escape")
        yield held.slice(0, held.num_rows - 1)

    def propose_columns(self) -> list[tuple[str, Kind, int]]:
        """The names of its columns, and the kinds that the fields at its beginning can be read as."""
        from idios.data.formats.csv_proposal import propose_columns  # which reads csv files

        return propose_columns(self.path, self.format)


class _Text:
    """A file as UTF-8 without a byte order mark, with a line of its own at the end."""

    closed = False

    def __init__(self, content: ContentReader, format: CsvFormat, ending: str | None = None) -> None:
        self._content = content
        self._decoder = codecs.getincrementaldecoder(format.encoding)(errors="strict")
        self._encoding = format.encoding
        self._format = format
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
            self._buffer += self._decoded(self._content.read(BLOCK))
        end = wanted - 1 if wanted > 1 and self._buffer[wanted - 1 : wanted] == b"\r" else wanted
        content, self._buffer = self._buffer[:end], self._buffer[end:]
        return content

    def refuse_many_columns(self) -> None:
        """Count the fields of the first record, no further than there may be."""
        while not self._ended and len(self._buffer) <= BLOCK:
            self._buffer += self._decoded(self._content.read(BLOCK))
        place, field = 0, _match_field(self._format)
        for _ in range(MOST_COLUMNS):
            found = field.match(self._buffer, place)
            if found is None or not found[1]:
                return
            place = found.end()
        raise SourceError(f"the csv file has more than {MOST_COLUMNS:,} columns: nothing is read of it")

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
            likely = guess_encoding([raw])
            if codecs.lookup(likely) == codecs.lookup(self._encoding):
                likely = "cp1252"
            raise SourceError(
                f"the csv file is not {self._encoding}: declare its encoding, which seems to be {likely}, as in "
                f'csv = {{ encoding = "{likely}" }}'
            ) from None

    def _final(self, text: str) -> str:
        """The end of the last line, if it has none, and the line of our own."""
        last = text[-1:] or self._last
        end = "" if last in (None, "\r", "\n") else "\n"
        return end if self._ending is None else f"{end}{self._ending}\n"

    def close(self) -> None:
        self.closed = True


def _match_field(format: CsvFormat) -> re.Pattern[bytes]:
    """What matches a field, and as its group the delimiter behind it; a quote counts at the beginning of a field."""
    quote, escape, delimiter = (re.escape(mark or "") for mark in (format.quote, format.escape, format.delimiter))
    escaped = f"|{escape}." if escape else ""
    doubled = f"|{quote}{quote}" if quote and not escape else ""
    quoted = f"(?:{quote}(?:[^{quote}{escape}]++{doubled}{escaped})*+{quote}?+)?+" if quote else ""
    return re.compile(f"(?s){quoted}(?:[^{delimiter}{escape}\r\n]++{escaped})*+({delimiter})?".encode())


def _open(
    text: _Text, format: CsvFormat, names: Sequence[str] | None = None, wanted: Sequence[str] | None = None
) -> arrow_csv.CSVStreamingReader:
    if names is None:
        text.refuse_many_columns()
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


_CONTROLS, _UNKNOWN = re.compile(rb"[\x80-\x9f]"), re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
"""What is a control character in Latin-1, and of these what cp1252 has no character for."""


def guess_encoding(blocks: Iterable[bytes]) -> str:
    """The encoding that text seems to have, given as blocks of bytes; the last character may be cut off.

    Text in UTF-16 without a byte order mark has many zeros, all at even or all at odd places. What is no UTF-8 is
    Latin-1, in which every byte is a character, or its extension cp1252 where there are bytes for which Latin-1 has
    control characters only.

    >>> guess_encoding(["Höhe".encode("latin-1")]), guess_encoding([b"5 ", "€".encode("cp1252")])
    ('latin-1', 'cp1252')
    """
    following = iter(blocks)
    raw = next(following, b"")
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [raw[place::2].count(0) for place in (0, 1)]
    if 10 * sum(zeros) > 2 * len(raw) and min(zeros) * 10 <= max(zeros):
        return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    decoder, is_utf8, controls, unknown = codecs.getincrementaldecoder("utf-8")(), True, False, False
    for block in chain([raw], following):
        controls = controls or _CONTROLS.search(block) is not None
        unknown = unknown or _UNKNOWN.search(block) is not None
        try:
            is_utf8 = is_utf8 and decoder.decode(block) is not None
        except UnicodeDecodeError:
            is_utf8 = False
    return "utf-8" if is_utf8 else "cp1252" if controls and not unknown else "latin-1"
