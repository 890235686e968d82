"""Answers and ledger entries for people: one large number, or a table with charts; amounts and times as they are read.

And where in a question something is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from idios.answer.computed import UNCHECKED
from idios.codec import to_json
from idios.core.exact import text
from idios.core.neighbours import to_plural
from idios.display import describe_clipped, name_interval, to_float
from idios.model import Answer, Distance
from idios.server.console.charts import FARTHEST_DRAWN, Bar, draw_bars
from idios.server.console.formatting import (
    NUMERIC_KINDS,
    format_amount,
    format_limits,
    format_time,
    format_value,
    parse_number,
)

MOST_CHARTS = 4
MOST_CELLS = 10_000
"""How many cells of an answer a page shows; the API sends all of it."""
AMOUNTS = ("epsilon", "delta", "rho", "min_epsilon")
FOLDED = 72
"""How long a field of an entry may be before it is folded."""
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Chart:
    """A drawing and what it shows."""

    title: str
    drawing: Markup


@dataclass(frozen=True)
class AnswerView:
    """What the page shows of an answer."""

    answer: Answer
    single: str | None
    margins: dict[str, str]
    intervals: dict[str, str]
    """The 95 % intervals of a single row."""
    head: list[tuple[str, bool]]
    """The names of the table's columns, and whether each holds numbers."""
    rows: list[list[tuple[str, str, bool]]]
    """Each cell as it is shown, exactly or in words, and whether it is a number."""
    charts: list[Chart]
    checks: dict[str, str]
    """How far off each statistic of a single row is, where that is told."""
    clipped: str
    """What was clipped in a single row, and what clipping means; empty if nothing was."""
    more: int
    """How many rows there are that are not shown."""

    @property
    def checkable(self) -> bool:
        """Whether a check could tell something here, and none does yet."""
        reasons = [r for column, r in self.answer.margin_reasons.items() if column not in self.answer.interval_columns]
        told = any(reason not in UNCHECKED for reason in reasons)
        return bool(self.rows and told and not self.answer.check_rows)

    @property
    def absent(self) -> bool:
        """Whether some cell has no value."""
        return any(row[column] is None for row in self.answer.exact_rows for column in self.answer.margins)


