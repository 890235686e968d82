"""Records of a source, counted value by value, for a controller who is to declare it.

Nothing here serves a question. What is counted comes from the data, so that it is told to nobody but its controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from idios.backends.base import Source
from idios.backends.cancellation import silent
from idios.backends.csv import CsvFormat
from idios.backends.duckdb_dialect import DIALECT
from idios.backends.duckdb_sources import attach
from idios.backends.text_fields import Notation
from idios.errors import SourceError

ROWS = 20_000
"""How many records are read: the first of a file without types, others at random."""


@dataclass
class ValueCounts:
    """How often each value of a column occurs, as text."""

    values: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    notation: Notation | None = None
    """How numbers are written in it, if the source holds text and no numbers of its own."""

    def add(self, texts: Sequence[str | None]) -> None:
        """Count some more."""
        self.missing += sum(text is None for text in texts)
        self.values.update(text for text in texts if text is not None)

    @property
    def written(self) -> bool:
        """Whether the source holds this text, and not a number of its own."""
        return self.notation is not None

    @property
    def given(self) -> int:
        """How many values there are."""
        return self.values.total()

    @property
    def records(self) -> int:
        """How many records were read."""
        return self.given + self.missing


def count_values(
    source: object, names: Sequence[str], csv_format: CsvFormat | None = None, rows: int = ROWS
) -> dict[str, ValueCounts]:
    """Count the values of some columns of a file or a frame; an empty field counts as missing."""
    counted = {name: ValueCounts() for name in names}
    attached = attach({"": Source(source, csv_format)})
    try:
        place = attached.places[""]
        if place.text is None:
            written = ", ".join(f"CAST({DIALECT.identifier(name)} AS VARCHAR)" for name in names)
            # the same records each time, so that a proposal can be made again
            sampled = f"SELECT {written} FROM {place.table} USING SAMPLE reservoir({rows} ROWS) REPEATABLE (1)"
            records = attached.cursors[0].execute(sampled).fetchall()
            for number, name in enumerate(names):
                counted[name].add([record[number] or None for record in records])
            return counted
        left = rows
        for piece in place.text.read_records(place.text.read_names() or list(names), list(names), silent):
            for number, name in enumerate(names):
                counted[name].add([text or None for text in piece[f"field{number}"].slice(0, left).to_pylist()])
                counted[name].notation = place.text.notation
            left -= piece.num_rows
            if left <= 0:
                break
    except duckdb.Error as error:
        raise SourceError("DuckDB cannot read every value of the columns") from error
    finally:
        attached.close()
    return counted
