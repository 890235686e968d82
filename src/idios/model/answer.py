"""The answer that a question makes of a released table: under its own labels, with what it cost and promises."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

from idios import display
from idios.codec import from_json, json_field, read_number, refuse, to_json
from idios.core.guarantee import Guarantee
from idios.display import format_cost, format_left, format_number, format_value, to_float
from idios.errors import InvalidInput
from idios.model.released import (
    Distance,
    Interval,
    LateRows,
    Limits,
    check_limits,
    format_cell_limits,
    format_interval,
    make_rows,
)
from idios.model.tidy import list_columns, write_csv

# The values of an answer: exact text as it is stored, and Python's own.


PYTHON_TYPES = {
    "integer": int,
    "number": float,
    "date": datetime.date,
    "timestamp": datetime.datetime,
    "category": str,
    "boolean": bool,
}
"""What ``python_value`` makes of each kind of value."""


def python_value(stored: str | None, kind: str) -> Any:
    """A stored value as Python's own."""
    if stored is None or kind == "category":
        return stored
    if kind == "date":
        return datetime.date.fromisoformat(stored)
    if kind == "timestamp":
        return datetime.datetime.fromisoformat(stored)
    if kind == "boolean":
        return stored == "true"
    if kind == "integer":
        return int(stored)
    # both are the nearest float, and what has no denominator is read faster
    return to_float(Fraction(stored)) if "/" in stored else float(stored)


def infer_kind(values: list[Any]) -> str | None:
    """The kind of a column's values, if any of them is there to tell; among whole numbers one float decides."""
    present = {type(value) for value in values if value is not None}
    for kind in ("number", "integer", "timestamp", "date", "category", "boolean"):
        if PYTHON_TYPES[kind] in present:
            return kind
    return None


def read_value(stored: Any, kind: str | None, column: str) -> Any:
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
        read_number(stored, f"an answer: a value of column {column!r}")
    try:
        return python_value(stored, kind)
    except (ValueError, OverflowError):
        raise InvalidInput(f"an answer: a value of column {column!r} is not of the type {kind}") from None


def plain_number(exact: Fraction | None) -> int | float | None:
    """An exact number as Python's own."""
    if exact is None:
        return None
    # a float ends before 2¹⁰²⁴
    return int(exact) if exact.denominator == 1 or abs(exact) >= 2**1023 else float(exact)


LONGEST_REPLY = 64 * 2**20
"""Bytes of the longest reply that a server sends and a client reads."""