def present_answer(answer: Answer) -> AnswerView:
    """The answer's cells as text (shown, exact, whether it is a number), and a chart of each statistic by group.

    The limits that values were clipped to, and how far off values are, stand in columns of their own, or with a single
    row in a sentence.
    """
    groups = [column for column in answer.columns if column not in answer.margins]
    several = len(answer.exact_rows) > 1
    beside = (answer.interval_columns, answer.clipped_columns, answer.checked_columns)
    most = max(1, MOST_CELLS // (len(answer.columns) + sum(map(len, beside))))
    kinds = {
        column: answer.types.get(column, "") if column in answer.margins else "category" for column in answer.columns
    }
    rows = [
        [(format_value(row[column], kind), _name(row[column]), kind in NUMERIC_KINDS) for column, kind in kinds.items()]
        for row in answer.exact_rows[:most]
    ]
    head = [(column, kind in NUMERIC_KINDS) for column, kind in kinds.items()]
    if several:
        for column in answer.interval_columns:
            head.append((f"{column} ({answer.name_interval(column)})", True))
            for row, found in zip(rows, answer.interval_rows[:most], strict=True):
                ends = found.get(column, ())
                row.append((_join(map(format_value, ends)), _join(ends), True))
    clipped = answer.describe_clipping(lambda *pair: format_limits(to_json(pair)))
    if several:
        for column in answer.clipped_columns:
            head.append((f"{column} clipped to", True))
            for row, limited in zip(rows, answer.clipped_rows[:most], strict=True):
                pair = to_json(limited.get(column, ()))
                mark = " collapsed" if pair and pair[0] == pair[1] else ""
                row.append((format_limits(pair) + mark, f"[{', '.join(pair)}]", True) if pair else ("", "", True))
    checks: dict[str, str] = {}
    if not several:
        checks = {column: str(distance) for row in answer.check_rows for column, distance in row.items()}
    else:
        for column in answer.checked_columns:
            unit = next(checked[column].unit for checked in answer.check_rows if column in checked)
            head.append((f"{column} is off by, in {to_plural(unit)} ({name_interval()})", True))
            for row, checked in zip(rows, answer.check_rows[:most], strict=True):
                known = column in checked
                row.append((format_distance(checked[column]), str(checked[column]), True) if known else ("", "", True))
    single = rows[0][0][0] if len(rows) == len(answer.columns) == 1 else None
    margins = {column: format_value(text(margin)) for column, margin in answer.margins.items() if margin is not None}
    [own] = answer.interval_rows if len(rows) == len(answer.interval_rows) == 1 else ({},)
    intervals = {column: _join(map(format_value, ends)) for column, ends in own.items()}
    charts = []
    # A constant tells no row from another.
    groups = [column for column in groups if len({row[column] for row in answer.exact_rows}) > 1] or groups
    if groups and several:
        for column in [column for column, kind in kinds.items() if kind in NUMERIC_KINDS][:MOST_CHARTS]:
            chart = _chart(answer, groups, column)
            if chart is not None:
                charts.append(chart)
    more = len(answer.exact_rows) - len(rows)
    return AnswerView(answer, single, margins, intervals, head, rows, charts, checks, clipped, more)


def _name(value: str | None) -> str:
    return "NULL" if value is None else value


def _join(ends: Iterable[str]) -> str:
    return " to ".join(ends)


def format_distance(distance: Distance) -> str:
    """Format how many records off a value is, briefly: from how many too low, negative, to how many too high.

    >>> [format_distance(Distance(*ends)) for ends in ((-40, 1200), (50, None), (None, -7), (None, None))]
    ['−40 to +1,200', 'at least +50', 'at most −7', 'unknown']
    """
    low, high = (
        None if end is None else ("+" if end > 0 else "") + format_value(str(end))
        for end in (distance.low, distance.high)
    )
    if low is None:
        return "unknown" if high is None else f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"


def _chart(answer: Answer, groups: list[str], column: str) -> Chart | None:
    bars = [
        Bar(
            " · ".join(_name(row[group]) for group in groups),
            parse_number(row[column]),
            format_value(row[column]),
            _find_interval(answer, number, column),
        )
        for number, row in enumerate(answer.exact_rows)
    ]
    ends = [end for bar in bars if bar.value is not None for end in (bar.value, *(bar.interval or ()))]
    title = f"{column} by {', '.join(groups)}"
    if any(bar.interval for bar in bars):
        title += f"; whiskers: {answer.name_interval(column)}"
    elif answer.is_clipped(column):
        title += f", {describe_clipped()}"
    # beside what hardly is a float, nothing could be told from another
    return Chart(title, draw_bars(title, bars)) if ends and max(map(abs, ends)) < FARTHEST_DRAWN else None


def _find_interval(answer: Answer, number: int, column: str) -> tuple[float, float] | None:
    """The interval of one value as floats; of tables that were stored without any, from the margin."""
    value, margin = parse_number(answer.exact_rows[number][column]), answer.margins[column]
    if value is None:
        return None
    if answer.interval_rows:
        low, high = map(parse_number, answer.interval_rows[number].get(column, (None, None)))
        return None if low is None or high is None else (low, high)
    return None if margin is None else (value - to_float(margin), value + to_float(margin))


def mark_error(sql: str, where: dict[str, Any] | None) -> tuple[str, str, str] | None:
    """The line in which something is wrong: before the place, the word there, after it.

    >>> mark_error("SELECT 1\\nFROM a JOIN b", {"in": "sql", "name": None, "line": 2, "column": 8})
    ('FROM a ', 'JOIN', ' b')
    """
    if where is None or where["line"] is None:
        return None
    lines = sql.split("\n")
    if where["line"] > len(lines):
        return None
    line, at = lines[where["line"] - 1], where["column"] - 1
    word = re.compile(r"\w+|.").match(line, at)
    here = word[0] if word else " "
    return line[:at], here, line[at + len(here) :]


@dataclass(frozen=True)
class EntryField:
    """One field of an entry: how it is shown, and what it is exactly."""

    name: str
    shown: str
    exact: str
    folded: bool = False


def present_entry(content: dict[str, Any]) -> list[EntryField]:
    """Present the fields of an entry, the long ones last.

    >>> [field.shown for field in present_entry({"epsilon": "1/2", "analyst": None, "digest": "ab" * 32})]
    ['0.5', 'none', 'abababababababab…']
    """
    fields = [_entry_field(name, value) for name, value in content.items()]
    return sorted(fields, key=lambda field: field.folded)


def _entry_field(name: str, value: Any) -> EntryField:
    exact = "none" if value is None else str(value)
    if value is None:
        return EntryField(name, exact, exact)
    if name in AMOUNTS:
        return EntryField(name, format_amount(Fraction(exact)), exact)
    if name == "expires":
        return EntryField(name, format_time(exact), exact)
    if _DIGEST.fullmatch(exact):
        return EntryField(name, exact[:16] + "…", exact)
    return EntryField(name, exact, exact, folded=len(exact) > FOLDED)
