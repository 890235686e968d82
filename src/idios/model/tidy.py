"""An answer as it is published: a tidy table, and what is said beside it.

    region,AVG(income),AVG(income)_low,AVG(income)_high,AVG(income)_interval
    north,41320.5,40990.25,41655.75,"noise, 95 %"

1. A row for each group; after each statistic its interval in columns ``_low`` and ``_high`` where it has any (a file
   says in ``_interval`` what it is of), the limits to which its values were clipped in ``_clipped_low`` and
   ``_clipped_high``, and the interval of its check, in records, in ``_check_low`` and ``_check_high``. What is computed
   from clipped values has ``_clipped``, true or false. What has none has no such columns. Limits and checks of
   statistics that are no columns, but that some are computed from, come last.
2. The metadata says what was asked, in words and as this analyst wrote it, of which version of the data, with which
   guarantee and margins, when, and which entry of the ledger it is. None of it is anybody else's.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from idios.core.exact import text
from idios.display import SAMPLING, format_value, to_float

if TYPE_CHECKING:
    from idios.model.answer import Answer
    from idios.model.released import Distance


_PIECES = re.compile(r"""'[^']*'|"[^"]*"|/\*.*?\*/|--(?P<line>[^\n]*)""", re.DOTALL)
"""Where a comment may stand in SQL, and what only looks like one."""


@dataclass(frozen=True)
class TidyColumn:
    """One column: its kind, and its values as exact text."""

    name: str
    kind: str
    values: tuple[str | None, ...]


def list_columns(answer: Answer, *, named: bool = False) -> list[TidyColumn]:
    """The columns of an answer, each statistic followed by its interval and its check.

    ``named`` says in a column of its own what each interval is of, for readers who have nothing but the table.
    """
    found: list[TidyColumn] = []
    taken = set(answer.columns)

    def add(name: str, kind: str, values: Sequence[str | None]) -> None:
        while name in taken:  # what an analyst called a column comes first
            name += "_"
        taken.add(name)
        found.append(TidyColumn(name, kind, tuple(values)))

    def add_limits(statistic: str) -> None:
        if any(statistic in row for row in answer.clipped_rows):
            told = [row.get(statistic) for row in answer.clipped_rows]
            for place, end in enumerate(("low", "high")):
                values = [None if limits is None else text(limits[place]) for limits in told]
                add(f"{statistic}_clipped_{end}", "number", values)

    def add_check(statistic: str) -> None:
        if any(statistic in row for row in answer.check_rows):
            for end in ("low", "high"):
                values = [_write_end(row.get(statistic), end) for row in answer.check_rows]
                add(f"{statistic}_check_{end}", "integer", values)

    for column in answer.columns:
        kind = answer.types.get(column, "")
        found.append(TidyColumn(column, kind, tuple(answer.list_values(column))))
        if any(column in row for row in answer.interval_rows):
            for place, end in enumerate(("low", "high")):
                add(
                    f"{column}_{end}",
                    kind,
                    [row[column][place] if column in row else None for row in answer.interval_rows],
                )
            if named:
                name = answer.name_interval(column)
                add(f"{column}_interval", "category", [name if column in row else None for row in answer.interval_rows])
        if sources := answer.clipped_from.get(column):
            clipped = [str(any(source in row for source in sources)).lower() for row in answer.clipped_rows]
            add(f"{column}_clipped", "boolean", clipped)
        add_limits(column)
        add_check(column)
    for statistic in answer.used:
        add_limits(statistic)
        add_check(statistic)
    return found


def _write_end(distance: Distance | None, end: str) -> str | None:
    """One end of a check; None where there is none, or no bound on that side."""
    found = None if distance is None else getattr(distance, end)
    return None if found is None else str(found)


def write_csv(answer: Answer, *, metadata: bool) -> str:
    """The table as CSV (RFC 4180, but with plain line ends); the metadata as lines ``# key: value`` before it."""
    target = io.StringIO()
    if metadata:
        for key, value in list_metadata(answer):
            target.write(f"# {key}: {value}\n")
    columns = list_columns(answer, named=True)
    lines = csv.writer(target, lineterminator="\n")
    lines.writerow([column.name for column in columns])
    lines.writerows(
        zip(*([_write_cell(value, column.kind) for value in column.values] for column in columns), strict=True)
    )
    return target.getvalue()


def list_metadata(answer: Answer) -> list[tuple[str, str]]:
    """What is said beside the table, each on one line; what is not known is left out."""
    margins = {column: f"± {text(margin)}" for column, margin in answer.margins.items() if margin is not None}
    told: list[tuple[str, Any]] = [
        ("dataset", answer.dataset),
        ("version", answer.version),
        ("question", answer.question),
        ("sql", _close_comments(answer.sql)),
        ("guarantee", answer.guarantee),
        ("cost", answer.price),
        *((f"margin of {column} ({answer.name_interval(column)})", margin) for column, margin in margins.items()),
        *((f"interval of {column}", answer.name_interval(column)) for column in answer.interval_columns),
        *((f"no margin of {column}", reason) for column, reason in answer.margin_reasons.items()),
        ("noise", SAMPLING if margins or answer.interval_columns else ""),
        ("clipped", answer.clipped_note),
        *(("note", note) for note in answer.notes),
        ("time", answer.time),
        ("entry", answer.sequence),
        ("id", answer.id),
        ("sandbox", "the data was invented" if answer.sandbox else ""),
    ]
    return [(format_value(key), format_value(value)) for key, value in told if value not in (None, "")]


def _close_comments(sql: str) -> str:
    """A question that means the same on one line: a comment that ends with its line gets an end of its own.

    >>> _close_comments("SELECT COUNT(*) -- all\\nFROM people WHERE region = '--'")
    "SELECT COUNT(*) /* all */\\nFROM people WHERE region = '--'"
    """

    def close(piece: re.Match[str]) -> str:
        return piece[0] if piece["line"] is None else f"/*{piece['line'].replace('*/', '* /').rstrip()} */"

    return _PIECES.sub(close, sql)


def _write_cell(value: str | None, kind: str | None) -> str:
    """A value for other programs: a fraction that no decimal ends is rounded to a float."""
    if value is None:
        return ""
    return repr(to_float(Fraction(value))) if kind == "number" and "/" in value else value
