"""An answer for people: one large number, or a table with charts; and where in a question something is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from idios.core.exact import text
from idios.model import Answer
from idios.server.console.charts import Bar, bars
from idios.server.console.wording import figure, number

MOST_CHARTS = 4


@dataclass(frozen=True)
class Chart:
    """A drawing and what it shows."""

    title: str
    drawing: Markup


@dataclass(frozen=True)
class Presented:
    """What the page shows of an answer."""

    answer: Answer
    single: str | None
    margins: dict[str, str]
    rows: list[list[tuple[str, str, bool]]]
    charts: list[Chart]

    @property
    def absent(self) -> bool:
        """Whether some cell has no value."""
        return any(row[column] is None for row in self.answer.exact_rows for column in self.answer.margins)


def presented(answer: Answer) -> Presented:
    """The answer's cells as text (shown, exact, whether it is a number), and a chart of each statistic by group."""
    groups = [column for column in answer.columns if column not in answer.margins]
    rows = [
        [
            (str(row[column]), str(row[column]), False)
            if column in groups
            else (figure(row[column]), "NULL" if row[column] is None else str(row[column]), True)
            for column in answer.columns
        ]
        for row in answer.exact_rows
    ]
    single = figure(answer.exact_rows[0][answer.columns[0]]) if len(rows) == 1 and len(answer.columns) == 1 else None
    margins = {column: figure(text(margin)) for column, margin in answer.margins.items() if margin is not None}
    charts = []
    if groups and len(rows) > 1:
        for column in list(answer.margins)[:MOST_CHARTS]:
            drawn = _chart(answer, groups, column)
            if drawn is not None:
                charts.append(drawn)
    return Presented(answer, single, margins, rows, charts)


def _chart(answer: Answer, groups: list[str], column: str) -> Chart | None:
    margin = answer.margins[column]
    found = [
        Bar(
            " · ".join(str(row[group]) for group in groups),
            number(row[column]),
            figure(row[column]),
            None if margin is None else float(margin),
        )
        for row in answer.exact_rows
    ]
    known = any(bar.value is not None for bar in found)
    title = f"{column} by {', '.join(groups)}"
    return Chart(title, bars(title, found)) if known else None


def marked(sql: str, where: dict[str, Any] | None) -> tuple[str, str, str] | None:
    """The line in which something is wrong: before the place, the word there, after it.

    >>> marked("SELECT 1\\nFROM a JOIN b", {"in": "sql", "name": None, "line": 2, "column": 8})
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
