"""What the party gives back: an answer, a quote; values that print themselves.

An answer is stored once, cell by cell in the plan's own order, and shown under the labels of each question that
asks for it. Numbers are stored exactly, as text.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from idios import frames, tables
from idios.core.calibration import Choice, Method
from idios.core.domain import Kind
from idios.core.exact import text
from idios.core.guarantee import Guarantee
from idios.errors import InvalidInput
from idios.exchange import Fields, guarantee_to_dict, number, read_guarantee
from idios.query.calendar import to_datetime
from idios.query.plan import Aggregate, Plan
from idios.tables import amount, shown

UNKNOWN_MARGIN = {
    Method.LOCAL: "the noise is fitted to the data, so its scale is for the controller alone",
    Method.INVERSE: "the shape of the noise follows the data, so it is for the controller alone",
    Method.REFUSING: "the shape of the noise follows the data, so it is for the controller alone",
    Method.EXPONENTIAL: "a category has no margin",
}


def unknown_margin(choice: Choice) -> str:
    """Why an answer shows no margin."""
    return UNKNOWN_MARGIN.get(choice.method, "")


def kind_of(plan: Plan, aggregate: Aggregate) -> str:
    """The type of an aggregate's answers: integer, number, date, timestamp or category."""
    statistic = aggregate.statistic
    if statistic.selects:
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
    # What noise carries beyond the calendar is put at its end; that is post-processing.
    moment = to_datetime(value, Kind.DATE if column_kind is Kind.DATE else Kind.TIMESTAMP)
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


PYTHON_TYPES = {
    "integer": int,
    "number": float,
    "date": datetime.date,
    "timestamp": datetime.datetime,
    "category": str,
}
"""What ``plain`` makes of each kind of value."""


