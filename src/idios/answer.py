"""What the party gives back: an answer, a quote, an inspection; values that print themselves.

An answer is stored once, cell by cell in the plan's own order, and shown under the names of whatever question asks
for it again. Numbers are stored exactly, as text.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from idios.core.calibration import Choice, Method
from idios.core.domain import Kind
from idios.core.exact import Extended, text
from idios.core.guarantee import Guarantee
from idios.core.statistics import Mode
from idios.query.plan import Aggregate, Plan

EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FIRST, _LAST = ((moment - EPOCH) // _MICROSECOND for moment in (datetime.datetime.min, datetime.datetime.max))

UNKNOWN_MARGIN = {
    Method.LOCAL: "the noise is fitted to the data, so its scale is for the controller alone",
    Method.INVERSE: "the shape of the noise follows the data, so it is for the controller alone",
    Method.REFUSING: "the shape of the noise follows the data, so it is for the controller alone",
}


def unknown_margin(choice: Choice | None) -> str:
    """Why an answer shows no margin."""
    return "a category has no margin" if choice is None else UNKNOWN_MARGIN.get(choice.method, "")


def kind_of(plan: Plan, aggregate: Aggregate) -> str:
    """The type of an aggregate's answers: integer, number, date, timestamp or category."""
    statistic = aggregate.statistic
    if isinstance(statistic, Mode):
        return "category"
    if aggregate.column is None or statistic.degree == 0:
        return "integer"
    column = plan.dataset.columns[aggregate.column]
    if column.kind is Kind.TIMESTAMP or (column.kind is Kind.DATE and statistic.fractional):
        return "timestamp"
    if column.kind is Kind.DATE:
        return "date"
    step = statistic.answer_step(column.grid, plan.dataset.protection.fineness)
    return "integer" if step.denominator == 1 else "number"


def written(value: Fraction, kind: str, column_kind: Kind | None) -> str:
    """One released number as it is stored: exact, or a date in ISO form."""
    if kind not in ("date", "timestamp"):
        return str(text(value))
    microseconds = value * 86_400_000_000 if column_kind is Kind.DATE else value
    # What noise carries beyond the calendar is put at its end; that is post-processing.
    moment = EPOCH + _MICROSECOND * min(max(int(microseconds // 1), _FIRST), _LAST)
    return moment.date().isoformat() if kind == "date" else moment.isoformat()


def plain(stored: str | None, kind: str) -> Any:
    """A stored value as Python's own."""
    if stored is None or kind == "category":
        return stored
    if kind == "date":
        return datetime.date.fromisoformat(stored)
    if kind == "timestamp":
        return datetime.datetime.fromisoformat(stored)
    return int(stored) if kind == "integer" else float(Fraction(stored))


@dataclass(frozen=True)
class Answer:
    """Released values, what they cost and what they promise.

    ``rows`` holds plain Python values, ``exact_rows`` the same as exact text. ``margin`` is the 95 % half-width of the
    noise where its scale is public, else None, and ``margin_reason`` says why; with several statistics it is a table.
    """

    id: str
    dataset: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    exact_rows: tuple[dict[str, str | None], ...]
    epsilon: Fraction
    delta: Fraction
    guarantee: Guarantee
    remaining: Fraction | None
    margins: Mapping[str, Fraction | None]
    margin_reasons: Mapping[str, str]
    stored: bool = False

    def __str__(self) -> str:
        """The released values, their cost and what is left, in plain text."""
        lines = [", ".join(f"{column} = {_shown(row[column])}" for column in self.columns) for row in self.rows]
        cost = "stored, free" if self.stored else f"ε = {text(self.epsilon)}"
        left = "no limit" if self.remaining is None else f"ε = {text(self.remaining)}"
        return "\n".join([*lines, f"({self.guarantee.notation}; cost: {cost}; remaining: {left})"])

    @property
    def value(self) -> Any:
        """The value of an answer with a single cell."""
        if len(self.rows) != 1 or len(self.margins) != 1:
            raise AttributeError("value is for answers of one cell; this one has several, see rows")
        return self.rows[0][next(iter(self.margins))]

    @property
    def margin(self) -> Any:
        """The margin of the only statistic, or a table of them by column."""
        if len(self.margins) == 1:
            return _number(next(iter(self.margins.values())))
        return {column: _number(margin) for column, margin in self.margins.items()}

    @property
    def margin_reason(self) -> str:
        """Why there is no margin; empty if there is."""
        return "; ".join(dict.fromkeys(self.margin_reasons.values()))

    def to_dict(self) -> dict[str, Any]:
        """The answer for JSON; exact numbers are text."""
        return {
            "id": self.id,
            "dataset": self.dataset,
            "columns": list(self.columns),
            "rows": [dict(row) for row in self.exact_rows],
            "epsilon": text(self.epsilon),
            "delta": text(self.delta),
            "guarantee": {"notation": self.guarantee.notation, "sentence": str(self.guarantee)},
            "remaining": text(self.remaining),
            "margin": {column: text(margin) for column, margin in self.margins.items()},
            "margin_reason": dict(self.margin_reasons),
            "stored": self.stored,
        }

    def to_json(self) -> str:
        """The answer as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)


@dataclass(frozen=True)
class Quote:
    """What a question would cost and promise; no data was touched.

    ``split`` is the ε of each released cell by column; ``remaining_after`` is what would be left.
    """

    dataset: str
    columns: tuple[str, ...]
    cost: Fraction
    delta: Fraction
    split: Mapping[str, Fraction]
    cells: int
    guarantee: Guarantee
    remaining_before: Fraction | None
    remaining_after: Fraction | None
    affordable: bool
    stored: bool
    margins: Mapping[str, Fraction | None]
    margin_reasons: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The quote for JSON; exact numbers are text."""
        return {
            "dataset": self.dataset,
            "columns": list(self.columns),
            "cost": text(self.cost),
            "delta": text(self.delta),
            "split": {column: text(share) for column, share in self.split.items()},
            "cells": self.cells,
            "guarantee": {"notation": self.guarantee.notation, "sentence": str(self.guarantee)},
            "remaining_before": text(self.remaining_before),
            "remaining_after": text(self.remaining_after),
            "affordable": self.affordable,
            "stored": self.stored,
            "margin": {column: text(margin) for column, margin in self.margins.items()},
            "margin_reason": dict(self.margin_reasons),
        }


@dataclass(frozen=True)
class InspectedCell:
    """The truth about one cell, exact and in the column's units: for the controller's eyes.

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
        }


@dataclass(frozen=True)
class Inspection:
    """What lies behind a question; with one cell its fields can be read off the inspection itself."""

    cells: tuple[InspectedCell, ...]

    def __getattr__(self, name: str) -> Any:
        if name in InspectedCell.__dataclass_fields__:
            if len(self.cells) != 1:
                raise AttributeError(
                    f"{name} is for inspections of one cell; this one has {len(self.cells)}, see cells"
                )
            return getattr(self.cells[0], name)
        raise AttributeError(name)

    def to_dict(self) -> dict[str, Any]:
        """The inspection for JSON."""
        return {"cells": [cell.to_dict() for cell in self.cells]}


def _shown(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _number(margin: Fraction | None) -> int | float | None:
    if margin is None:
        return None
    return int(margin) if margin.denominator == 1 else float(margin)
