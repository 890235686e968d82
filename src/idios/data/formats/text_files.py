"""Files that are read as text under declared columns: one shape for all of them.

Nothing about their columns is inferred when a question is asked. What a kind of file knows of itself (the formats of a
Stata file), or what some of its records look like, is proposed to a controller and nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from idios.core.domain import Kind
from idios.data.cancellation import Progress, silent
from idios.data.formats.csv import MOST_COLUMNS, CsvFile, CsvFormat, read_format
from idios.data.formats.files import ContentReader, FileKind, FileSource
from idios.data.formats.foreign_files import read_facts
from idios.data.formats.reader_process import run_reader
from idios.data.formats.reservoir import ROWS, Reservoir
from idios.data.formats.text_fields import DATED, PLAIN, Notation, hold_fields
from idios.data.formats.text_proposals import find_wrong_name, propose_kinds, propose_reading
from idios.errors import SourceError

# Excel: a sheet whose first row names its columns, read by python-calamine (``foreign_files``).
#
# A cell is text first, as with csv, so that a column is what is declared and not what its cells happen to be: whole
# numbers without a point, other numbers with all their digits, 2024-12-31 or 2024-12-31 23:59:59 for dates, true and
# false. Empty cells and errors such as #N/A are NULL. The area that is used counts: empty rows above the names are
# skipped, one between records is a record of empty fields.


LOOKED_AT = 1000
"""How many rows a proposal reads."""


@dataclass(frozen=True)
class ExcelSheet:
    """A sheet of a workbook, by its name, or its only one."""

    path: Path
    sheet: str = ""
    notation: Notation = DATED
    typed: ClassVar[bool] = False

    def read_names(self) -> list[str]:
        """The cells of the first row."""
        return [column[0].as_py() or "" for column in self._cells.columns]

    def read_records(
        self, names: Sequence[str], wanted: Sequence[str], progress: Progress = silent
    ) -> Iterator[pa.Table]:
        """The text of some columns as field0, field1, …."""
        columns = self._cells.slice(1).select([list(names).index(name) for name in wanted])
        self.__dict__.pop("_cells")  # which takes memory, and is read once
        progress("reading the file", 0.5)
        yield hold_fields(columns.columns)

    def propose_columns(self) -> list[tuple[str, Kind, int]]:
        """The names of its columns, and the kinds that the first cells can be read as."""
        sheet = self._read(LOOKED_AT)
        names, *rows = map(list, zip(*(column.to_pylist() for column in sheet.columns), strict=True))
        if not _are_names(names):
            # a record in the place of names would be declared, and so be public
            raise SourceError(
                f"the first row of {self.path.name!r} must be names, of which none is empty or a number: "
                + _find_names([names, *rows], read_facts(sheet)["row"])
            )
        if wrong := find_wrong_name([name or "" for name in names]):
            raise SourceError(f"in the first row of {self.path.name!r}, {wrong}: give every column a name of its own")
        if not rows:
            raise SourceError(f"{self.path.name!r} has names and no records below them: there is nothing to ask about")
        return propose_kinds({name or "": [row[i] for row in rows] for i, name in enumerate(names)})

    @cached_property
    def _cells(self) -> pa.Table:
        """All cells: to know the first row, the library reads the others too."""
        return self._read()

    def _read(self, most: int | None = None) -> pa.Table:
        return run_reader(FileSource(FileKind.EXCEL, self.path, (self.path,), self.sheet), most=most)


def _find_names(rows: Sequence[Sequence[str | None]], first: int) -> str:
    """What to do where the first row has no names: they may stand below a title."""
    title = 2 * sum(cell is not None for cell in rows[0]) < len(rows[0])
    found = next((place for place, row in enumerate(rows) if title and _are_names(row)), None)
    if found is None:
        wrong = next(place for place, cell in enumerate(rows[0], 1) if not _are_names([cell]))
        return f"write one into cell {wrong}, such as y2019 for a year"
    return f"row {first + found:,} looks like the names; delete what stands above it"


def _are_names(row: Sequence[str | None]) -> bool:
    """Whether every cell of a row is text, and no number or date."""
    return all(cell and propose_reading({cell: 1}).kind is Kind.CATEGORY for cell in row)


# JSON lines: a record is an object in a line of its own, in UTF-8.
#
# Every value is text first, as with csv: numbers as they are written, digit by digit, true and false by their names,
# and what is nested as JSON. null, and a name that a record does not have, are NULL; so a column that no record has is
# one that is missing everywhere. Lines of blanks are no records. A line that is no object makes the file be refused as
# a whole when it is opened.


BLOCK = 2**20
"""How many bytes are parsed at a time."""
LONGEST = 2**24
"""No record may have more bytes."""

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


@dataclass(frozen=True)
class JsonLinesFile:
    """A file of JSON lines."""

    path: Path
    notation: Notation = PLAIN
    typed: ClassVar[bool] = False

    def read_names(self) -> None:
        """Each record has names of its own: to know them all, all would have to be read."""
        return

    def read_records(
        self, names: Sequence[str], wanted: Sequence[str], progress: Progress = silent
    ) -> Iterator[pa.Table]:
        """The text of some columns as field0, field1, …, in pieces, the last of which may be empty."""
        number = 0
        with ContentReader(self.path) as content:
            for lines in _read_lines(content):
                records = []
                for line in lines:
                    number += 1
                    if line.strip():
                        record = self._parse(line, number, wanted)
                        records.append([record[name] for name in wanted])
                progress("reading the file", content.share)
                yield hold_fields(list(zip(*records, strict=True)) if records else [[] for _ in wanted])

    def propose_columns(self) -> list[tuple[str, Kind, int]]:
        """The names that some records have, and the kinds that their values can be read as."""
        drawn = Reservoir(ROWS)
        with ContentReader(self.path) as content:
            for lines in _read_lines(content):
                numbers = range(drawn.total + 1, drawn.total + len(lines) + 1)
                drawn.add(pa.table({"line": pa.array(lines, pa.binary()), "number": pa.array(numbers, pa.int64())}))
        columns: dict[str, list[str | None]] = {}
        for record in drawn.read().to_pylist():
            if record["line"].strip():
                for name, value in self._parse(record["line"], record["number"]).items():
                    columns.setdefault(name, []).append(value)
            if len(columns) > MOST_COLUMNS:
                raise SourceError(f"{self.path.name!r} has records with more than {MOST_COLUMNS:,} names in all")
        if not columns:
            raise SourceError(f"{self.path.name!r} has no records with names in them: there is nothing to ask about")
        return propose_kinds(columns)

    def _parse(self, line: bytes, number: int, wanted: Sequence[str] | None = None) -> dict[str, str | None]:
        """The values of a record as text, by name: of the wanted names, or of all that it has."""
        with suppress(ValueError, RecursionError):  # of Unicode too; their words quote the record
            record = _DECODER.decode(line.decode().removeprefix("\ufeff"))
            if isinstance(record, dict):
                return {name: _write(record.get(name)) for name in (record if wanted is None else wanted)}
        raise SourceError(
            f"line {number:,} of {self.path.name!r} is no JSON object in UTF-8, such as "
            '{"age": 41, "region": "north"}: nothing is read of the file'
        )


def _read_lines(content: ContentReader) -> Iterator[list[bytes]]:
    """The lines of a file, some at a time, at least once."""
    rest = b""
    while raw := content.read(BLOCK):
        *lines, rest = (rest + raw).split(b"\n")
        if len(rest) > LONGEST:
            raise SourceError(f"a line of the file is longer than {LONGEST:,} bytes: nothing is read of it")
        if lines:
            yield lines
    yield [rest]


def _write(value: Any) -> str | None:
    """A value as text; numbers are text already."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