@dataclass(frozen=True)
class Answer:
    """Released values, what they cost and what they promise.

    ``rows`` holds plain Python values, ``exact_rows`` the same as exact text. ``remaining`` is the ε that is left to
    the analyst: of their own cap, or of the data set's budget where they have none. ``margin`` is the 95 % half-width
    of the noise where its scale is public, else None, and ``margin_reason`` says why; with several statistics it is a
    table.
    ``types`` is the kind of each column: integer, number, date, timestamp or category; what it does not name is read
    off the values, and a column of NULL alone stays without. ``sandbox`` says that the data behind it was invented.
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
    types: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = False

    def __post_init__(self) -> None:
        found = {column: self.types.get(column) or _kind([row[column] for row in self.rows]) for column in self.columns}
        object.__setattr__(self, "types", {column: kind for column, kind in found.items() if kind is not None})

    def __str__(self) -> str:
        """The released values, their cost and what is left, in plain text."""
        if len(self.rows) == 1:
            values = ", ".join(f"{shown(column)} = {shown(self.rows[0][column])}" for column in self.columns)
        else:
            values = tables.as_text(self.columns, self._cells(), self._numeric())
        return f"{values}\n{self.guarantee.notation}; cost: {self._cost()}; remaining: {self._left()}"

    def _repr_html_(self) -> str:
        """The same for a notebook, with the guarantee in words."""
        margins = [f"{column} ± {text(margin)}" for column, margin in self.margins.items() if margin is not None]
        pairs = [("cost", self._cost()), ("remaining", self._left())]
        pairs += [("95 % of the noise", ", ".join(margins))] if margins else []
        pairs += [("no margin", self.margin_reason)] if self.margin_reason else []
        pairs += [("guarantee", self.guarantee.notation)]
        table = tables.as_html(self.columns, self._cells(), self._numeric())
        return table + tables.facts(pairs) + tables.paragraph(str(self.guarantee))

    def _cells(self) -> list[list[Any]]:
        return [[row[column] for column in self.columns] for row in self.rows]

    def _numeric(self) -> list[int]:
        return [i for i, column in enumerate(self.columns) if self.types.get(column) in ("integer", "number")]

    def _cost(self) -> str:
        if self.sandbox:
            return "free, invented data"
        if self.stored:
            return "stored, free"
        return f"ε = {text(self.epsilon)}" + (f", δ = {text(self.delta)}" if self.delta else "")

    def _left(self) -> str:
        return "no limit" if self.remaining is None else f"ε = {text(self.remaining)}"

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
            "types": dict(self.types),
            "rows": [dict(row) for row in self.exact_rows],
            "epsilon": text(self.epsilon),
            "delta": text(self.delta),
            "guarantee": guarantee_to_dict(self.guarantee),
            "remaining": text(self.remaining),
            "margin": {column: text(margin) for column, margin in self.margins.items()},
            "margin_reason": dict(self.margin_reasons),
            "stored": self.stored,
            **({"sandbox": True} if self.sandbox else {}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Answer:
        """The answer that ``to_dict`` wrote down."""
        given = Fields(content, "an answer")
        columns, types = given.texts("columns"), given.table("types")
        rows, exact_rows = [], []
        for exact_row in given.items("rows"):
            if not isinstance(exact_row, Mapping) or set(exact_row) != set(columns):
                raise InvalidInput(f"an answer: every row must have the columns {', '.join(columns)}")
            rows.append({column: _read(exact_row[column], types.get(column), column) for column in columns})
            exact_rows.append({column: exact_row[column] for column in columns})
        return cls(
            id=given.text("id"),
            dataset=given.text("dataset"),
            columns=columns,
            rows=tuple(rows),
            exact_rows=tuple(exact_rows),
            epsilon=given.number("epsilon"),
            delta=given.number("delta"),
            guarantee=read_guarantee(given.object("guarantee")),
            remaining=given.number_or_none("remaining"),
            margins=given.numbers("margin"),
            margin_reasons=given.table("margin_reason"),
            stored=given.flag("stored"),
            types=types,
            sandbox="sandbox" in given and given.flag("sandbox"),
        )

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame."""
        return frames.to_pandas(self.columns, self.types, self.rows)

    def to_polars(self) -> Any:
        """The rows as a polars data frame."""
        return frames.to_polars(self.columns, self.types, self.rows)

    def to_json(self) -> str:
        """The answer as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)


@dataclass(frozen=True)
class Quote:
    """What a question would cost and promise; no data was touched.

    ``split`` is the ε of each released cell by column: what the proportions result in that a question gives as
    ``split=``. ``fitted`` counts the released values whose noise is fitted to the data, and ``least_epsilon`` is the
    ε from which on the question is answered. ``remaining_after`` is what would be left. ``shortage`` says
    which budget does not suffice, None if all do.
    """

    dataset: str
    columns: tuple[str, ...]
    cost: Fraction
    delta: Fraction
    split: Mapping[str, Fraction]
    cells: int
    fitted: int
    least_epsilon: Fraction
    guarantee: Guarantee
    remaining_before: Fraction | None
    remaining_after: Fraction | None
    shortage: str | None
    stored: bool
    margins: Mapping[str, Fraction | None]
    margin_reasons: Mapping[str, str]

    @property
    def affordable(self) -> bool:
        """Whether the question could be charged now."""
        return self.shortage is None

    @property
    def least(self) -> str:
        """The ε from which on the question is answered, and what makes it so."""
        values = "1 value has" if self.fitted == 1 else f"{self.fitted:,} values have"
        return f"{text(self.least_epsilon)}" + (f" ({values} noise fitted to the data)" if self.fitted else "")

    def __str__(self) -> str:
        """What it would cost and promise, in plain text."""
        return "\n".join([*(f"{name}: {said}" for name, said in self._facts()), str(self.guarantee)])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return tables.facts(self._facts()) + tables.paragraph(str(self.guarantee))

    def _facts(self) -> list[tuple[str, str]]:
        cost = f"ε = {text(self.cost)}" + (f", δ = {text(self.delta)}" if self.delta else "")
        after = f"ε = {amount(self.remaining_after)}" if self.shortage is None else f"not affordable: {self.shortage}"
        pairs = [
            ("cost", f"{cost} (stored, it would be returned)" if self.stored else cost),
            ("released cells", str(self.cells)),
            ("least ε", self.least),
            ("each cell", ", ".join(f"{shown(column)}: ε = {text(share)}" for column, share in self.split.items())),
            ("remaining before", f"ε = {amount(self.remaining_before)}"),
            ("remaining after", after),
        ]
        for column, margin in self.margins.items():
            said = f"not public: {self.margin_reasons.get(column, '')}" if margin is None else f"± {text(margin)}"
            pairs.append((f"95 % margin of {shown(column)}", said))
        return [*pairs, ("guarantee", self.guarantee.notation)]

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Quote:
        """The quote that ``to_dict`` wrote down."""
        given = Fields(content, "a quote")
        split = given.object("split")
        return cls(
            dataset=given.text("dataset"),
            columns=given.texts("columns"),
            cost=given.number("cost"),
            delta=given.number("delta"),
            split={column: split.number(column) for column in split.content},
            cells=given.whole("cells"),
            fitted=given.whole("fitted"),
            least_epsilon=given.number("least_epsilon"),
            guarantee=read_guarantee(given.object("guarantee")),
            remaining_before=given.number_or_none("remaining_before"),
            remaining_after=given.number_or_none("remaining_after"),
            shortage=given.text_or_none("shortage"),
            stored=given.flag("stored"),
            margins=given.numbers("margin"),
            margin_reasons=given.table("margin_reason"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The quote for JSON; exact numbers are text."""
        return {
            "dataset": self.dataset,
            "columns": list(self.columns),
            "cost": text(self.cost),
            "delta": text(self.delta),
            "split": {column: text(share) for column, share in self.split.items()},
            "cells": self.cells,
            "fitted": self.fitted,
            "least_epsilon": text(self.least_epsilon),
            "guarantee": guarantee_to_dict(self.guarantee),
            "remaining_before": text(self.remaining_before),
            "remaining_after": text(self.remaining_after),
            "affordable": self.affordable,
            "shortage": self.shortage,
            "stored": self.stored,
            "margin": {column: text(margin) for column, margin in self.margins.items()},
            "margin_reason": dict(self.margin_reasons),
        }


def _kind(values: list[Any]) -> str | None:
    """The kind of a column's values, if any of them is there to tell; among whole numbers one float decides."""
    present = {type(value) for value in values if value is not None}
    for kind in ("number", "integer", "timestamp", "date", "category"):
        if PYTHON_TYPES[kind] in present:
            return kind
    return None


def _read(stored: Any, kind: str | None, column: str) -> Any:
    """A stored value as Python's own, from a source that is not trusted."""
    if stored is None:
        return None
    if kind not in PYTHON_TYPES:
        raise InvalidInput(
            f"an answer: types must give column {column!r} one of {', '.join(PYTHON_TYPES)}, got {kind!r}"
        )
    if not isinstance(stored, str):
        raise InvalidInput(f"an answer: the values of column {column!r} must be written as text")
    if kind in ("integer", "number"):
        number(stored, f"an answer: a value of column {column!r}")
    try:
        return plain(stored, kind)
    except (ValueError, OverflowError):
        raise InvalidInput(f"an answer: a value of column {column!r} is not of the type {kind}") from None


def _number(margin: Fraction | None) -> int | float | None:
    if margin is None:
        return None
    return int(margin) if margin.denominator == 1 else float(margin)
