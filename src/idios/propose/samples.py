"""Records of a source, counted value by value, for a controller who is to declare it.

Nothing here serves a question. What is counted comes from the data, so that it is told to nobody but its controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from idios.core.domain import Categories, Domain, Kind
from idios.data.backend import DataSource, open_source
from idios.data.cancellation import silent
from idios.data.engines.duckdb_dialect import DIALECT
from idios.data.engines.duckdb_sources import attach
from idios.data.engines.sql_backend import SqlBackend
from idios.data.formats.csv import CsvFormat
from idios.data.formats.reservoir import ROWS, Reservoir
from idios.data.formats.text_fields import Notation
from idios.data.formats.text_files import TextFile
from idios.data.formats.text_proposals import propose_kind, strip_fields
from idios.declare.schema import Column, Dataset
from idios.errors import SourceError


@dataclass
class ValueCounts:
    """How often each value of a column occurs, as text."""

    values: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    notation: Notation | None = None
    """How numbers are written in it, if the source holds text and no numbers of its own."""
    kind: Kind | None = None
    """What the text can be read as, if the source says nothing of that."""

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


@dataclass
class SampleQuery:
    """The values of some records by column, and how many records there are."""

    counted: dict[str, ValueCounts]
    records: int = 0
    total: int = 0

    def __str__(self) -> str:
        """
        >>> str(SampleQuery({}, 20_000, 402_108))
        '20,000 of 402,108 records, spread over all of them'
        """
        if self.records < self.total:
            return f"{self.records:,} of {self.total:,} records, spread over all of them"
        return f"{self.records:,} records" if self.records != 1 else "1 record"


def sample_values(
    source: object, names: Sequence[str], csv_format: CsvFormat | None = None, rows: int = ROWS
) -> SampleQuery:
    """Count the values of some columns of a file or a frame; an empty field counts as missing."""
    counted = {name: ValueCounts() for name in names}
    attached = attach({"": DataSource(source, csv_format)})
    try:
        place = attached.places[""]
        if place.text is not None:
            return _sample_text(place.text, names, rows)
        written = ", ".join(f"CAST({DIALECT.identifier(name)} AS VARCHAR)" for name in names)
        # the same records each time, so that a proposal can be made again
        sampled = f"SELECT {written} FROM {place.table} USING SAMPLE reservoir({rows} ROWS) REPEATABLE (1)"
        records = attached.cursors[0].execute(sampled).fetchall()
        ((total,),) = attached.cursors[0].execute(f"SELECT COUNT(*) FROM {place.table}").fetchall()
        for number, name in enumerate(names):
            counted[name].add([record[number] or None for record in records])
        return SampleQuery(counted, len(records), total)
    except duckdb.Error as error:
        raise SourceError("DuckDB cannot read every value of the columns") from error
    finally:
        attached.close()


def sample_table(source: object, described: Sequence[tuple[str, Kind, int]], rows: int = ROWS) -> SampleQuery:
    """Count the values of a table in a database or in Spark, whose columns are known; other records each time."""
    with open_source(source, Dataset("sampled", read_nothing(described), public=True)) as backend:
        if not isinstance(backend, SqlBackend):
            raise SourceError("the source is no table of which a sample can be read")
        records, total = backend.sample_texts(described, rows)
    counted = {name: ValueCounts() for name, _, _ in described}
    for number, each in enumerate(counted.values()):
        each.add([text or None for text in records[f"c{number}"].to_pylist()])
    return SampleQuery(counted, records.num_rows, total)


def read_nothing(described: Sequence[tuple[str, Kind, int]]) -> dict[str, Column]:
    """A table has to declare a column: one of which no value is told apart."""
    name, kind, _ = described[0]
    return {name: Column(name, kind, Categories(("",)) if kind is Kind.CATEGORY else Domain(lower=0, upper=0))}


def _sample_text(file: TextFile, names: Sequence[str], rows: int) -> SampleQuery:
    """All of a file is read, as it is when it is opened; what is sorted would begin unlike the rest."""
    drawn = Reservoir(rows)
    for piece in file.read_records(file.read_names() or list(names), list(names), silent):
        drawn.add(piece)
    records = drawn.read()
    counted = {}
    for number, name in enumerate(names):
        each = counted[name] = ValueCounts(notation=file.notation)
        each.add([text or None for text in records[f"field{number}"].to_pylist()])
        each.kind = None if file.typed else propose_kind(strip_fields(each.values), file.notation)
    return SampleQuery(counted, records.num_rows, drawn.total)
