"""JSON lines: a record is an object in a line of its own, in UTF-8.

Every value is text first, as with csv: numbers as they are written, digit by digit, true and false by their names, and
what is nested as JSON. null, and a name that a record does not have, are NULL; so a column that no record has is one
that is missing everywhere. Lines of blanks are no records. A line that is no object makes the file be refused as a
whole when it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from idios.core.domain import Kind
from idios.data.cancellation import Progress, silent
from idios.data.formats.csv import MOST_COLUMNS
from idios.data.formats.files import ContentReader
from idios.data.formats.reservoir import ROWS, Reservoir
from idios.data.formats.text_fields import PLAIN, Notation, hold_fields
from idios.data.formats.text_proposals import propose_kinds
from idios.errors import SourceError

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
