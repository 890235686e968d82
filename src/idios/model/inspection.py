"""What the controller sees behind a question, as values: the truth, the noise, and what each level costs.

None of this may be shown to analysts: it follows from the true values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from idios import display
from idios.core.exact import Extended, text
from idios.display import format_number, format_short, format_value

EYES = "For the controller's eyes: true values and noise."
COMPUTED = "What the question computes from the true values:"


@dataclass(frozen=True)
class InspectedCell:
    """The truth about one cell, exact and in the column's units: for the controller alone.

    Envelopes are those of one, two, … changes: of records, or of people with all the records that they have.
    ``expected_error`` is the mean distance between the true value and an answer (a float, for people to read).
    """

    group: Mapping[str, Any]
    statistic: str
    value: Extended | str | None
    lows: tuple[Extended, ...]
    highs: tuple[Extended, ...]
    local_sensitivity: Extended | None
    noise: Mapping[str, Any]
    level: str
    expected_error: float | None = None
    note: str = ""

    @property
    def true_value(self) -> str:
        """The value for people."""
        return self.value if isinstance(self.value, str) else "NULL" if self.value is None else format_short(self.value)

    @property
    def noise_in_words(self) -> str:
        """The distribution, its scale where it has one, and its ε."""
        scale = self.noise["scale"]
        scaled = f", scale {format_short(scale)}" if isinstance(scale, Fraction) else ""
        return f"{self.noise['distribution']}{scaled}, ε = {format_short(self.noise['epsilon'])}"

    def __repr__(self) -> str:
        return f"<InspectedCell {self.statistic} = {self.true_value}; noise: {self.noise_in_words}>"

    def to_dict(self) -> dict[str, Any]:
        """The cell for JSON; exact numbers are text."""
        return {
            "group": {key: str(value) for key, value in self.group.items()},
            "statistic": self.statistic,
            "value": self.value if isinstance(self.value, str) else text(self.value),
            "lows": [text(low) for low in self.lows],
            "highs": [text(high) for high in self.highs],
            "local_sensitivity": text(self.local_sensitivity),
            "noise": {
                key: value if isinstance(value, str) or value is None else text(value)
                for key, value in self.noise.items()
            },
            "level": self.level,
            "expected_error": self.expected_error,
            "note": self.note,
        }


@dataclass(frozen=True)
class Inspection:
    """What lies behind a question; with one cell its fields can be read off the inspection itself.

    ``rows`` is what the question would compute from the true values, exact; empty if it computes nothing.
    """

    cells: tuple[InspectedCell, ...]
    rows: tuple[Mapping[str, str | None], ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name in InspectedCell.__dataclass_fields__:
            if len(self.cells) != 1:
                raise AttributeError(
                    f"{name} is for inspections of one cell; this one has {len(self.cells)}, see cells"
                )
            return getattr(self.cells[0], name)
        raise AttributeError(name)

    def __str__(self) -> str:
        """The truth in plain text, for the controller's eyes."""
        rows = [COMPUTED, display.table_text(*self._rows())] if self.rows else []
        return "\n".join([EYES, display.table_text(*self._table()), *rows])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        rows = display.paragraph_html(COMPUTED) + display.table_html(*self._rows()) if self.rows else ""
        return display.paragraph_html(EYES) + display.table_html(*self._table()) + rows

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """A line for each cell; envelopes beyond one change are in ``cells``."""
        keys = list(self.cells[0].group) if self.cells else []
        head = [*keys, "statistic", "true value", "within one change", "noise", "expected error", "note"]
        rows = [
            [
                *(format_value(cell.group[key]) for key in keys),
                cell.statistic,
                cell.true_value,
                f"{format_short(cell.lows[1])} … {format_short(cell.highs[1])}" if len(cell.lows) > 1 else "",
                cell.noise_in_words,
                "" if cell.expected_error is None else f"{cell.expected_error:.6g}",
                cell.note,
            ]
            for cell in self.cells
        ]
        return _leave_out_empty(head, rows)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        return list(self.rows[0]), [[format_exact(value) for value in row.values()] for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """The inspection for JSON."""
        rows = {"rows": [dict(row) for row in self.rows]} if self.rows else {}
        return {"cells": [cell.to_dict() for cell in self.cells], **rows}


@dataclass(frozen=True)
class LevelCost:
    """One statistic of one cell at one level: E|answer − truth| of an answer, in the column's units.

    None where there is no such number, and ``note`` says why.
    """

    statistic: str
    group: Mapping[str, Any]
    level: str
    expected_error: float | None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return {
            "statistic": self.statistic,
            "group": {key: str(value) for key, value in self.group.items()},
            "level": self.level,
            "expected_error": self.expected_error,
            "note": self.note,
        }


@dataclass(frozen=True)
class Costs:
    """What protection costs one question: a row for every cell, statistic and level, in this order."""

    rows: tuple[LevelCost, ...]

    def __str__(self) -> str:
        """The expected errors in plain text, for the controller's eyes."""
        return f"{EYES}\n{display.table_text(*self._table())}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return display.paragraph_html(EYES) + display.table_html(*self._table())

    def _table(self) -> tuple[list[str], list[list[str]]]:
        keys = list(self.rows[0].group) if self.rows else []
        head = [*keys, "statistic", "level", "expected error", "note"]
        rows = [
            [
                *(format_value(row.group[key]) for key in keys),
                row.statistic,
                row.level,
                "" if row.expected_error is None else f"{row.expected_error:.6g}",
                row.note,
            ]
            for row in self.rows
        ]
        return _leave_out_empty(head, rows)

    def to_dict(self) -> dict[str, Any]:
        """The costs for JSON."""
        return {"rows": [row.to_dict() for row in self.rows]}


def _leave_out_empty(head: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """A table without the columns that say nothing in any row."""
    kept = [i for i in range(len(head)) if any(row[i] for row in rows)]
    return [head[i] for i in kept], [[row[i] for i in kept] for row in rows]


def format_exact(value: str | None) -> str:
    """A value that is written exactly, for people.

    >>> format_exact("10/3"), format_exact("north"), format_exact(None)
    ('3.33333', 'north', 'NULL')
    """
    if value is None or not re.fullmatch(r"-?[0-9]+/[0-9]+", value):
        return format_value(value)
    return format_number(Fraction(value))
