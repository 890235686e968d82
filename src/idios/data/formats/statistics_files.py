"""Stata, SPSS and SAS transport files, read by pyreadstat (``foreign_files``).

They hold numbers as floats whatever they mean, so every value is text first, as with csv: a code 1.0 is 1, and can be
declared as a category, an integer or a number. Dates and times, which are numbers with a format, are written as dates.
What the file itself declares as missing is NULL, and so is empty text.

    Stata    days, or milliseconds, since 1960
    SPSS     seconds since 14 October 1582, for dates and for times
    SAS      days, or seconds, since 1960
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from idios.core.domain import Kind
from idios.data.cancellation import Progress, silent
from idios.data.formats.files import FileKind, FileSource, find_files
from idios.data.formats.foreign_files import STATISTICS, read_facts
from idios.data.formats.reader_process import run_reader
from idios.data.formats.text_fields import DATED, Notation, hold_fields

_DATES = {
    FileKind.STATA: r"%-?t?d.*",
    FileKind.SPSS: r"([AEJS]?DATE|QYR|MOYR|WKYR)[0-9.]*",
    FileKind.SAS: r"(DATE|MMDDYY|DDMMYY|YYMMDD|JULIAN|MONYY|WEEKDATE|WORDDATE|E8601DA|B8601DA)[A-Z]?[0-9.]*",
}
_TIMES = {
    FileKind.STATA: r"%-?t[cC].*",
    FileKind.SPSS: r"(DATETIME|YMDHMS)[0-9.]*",
    FileKind.SAS: r"(DATETIME|DATEAMPM|E8601DT|B8601DT)[0-9.]*",
}
_DAYS_TO_1960, _DAYS_TO_1582 = -3653, -141428
_DAY = 86_400


@dataclass(frozen=True)
class StatisticsFile:
    """A file of Stata, SPSS or SAS."""

    path: Path
    kind: FileKind
    notation: Notation = DATED
    typed: ClassVar[bool] = True

    def read_names(self) -> list[str]:
        """The names of its variables."""
        return list(self._read_facts()["names"])

    def read_records(
        self, names: Sequence[str], wanted: Sequence[str], progress: Progress = silent
    ) -> Iterator[pa.Table]:
        """The text of some columns as field0, field1, …."""
        table = run_reader(self._source, wanted)
        progress("reading the file", 0.5)
        formats = read_facts(table)["formats"]
        columns = zip(table.columns, wanted, strict=True)
        yield hold_fields([self._write(column, str(formats.get(name))) for column, name in columns])

    def propose_columns(self) -> list[tuple[str, Kind, int]]:
        """The kinds that the formats of its variables say; no record is read."""
        facts = self._read_facts()
        return [
            (name, Kind.CATEGORY if facts["labels"].get(name) else self._find_kind(name, facts), 0)
            for name in facts["names"]
        ]

    def read_value_labels(self) -> dict[str, dict[str, str]]:
        """By column, the label of each code that has one; no record is read."""
        return {name: dict(labels) for name, labels in self._read_facts()["labels"].items()}

    @property
    def _source(self) -> FileSource:
        return FileSource(self.kind, self.path, (self.path,))

    def _read_facts(self) -> dict[str, Any]:
        return read_facts(run_reader(self._source, records=False))

    def _find_kind(self, name: str, facts: Mapping[str, Any]) -> Kind:
        stored, format = str(facts["stored"].get(name)), str(facts["formats"].get(name))
        if stored == "string":
            return Kind.CATEGORY
        if re.fullmatch(_DATES[self.kind], format):
            return Kind.DATE
        if re.fullmatch(_TIMES[self.kind], format):
            return Kind.TIMESTAMP
        return Kind.INTEGER if stored.startswith("int") or re.fullmatch(r"[FN][0-9]+(\.0)?", format) else Kind.NUMBER

    def _write(self, column: pa.ChunkedArray, format: str) -> pa.Array:
        """A column as text: numbers by their format, and text as it is."""
        if not pa.types.is_floating(column.type):
            return column
        numbers = column.to_numpy()
        seconds = self.kind is FileKind.SPSS
        if re.fullmatch(_DATES[self.kind], format):
            days = np.floor(numbers / _DAY) + _DAYS_TO_1582 if seconds else np.floor(numbers) + _DAYS_TO_1960
            return _write_moments(numbers, days, 10_000_000, pa.int32(), pa.date32())
        if re.fullmatch(_TIMES[self.kind], format):
            scale = 1_000 if self.kind is FileKind.STATA else 1_000_000
            origin = (_DAYS_TO_1582 if seconds else _DAYS_TO_1960) * _DAY * 1_000_000
            microseconds = np.floor(numbers * scale) + origin
            return _write_moments(numbers, microseconds, 10**18, pa.int64(), pa.timestamp("us"))
        return _write_numbers(numbers)


def read_value_labels(source: str | Path | FileSource) -> dict[str, dict[str, str]]:
    """By column, the label of each code of a Stata or SPSS file; other files have none. No record is read."""
    found = source if isinstance(source, FileSource) else find_files(source)
    return StatisticsFile(found.path, found.kind).read_value_labels() if found.kind in STATISTICS else {}


def _write_moments(numbers: Any, moments: Any, most: int, whole: pa.DataType, held: pa.DataType) -> pa.Array:
    """Days or microseconds since 1970 as dates; what lies too far away stays a number, which is no date."""
    near = np.abs(moments) < most  # which NaN is not
    written = pa.array(np.where(near, moments, 0), whole, safe=False).cast(held).cast(pa.string())
    return pc.if_else(pa.array(near), written, _write_numbers(numbers))


def _write_numbers(numbers: Any) -> pa.Array:
    """Whole numbers as digits, others so that they read as the same float; NULL for NaN."""
    finite = np.isfinite(numbers)
    whole = finite & (np.floor(numbers) == numbers)
    near = whole & (np.abs(numbers) < 2.0**63)
    digits = pa.array(np.where(near, numbers, 0).astype(np.int64)).cast(pa.string())
    text = pc.if_else(pa.array(near), digits, pa.array(numbers, from_pandas=True).cast(pa.string()))
    far = np.flatnonzero(whole & ~near)
    if not len(far):
        return text
    listed = text.to_pylist()
    for place in far:
        listed[place] = str(int(numbers[place]))
    return pa.array(listed, pa.string())