class TextFile(Protocol):
    """A file of records, each field of which is text."""

    @property
    def notation(self) -> Notation:
        """How its numbers are written."""

    @property
    def typed(self) -> bool:
        """Whether it says itself what kinds its columns are; else their fields tell."""

    def read_names(self) -> list[str] | None:
        """The names of its columns; None if each record has names of its own."""

    def read_records(self, names: Sequence[str], wanted: Sequence[str], progress: Progress) -> Iterator[pa.Table]:
        """The text of some columns as field0, field1, …, in pieces, at least one."""

    def propose_columns(self) -> list[tuple[str, Kind, int]]:
        """The names of its columns, and the kinds that they seem to be, with the places of decimals."""


def open_text_file(source: FileSource, csv_format: CsvFormat | None) -> TextFile:
    """The reader of a file that has no types."""
    path = source.path
    if source.kind is FileKind.CSV:
        return CsvFile(path, csv_format or read_format(path, None))
    if source.kind is FileKind.JSON_LINES:
        from idios.data.formats.text_files import JsonLinesFile

        return JsonLinesFile(path)
    if source.kind is FileKind.EXCEL:
        from idios.data.formats.text_files import ExcelSheet

        return ExcelSheet(path, source.table)
    from idios.data.formats.statistics_files import StatisticsFile

    return StatisticsFile(path, source.kind)
