"""Excel: a sheet whose first row names its columns, read by python-calamine (``foreign_files``).

A cell is text first, as with csv, so that a column is what is declared and not what its cells happen to be: whole
numbers without a point, other numbers with all their digits, 2024-12-31 or 2024-12-31 23:59:59 for dates, true and
false. Empty cells and errors such as #N/A are NULL. The area that is used counts: empty rows above the names are
skipped, one between records is a record of empty fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from idios.core.domain import Kind
from idios.data.cancellation import Progress, silent
from idios.data.formats.files import FileKind, FileSource
from idios.data.formats.foreign_files import read_facts
from idios.data.formats.reader_process import run_reader
from idios.data.formats.text_fields import DATED, Notation, hold_fields
from idios.data.formats.text_proposals import find_wrong_name, propose_kinds, propose_reading
from idios.errors import SourceError

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
