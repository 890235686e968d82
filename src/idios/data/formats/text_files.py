"""Files that are read as text under declared columns: one shape for all of them.

Nothing about their columns is inferred when a question is asked. What a kind of file knows of itself (the formats of a
Stata file), or what some of its records look like, is proposed to a controller and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from idios.core.domain import Kind
from idios.data.cancellation import Progress
from idios.data.formats.csv import CsvFile, CsvFormat, read_format
from idios.data.formats.files import FileKind, FileSource
from idios.data.formats.text_fields import Notation


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
        from idios.data.formats.json_lines import JsonLinesFile

        return JsonLinesFile(path)
    if source.kind is FileKind.EXCEL:
        from idios.data.formats.excel import ExcelSheet

        return ExcelSheet(path, source.table)
    from idios.data.formats.statistics_files import StatisticsFile

    return StatisticsFile(path, source.kind)
