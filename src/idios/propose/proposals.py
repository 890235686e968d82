"""A declaration proposed from a sample of the records, for the controller to confirm.

A proposal has read records, and says so. It counts once its controller has declared it: columns are public. What is
proposed of each column, and what never is, say the rules of ``column_proposals``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from idios import display
from idios.core.domain import Kind
from idios.data.backend import describe_source, is_address
from idios.data.formats.csv import CsvFormat, read_format
from idios.data.formats.csv_proposal import propose_format
from idios.data.formats.files import FileKind, find_files, may_be_csv, refuse_mislabelled
from idios.data.formats.reservoir import ROWS
from idios.data.formats.statistics_files import read_value_labels
from idios.data.formats.text_proposals import shows_decimals
from idios.errors import InvalidInput
from idios.propose.column_proposals import REPEATS, SAMPLED, SampledColumn
from idios.propose.samples import SampleQuery, ValueCounts, sample_table, sample_values

HEADER = ('csv={"header": True}', 'csv={"header": False}')
"""How it is said whether a csv file begins with names."""
MOST_SHOWN = 7
"""So many values of a column are shown, the last of them too: that is where those that mean no answer stand."""


class Schema(dict[str, dict[str, Any]]):
    """Columns as they would be declared, by name; ``notes`` says what else there is to know, also of those left out."""

    def __init__(
        self,
        columns: Mapping[str, dict[str, Any]],
        notes: Mapping[str, str],
        sample: SampleQuery,
        csv_format: CsvFormat | None = None,
        advice: Mapping[str, str] | None = None,
        offers: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(columns)
        self.notes = dict(notes)
        self.advice = dict(advice or {})
        """What a configuration says beside a column."""
        self.offers = dict(offers or {})
        """What a controller may declare of columns that are left out."""
        self.sample = sample
        """The records that were read."""
        self.csv_format = csv_format
        """How a csv file is written, which ``TrustedParty.open`` reads it as."""

    @property
    def records(self) -> int:
        """How many these are."""
        return self.sample.records

    def __repr__(self) -> str:
        lines = [display.format_value(f"{name}: {describe_column(table)}") for name, table in self.items()]
        noted = [display.format_value(f"{name}: {note}") for name, note in self.notes.items()]
        return "\n".join([*lines, *(["Notes", *noted] if noted else []), self._origin])

    def _repr_html_(self) -> str:
        """The same for a notebook, as a table: what is proposed of each column, and what else there is to know."""
        proposed = [(name, describe_column(table), self.notes.get(name, "")) for name, table in self.items()]
        left_out = [(name, "left out", note) for name, note in self.notes.items() if name not in self]
        rows = [*proposed, *left_out]
        return display.table_html(("column", "proposed", "note"), rows) + display.paragraph_html(self._origin)

    @property
    def _origin(self) -> str:
        return f"Proposed from {self.sample}, for their controller to confirm: what is declared is public."


def schema(source: Any, *, csv: Mapping[str, Any] | None = None, rows: int = ROWS, public: bool = False) -> Schema:
    """Propose the columns of a frame, a file or a table: types, categories, labels, and values that mean "missing".

    Up to ``rows`` records are looked at, spread over all of them, so the proposal is for the eyes of whoever holds the
    data. Read it, change it (it is a dict), and declare it: that makes it public.

    >>> survey = {"sex": [1, 2, 2, 1] * 50, "income": [1200.5, 900.0, 3100.0, 999.0] * 50}
    >>> proposed = schema(survey)
    >>> proposed["sex"], proposed["income"]
    ({'values': [1, 2]}, {'type': 'number'})

    ``TrustedParty.open(survey, columns=proposed, budget=1)`` declares it as it is.

    How a csv file is written is proposed too; ``csv={"header": True}`` says that its first line has names, where that
    cannot be told, and a ``csv`` that says more is taken as it is. Values that occur fewer than ten times are left out,
    but of a ``public`` source, in which nobody is described.
    """
    if csv is not None and not may_be_csv(source):
        raise InvalidInput("csv says how a csv file is written, and the source is none")
    csv_format, labels = None, dict[str, dict[str, str]]()
    if isinstance(source, str | Path) and not is_address(source):
        found = find_files(source, is_csv=csv is not None)
        refuse_mislabelled(found)
        if found.kind is FileKind.CSV:
            given = read_format(found.path, csv)
            proposed = not csv or set(csv) == {"header"}
            csv_format = propose_format(found.path, given.header if csv else None, HEADER) if proposed else given
        labels = read_value_labels(found)
    described = describe_source(source, csv_format)
    return propose_columns(source, described, csv_format, labels, rows, people=not public, public=public)


def propose_columns(
    source: Any,
    described: Sequence[tuple[str, Kind, int]],
    csv_format: CsvFormat | None,
    labels: Mapping[str, Mapping[str, str]],
    rows: int = ROWS,
    *,
    people: bool = False,
    public: bool = False,
) -> Schema:
    """Propose the columns of a source whose names and types are known; with ``rows`` 0 from these and labels alone.

    ``people`` says whether notes tell which columns may be people. Commands, which know the unit, tell it themselves.
    In what is ``public`` nobody is described, and nothing is left out for being rare.
    """
    names = [name for name, _, _ in described]
    sample = SampleQuery({name: ValueCounts() for name in names})
    if names and rows and is_address(source):
        sample = sample_table(source, described, rows)
    elif names and rows:
        sample = sample_values(source, names, csv_format, rows)
    counted = sample.counted
    marked = csv_format is not None and any(
        shows_decimals(each.values, csv_format.decimal) for each in counted.values()
    )
    columns = [
        SampledColumn(
            name,
            counted[name].kind or kind,
            decimals,
            counted[name],
            labels.get(name, {}),
            csv_format is not None,
            marked,
            public,
        )
        for name, kind, decimals in described
    ]
    proposed = {column.name: column.propose() for column in columns}
    for column in columns:
        if people and column.tells_people_apart():
            proposed[column.name] = proposed[column.name].add(REPEATS.format(name=column.name))
        table = proposed[column.name].table
        if public and sample.records < sample.total and table is not None and isinstance(table.get("values"), list):
            proposed[column.name] = proposed[column.name].add(SAMPLED, SAMPLED)
    return Schema(
        {name: each.table for name, each in proposed.items() if each.table is not None},
        {name: each.note for name, each in proposed.items() if each.note},
        sample,
        csv_format,
        {name: each.advice for name, each in proposed.items() if each.advice},
        {name: each.offered for name, each in proposed.items() if each.offered is not None},
    )


def describe_column(table: Mapping[str, Any] | str) -> str:
    """What is declared of a column in a few words.

    >>> describe_column({"values": {"1": "male", "2": "female"}}), describe_column({"type": "integer", "missing": [99]})
    ('category: 1 male, 2 female', 'integer, missing: 99')
    """
    if isinstance(table, str):  # as its controller may have written it
        return table
    values = table.get("values")
    if values is None:
        kind = str(table["type"]) if "type" in table else f"derived: {table.get('expression')}"
        kind += f" as {table['format']}" if "format" in table else ""
    else:
        listed = [f"{code} {label}" for code, label in values.items()] if isinstance(values, Mapping) else values
        many = len(listed) > MOST_SHOWN
        shown = [*listed[: MOST_SHOWN - 2], "…", f"{listed[-1]} ({len(listed)} values)"] if many else listed
        kind = f"category: {', '.join(map(str, shown))}"
    return kind + (f", missing: {', '.join(map(str, table['missing']))}" if table.get("missing") else "")