def _read_rows(plain: Any, what: str) -> tuple[Any, ...]:
    # Each row is held against the columns when the answer is made.
    if not isinstance(plain, list):
        raise refuse(what, "a list", plain)
    return tuple(plain)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Released values, what they cost and what they promise.

    ``rows`` holds plain Python values, ``exact_rows`` the same as exact text. ``remaining`` is the ε that is left to
    the analyst: of their own cap, or of the data set's budget where they have none. With concentrated accounting
    ``rho`` is what was charged and ``remaining_rho`` what is left, which ``remaining`` stands for. ``margin`` is the
    95 % half-width of the noise where its scale is public, else None, and ``margin_reason`` says why; with several
    statistics it is a table. ``clipped_rows`` is empty, or has for each row the limits to which the values of a
    statistic were clipped, and ``interval_rows`` likewise the ends of each 95 % interval as exact text. ``question`` is
    what was asked in words, ``sql`` the same as the caller wrote it, ``version`` that of the data; ``time`` and
    ``sequence`` are those of the entry in the ledger that released it. ``types`` is the kind of each column: integer,
    number, date, timestamp, category or boolean; what it does not name is read off the values, and a column of NULL
    alone stays without. ``used`` names the statistics that are no columns, but that columns are computed from.
    ``clipped_values`` names the value of a person that was clipped, by statistic, where it is one; ``clipped_from`` by
    computed column the statistics it is computed from whose values were clipped. ``notes`` are what else is to be said
    of it, a sentence each. ``sandbox`` says that the data behind it was invented.
    """

    id: str
    dataset: str
    columns: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    exact_rows: tuple[dict[str, str | None], ...] = json_field(key="rows", read=_read_rows)
    rows: tuple[dict[str, Any], ...] = json_field(hidden=True, default=())
    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = json_field(optional=True, default=None)
    guarantee: Guarantee
    remaining: Fraction | None
    remaining_rho: Fraction | None = json_field(optional=True, default=None)
    margins: Mapping[str, Fraction | None] = json_field(key="margin")
    margin_reasons: Mapping[str, str] = json_field(key="margin_reason")
    clipped_rows: tuple[Mapping[str, Limits], ...] = json_field(key="clipped", optional=True, default=())
    check_rows: tuple[Mapping[str, Distance], ...] = json_field(key="checks", optional=True, default=())
    interval_rows: tuple[Mapping[str, Interval], ...] = json_field(key="intervals", optional=True, default=())
    used: tuple[str, ...] = json_field(optional=True, default=())
    clipped_values: Mapping[str, str] = json_field(optional=True, default_factory=dict)
    clipped_from: Mapping[str, tuple[str, ...]] = json_field(optional=True, default_factory=dict)
    notes: tuple[str, ...] = json_field(optional=True, default=())
    question: str = json_field(optional=True, default="")
    sql: str = json_field(optional=True, default="")
    version: str = json_field(optional=True, default="")
    time: str | None = json_field(optional=True, default=None)
    sequence: int | None = json_field(optional=True, default=None)
    stored: bool = False
    sandbox: bool = json_field(optional=True, default=False)
    by_column: InitVar[Sequence[Sequence[str | None]] | None] = None
    """What the rows are made of when they are first read, in place of rows: by column, exact text."""

    def __post_init__(self, by_column: Sequence[Sequence[str | None]] | None) -> None:
        if by_column is not None:
            self.__dict__["_by_column"] = by_column
            del self.__dict__["exact_rows"], self.__dict__["rows"]
        elif self.exact_rows and not self.rows:
            object.__setattr__(self, "rows", tuple(self._python_row(row) for row in self.exact_rows))
        kinds = {
            column: self.types.get(column) or infer_kind([row[column] for row in self.rows]) for column in self.columns
        }
        object.__setattr__(self, "types", {column: kind for column, kind in kinds.items() if kind is not None})
        for name, rows, statistics in (
            ("clipped", self.clipped_rows, self.statistics),
            ("checks", self.check_rows, self.statistics),
            ("intervals", self.interval_rows, tuple(self.margins)),
        ):
            if rows and len(rows) != len(self.rows):
                raise refuse(f"an answer: {name}", f"a list of {len(self.rows)}", rows)
            if any(not row.keys() <= set(statistics) for row in rows):
                raise InvalidInput(f"an answer: {name} must name statistics, which are {', '.join(statistics)}")
        for limits in self.clipped_rows:
            check_limits(limits.values())
        sources = {name for names in self.clipped_from.values() for name in names}
        if not sources <= set(self.statistics) or (sources and len(self.clipped_rows) != len(self.rows)):
            raise InvalidInput("an answer: clipped_from must name statistics whose values were clipped")
        if any(low > high for row in self._python_intervals() for low, high in row.values()):
            raise InvalidInput("an answer: an interval must be (low, high) with low ≤ high")

    def _make_exact_rows(self) -> tuple[dict[str, str | None], ...]:
        return make_rows(self.columns, self.__dict__["_by_column"])

    def _make_python_rows(self) -> tuple[dict[str, Any], ...]:
        columns = zip(self.columns, self.__dict__["_by_column"], strict=True)
        python = [[python_value(value, self.types[column]) for value in exact] for column, exact in columns]
        return make_rows(self.columns, python)

    def list_values(self, column: str) -> Sequence[str | None]:
        """What a column has, as exact text."""
        if "exact_rows" in self.__dict__:
            return [row[column] for row in self.exact_rows]
        of_columns: Sequence[Sequence[str | None]] = self.__dict__["_by_column"]
        return of_columns[self.columns.index(column)]

    @property
    def statistics(self) -> tuple[str, ...]:
        """What limits and checks can be of: the columns of statistics, and what others are computed from."""
        return (*self.margins, *self.used)

    def _python_intervals(self) -> tuple[dict[str, tuple[Any, Any]], ...]:
        return tuple(
            {
                column: (read_value(low, kind, column), read_value(high, kind, column))
                for column, (low, high) in row.items()
                for kind in [self.types.get(column)]
            }
            for row in self.interval_rows
        )

    def _python_row(self, exact_row: Any) -> dict[str, Any]:
        if not isinstance(exact_row, Mapping) or set(exact_row) != set(self.columns):
            raise InvalidInput(f"an answer: every row must have the columns {', '.join(self.columns)}")
        return {column: read_value(exact_row[column], self.types.get(column), column) for column in self.columns}

    def __str__(self) -> str:
        """The released values, their cost and what is left, in plain text."""
        if len(self.rows) == 1:
            [intervals] = self._python_intervals() or ({},)
            values = ", ".join(
                f"{format_value(column)} = {format_value(self.rows[0][column])}"
                + (
                    f" ({self.name_interval(column)}: {format_interval(intervals[column])})"
                    if column in intervals
                    else ""
                )
                for column in self.columns
            )
        else:
            values = display.table_text(*self._table())
        note = [display.NO_ROWS] if not self.rows else [self.clipped_note] if self.clipped_columns else []
        if self.check_rows and len(self.rows) == 1:
            note += [f"{format_value(column)}: {distance}" for column, distance in self.check_rows[0].items()]
        note += map(format_value, self.notes)
        return "\n".join([values, *note, f"{self.guarantee.notation}; cost: {self.cost}; remaining: {self.left}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook, with the guarantee in words."""
        margins = [
            f"{column} ± {format_number(margin)}" for column, margin in self.margins.items() if margin is not None
        ]
        pairs = [("question", self.question)] if self.question else []
        pairs += [] if self.rows else [("no rows", display.NO_ROWS)]
        pairs += [("cost", self.cost), ("remaining", self.left)]
        pairs += [(display.name_interval(), ", ".join(margins))] if margins else []
        if len(self.rows) == 1 and self.interval_rows:
            found = self._python_intervals()[0].items()
            names = {column: f"{format_value(column)}, {self.name_interval(column)}" for column, _ in found}
            pairs += [(names[column], format_interval(pair)) for column, pair in found]
        pairs += [("no margin", self.no_margin_note)] if self.no_margin_note else []
        pairs += [("clipped", self.clipped_note)] if self.clipped_columns else []
        if len(self.rows) == 1:
            checked = self.check_rows[0].items() if self.check_rows else ()
            pairs += [(f"how far off {format_value(column)} is", str(distance)) for column, distance in checked]
        pairs += [("note", note) for note in self.notes]
        pairs += [("guarantee", self.guarantee.notation)]
        return (
            display.table_html(*self._table()) + display.pairs_html(pairs) + display.paragraph_html(str(self.guarantee))
        )

    def _table(self) -> tuple[list[str], list[list[Any]], list[int]]:
        """The head and the rows; limits and checks of several rows stand in columns of their own, of one in notes."""
        right = [i for i, column in enumerate(self.columns) if self.types.get(column) in ("integer", "number")]
        head: list[str] = list(self.columns)
        rows = [[row[column] for column in self.columns] for row in self.rows]
        if len(self.rows) > 1:
            found = self._python_intervals()
            for column in self.interval_columns:
                head.append(f"{column} ({self.name_interval(column)})")
                for row, intervals in zip(rows, found, strict=True):
                    row.append(format_interval(intervals.get(column)))
            for column in self.clipped_columns:
                head.append(f"{column} clipped to")
                for row, limits in zip(rows, self.clipped_rows, strict=True):
                    row.append(format_cell_limits(limits.get(column)))
            for column in self.checked_columns:
                head.append(f"{column} is off by")
                for row, checked in zip(rows, self.check_rows, strict=True):
                    row.append(str(checked[column]) if column in checked else "")
        return head, rows, right

    @property
    def cost(self) -> str:
        """What was charged, in words."""
        if self.sandbox:
            return "free, invented data"
        return "stored, free" if self.stored else self.price

    @property
    def price(self) -> str:
        """The price for a caller who has not paid yet, in words."""
        return format_cost(self.epsilon, self.delta, self.rho, pure=not self.guarantee.delta)

    @property
    def left(self) -> str:
        """What is left to the analyst, in words."""
        return format_left(self.remaining, self.remaining_rho)

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
            return plain_number(next(iter(self.margins.values())))
        return {column: plain_number(margin) for column, margin in self.margins.items()}

    @property
    def margin_reason(self) -> str:
        """Why there is no margin; empty if there is."""
        return "; ".join(dict.fromkeys(self.margin_reasons.values()))

    @property
    def no_margin_note(self) -> str:
        """Why some statistics have neither margin, interval nor check, each reason once; empty if all have one."""
        told = self.interval_columns + self.checked_columns
        reasons = {column: reason for column, reason in self.margin_reasons.items() if column not in told}
        return display.name_reasons(reasons) if len(self.margins) > 1 else "; ".join(reasons.values())

    @property
    def intervals(self) -> Any:
        """By statistic, where it lies with 95 %; with several rows a tuple of such mappings."""
        rows = self._python_intervals()
        return rows if len(self.rows) > 1 else rows[0] if rows else {}

    @property
    def interval_columns(self) -> tuple[str, ...]:
        """The statistics that have an interval in any row."""
        return tuple(column for column in self.margins if any(column in row for row in self.interval_rows))

    def name_interval(self, column: str) -> str:
        """What the margin or the interval of a column is of."""
        return display.name_interval(clipped=self.is_clipped(column))

    def is_clipped(self, column: str) -> bool:
        """Whether a column is of clipped values, or computed from them."""
        return column in self.clipped_columns or column in self.clipped_from

    @property
    def clipped(self) -> Any:
        """By statistic, the limits to which values were clipped; with several rows a tuple of such mappings."""
        rows = tuple(
            {column: (plain_number(low), plain_number(high)) for column, (low, high) in limits.items()}
            for limits in self.clipped_rows
        )
        return rows if len(self.rows) > 1 else rows[0] if rows else {}

    @property
    def clipped_columns(self) -> tuple[str, ...]:
        """The statistics whose values were clipped in any row."""
        return tuple(name for name in self.statistics if any(name in limits for limits in self.clipped_rows))

    @property
    def checked_columns(self) -> tuple[str, ...]:
        """The statistics of which it is told how far off they are, in any row."""
        return tuple(name for name in self.statistics if any(name in checked for checked in self.check_rows))

    @property
    def clipped_note(self) -> str:
        """What clipping means, what is computed from it, and in a single row to what; empty if nothing was clipped."""
        return self.describe_clipping(display.format_limits)

    def describe_clipping(self, write: Callable[[Fraction, Fraction], str]) -> str:
        """The same with limits as they are written elsewhere."""
        if not self.clipped_columns:
            return ""
        told = [display.CLIPPED_BIAS]
        for sources in dict.fromkeys(map(tuple, self.clipped_from.values())):
            named = display.shorten_list(name for name, of in self.clipped_from.items() if tuple(of) == sources)
            told.insert(-1, f"{named}: {display.describe_clipped(sources)}.")
        if len(self.rows) == 1:
            limits = {column: write(*pair) for column, pair in self.clipped_rows[0].items()}
            several = len(self.statistics) > 1
            told.insert(0, display.describe_clipping(limits, named=several, of=self.clipped_values))
        return " ".join(told)

    def to_dict(self) -> dict[str, Any]:
        """The answer for JSON; exact numbers are text."""
        plain: dict[str, Any] = to_json(self)
        return plain

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Answer:
        """The answer that ``to_dict`` wrote down."""
        return from_json(cls, content, "an answer")

    def to_json(self) -> str:
        """The answer as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame; intervals and checks in columns after their statistic."""
        return display.to_pandas(*self._frame())

    def to_polars(self) -> Any:
        """The same as a polars data frame."""
        return display.to_polars(*self._frame())

    def to_arrow(self) -> Any:
        """The same as an Arrow table."""
        return display.to_arrow(*self._frame())

    def _frame(self) -> tuple[dict[str, list[Any]], dict[str, str]]:
        columns = list_columns(self)
        values = {c.name: [python_value(value, c.kind) for value in c.values] for c in columns}
        return values, {c.name: c.kind for c in columns if c.kind}

    def to_csv(self, path: str | Path | None = None, *, metadata: bool = False) -> str | None:
        """Write the same table as CSV to a file, or return it as text without one.

        ``metadata`` puts the question, the guarantee and all else that is said of the answer before it, as lines that
        begin with #.
        """
        written = write_csv(self, metadata=metadata)
        if path is None:
            return written
        Path(path).write_text(written, encoding="utf-8", newline="")
        return None


for _late in (
    LateRows("rows", Answer._make_python_rows),
    LateRows("exact_rows", Answer._make_exact_rows),
):
    setattr(Answer, _late.name, _late)


# A question that a server was asked, and its progress until it is answered.


@dataclass(frozen=True)
class QuestionRequest:
    """A question as it came to a server, its numbers as text.

    ``then_check`` is the ε of a check of the answer that is stored; without it the question itself is asked.
    """

    sql: str
    epsilon: str
    split: Mapping[str, str] | None = None
    check: str | None = None
    then_check: str | None = None


class QuestionState(StrEnum):
    """The state of a question that outlasted its request."""

    RUNNING = "running"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class QuestionProgress:
    """The progress of a question that outlasted its request; step and share only where they may be told.

    ``answer`` is there once it is answered, ``error`` once it failed.
    """

    id: str
    state: QuestionState
    step: str | None = None
    share: float | None = None
    elapsed: float
    href: str = field(init=False)
    answer: Answer | None = None
    error: Mapping[str, Any] | None = None
    question: QuestionRequest | None = json_field(hidden=True, default=None)
    """The question itself, on the server alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "href", f"/v1/questions/{self.id}")
