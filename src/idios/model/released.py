"""Released tables: what was drawn for a question, as it is stored and signed.

A table is stored once, cell by cell in the plan's own order, under names that are nobody's own. Each question that
means the same makes an answer of it (``answer``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

from idios import display
from idios.codec import from_json, json_field, refuse, to_json
from idios.core.exact import text
from idios.core.neighbours import to_plural, write_count
from idios.display import format_value
from idios.errors import InvalidInput

# Rows that are made when they are first read: of many groups they take longer than their values.


Owner = TypeVar("Owner")


class LateRows(Generic[Owner]):
    """A field of a dataclass that is made by a function where nothing else has set it.

    It stands on the class in place of the field's default. What an object holds itself comes before it.
    """

    def __init__(self, name: str, make: Callable[[Owner], tuple[Any, ...]]) -> None:
        self.name, self._make = name, make

    def __get__(self, owner: Owner | None, kind: type[Owner]) -> Any:
        if owner is None:
            return self
        rows = self._make(owner)
        owner.__dict__[self.name] = rows
        return rows


def make_rows(labels: Sequence[str], columns: Sequence[Sequence[Any]]) -> tuple[dict[str, Any], ...]:
    """Rows from what each column has.

    >>> make_rows(("a", "b"), [[1, 2], [3, 4]])
    ({'a': 1, 'b': 3}, {'a': 2, 'b': 4})
    """
    return tuple([dict(zip(labels, row, strict=True)) for row in zip(*columns, strict=True)])


Limits: TypeAlias = tuple[Fraction, Fraction]
"""What values were clipped to, in the column's units."""

Interval: TypeAlias = tuple[str, str]
"""Where a value lies with 95 %, both ends written as the value is."""

# Made once: json.dumps would make one for every table.
_STORED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _write_margins(margins: tuple[Fraction | None, ...]) -> list[str | None]:
    # Always as a fraction, never as a decimal: tables that are signed have it so.
    return [None if margin is None else str(margin) for margin in margins]


def _write_groups(groups: tuple[Mapping[str, str], ...]) -> list[dict[str, str]]:
    return list(map(dict, groups))  # of texts alone, and there may be many


def _write_cells(cells: tuple[tuple[str | None, ...], ...]) -> list[list[str | None]]:
    return list(map(list, cells))


@dataclass(frozen=True)
class TableColumns:
    """The groups and cells of a table by column: by key the group of each row, by statistic the value of each."""

    groups: Mapping[str, Sequence[str]]
    cells: Sequence[Sequence[str | None]]


@dataclass(frozen=True, kw_only=True)
class ReleasedTable:
    """What was drawn for a question, as it is stored and signed.

    ``cells`` holds exact text, or None for NULL: a row for each group, a value for each statistic. ``margins`` are the
    95 % half-widths of the noise of each statistic, where they are public. ``clipped`` is empty, or has for each value
    the limits that were drawn for it and to which the records' values were clipped, None where there are none.
    ``checks`` is empty, or has for each value its noisy signed distance (``core.distance_check``), None where it has
    none. ``intervals`` is empty, or has for each value the ends of its 95 % interval, written as the value is; None
    where it has none. ``noisy_sums`` is empty, or has for each value the noisy sums and the noisy count that it follows
    from (``core.distributions.noisy_moments``), None where it follows from none. ``tallies`` is empty, or has for each
    statistic with drawn limits three counts over all rows: of clipped values and of values beyond a quarter of the
    limits, with noise, and of all values, with noise where their number is secret.
    """

    dataset: str
    version: str
    guarantee: str
    statistics: tuple[str, ...]
    groups: tuple[Mapping[str, str], ...] = json_field(write=_write_groups)
    cells: tuple[tuple[str | None, ...], ...] = json_field(write=_write_cells)
    margins: tuple[Fraction | None, ...] = json_field(write=_write_margins)
    clipped: tuple[tuple[Limits | None, ...], ...] = json_field(optional=True, default=())
    checks: tuple[tuple[int | None, ...], ...] = json_field(optional=True, default=())
    intervals: tuple[tuple[Interval | None, ...], ...] = json_field(optional=True, default=())
    noisy_sums: tuple[tuple[tuple[int, ...] | None, ...], ...] = json_field(optional=True, default=())
    tallies: tuple[tuple[int, int, int] | None, ...] = json_field(optional=True, default=())
    by_column: InitVar[TableColumns | None] = None
    """What groups and cells are made of when they are first read, in place of them."""

    def __post_init__(self, by_column: TableColumns | None) -> None:
        if by_column is not None:
            self.__dict__["_by_column"] = by_column
            del self.__dict__["groups"], self.__dict__["cells"]
            if len(by_column.cells) != len(self.margins) or len(self.statistics) != len(self.margins):
                raise InvalidInput(f"a row of cells must be a list of {len(self.statistics)}")
            if len({len(column) for column in (*by_column.groups.values(), *by_column.cells)}) > 1:
                raise InvalidInput("columns must be of one length")
            return
        if len(self.cells) != len(self.groups):
            raise refuse("cells", f"a list of {len(self.groups)}", self.cells)
        if any(len(row) != len(self.statistics) for row in self.cells):
            raise InvalidInput(f"a row of cells must be a list of {len(self.statistics)}")
        for name in ("margins", *["tallies"] * bool(self.tallies)):
            if len(getattr(self, name)) != len(self.statistics):
                raise refuse(name, f"a list of {len(self.statistics)}", getattr(self, name))
        for name in ("clipped", "checks", "intervals", "noisy_sums"):
            rows = getattr(self, name)
            if rows and len(rows) != len(self.groups):
                raise refuse(name, f"a list of {len(self.groups)}", rows)
            if any(len(row) != len(self.statistics) for row in rows):
                raise InvalidInput(f"a row of {name} must be a list of {len(self.statistics)}")
        for row in self.clipped:
            check_limits(limits for limits in row if limits is not None)

    def to_text(self) -> str:
        """The table as it is stored; this layout never changes. Of many groups and cells, none is copied first."""
        head = {name: getattr(self, name) for name in ("dataset", "version", "guarantee", "statistics")}
        tail: dict[str, Any] = {"margins": _write_margins(self.margins)}
        optional = ("clipped", "checks", "intervals", "noisy_sums", "tallies")
        tail |= {name: to_json(rows) for name in optional if (rows := getattr(self, name))}
        groups, cells = self._write_rows()
        return f'{_STORED.encode(head)[:-1]},"groups":{groups},"cells":{cells},{_STORED.encode(tail)[1:]}'

    def _write_rows(self) -> tuple[str, str]:
        """Groups and cells in JSON."""
        columns: TableColumns | None = self.__dict__.get("_by_column")
        if columns is None or len(columns.groups) != 1 or len(columns.cells) != 1:
            return _STORED.encode(self.groups), _STORED.encode(self.cells)
        ((key, groups),), (cells,) = columns.groups.items(), columns.cells
        return _write_column(f"{{{_STORED.encode(key)}:", groups, "}"), _write_column("[", cells, "]")

    def list_values(self, statistic: int) -> Sequence[str | None]:
        """The values of one statistic, by row."""
        columns: TableColumns | None = self.__dict__.get("_by_column")
        return [row[statistic] for row in self.cells] if columns is None else columns.cells[statistic]

    def name_interval(self, statistic: int) -> str:
        """What the margin or the intervals of one statistic are of."""
        return display.name_interval(clipped=any(limits[statistic] for limits in self.clipped))

    def _make_groups(self) -> tuple[dict[str, str], ...]:
        columns: TableColumns = self.__dict__["_by_column"]
        return make_rows(tuple(columns.groups), list(columns.groups.values()))

    def _make_cells(self) -> tuple[tuple[str | None, ...], ...]:
        columns: TableColumns = self.__dict__["_by_column"]
        return tuple(zip(*columns.cells, strict=True))

    @classmethod
    def from_text(cls, stored: str) -> ReleasedTable:
        """The table that ``to_text`` wrote down."""
        return from_json(cls, json.loads(stored), "a released table")

    def drop_collapsed(self) -> ReleasedTable:
        """Without values that were clipped to one value, which tell nothing: tables of before had them, and no NULL."""
        if not any(limits and limits[0] == limits[1] for row in self.clipped for limits in row):
            return self

        def drop(rows: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
            return tuple(
                tuple(None if pair and pair[0] == pair[1] else each for each, pair in zip(row, limits, strict=True))
                for row, limits in zip(rows, self.clipped, strict=True)
            )

        return replace(self, cells=drop(self.cells), intervals=drop(self.intervals) if self.intervals else ())

    def _caption(self) -> str:
        return self.dataset

    def _table(self) -> tuple[list[str], list[list[Any]]]:
        keys = list(self.groups[0]) if self.groups else []
        rows = [
            [*(group.get(key) for key in keys), *values] for group, values in zip(self.groups, self.cells, strict=True)
        ]
        head = [*keys, *self.statistics]
        for i, statistic in enumerate(self.statistics):
            if any(intervals[i] for intervals in self.intervals):
                head.append(f"{statistic} ({self.name_interval(i)})")
                for row, intervals in zip(rows, self.intervals, strict=True):
                    row.append(format_interval(intervals[i]))
            if any(limits[i] for limits in self.clipped):
                head.append(f"{statistic} clipped to")
                for row, limits in zip(rows, self.clipped, strict=True):
                    row.append(format_cell_limits(limits[i]))
        return head, rows

    def _sentences(self) -> list[str]:
        clipped = any(limits for row in self.clipped for limits in row)
        return [*[display.CLIPPED_BIAS] * clipped, self.guarantee]

    def __str__(self) -> str:
        return "\n".join([self._caption(), display.table_text(*self._table()), *self._sentences()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sentences = "".join(map(display.paragraph_html, self._sentences()))
        return display.paragraph_html(self._caption()) + display.table_html(*self._table()) + sentences


for _late in (LateRows("groups", ReleasedTable._make_groups), LateRows("cells", ReleasedTable._make_cells)):
    setattr(ReleasedTable, _late.name, _late)


def _write_column(begin: str, values: Sequence[str | None], end: str) -> str:
    """A JSON list of rows of one value each, between what begins and what ends a row.

    The values are written as one list, whose separator is all that stands between two of them.

    >>> _write_column('{"region":', ["north", "south"], "}")
    '[{"region":"north"},{"region":"south"}]'
    """
    if not values:
        return "[]"
    written = json.JSONEncoder(ensure_ascii=False, separators=(f"{end},{begin}", ":")).encode(values)
    return f"[{begin}{written[1:-1]}{end}]"


@dataclass(frozen=True, slots=True)
class Distance:
    """How many records an answer is off, with 95 %: from ``low`` to ``high``, negative where it is too low.

    None is no limit: so many records or more. ``percentiles`` are how many percent of all values the answer's rank is
    off, which holds with 95 % by itself, where that is told. ``unit`` is what is counted: a person, or a record that is
    added or removed, so that a replaced one counts twice.

    >>> print(Distance(7, 17), Distance(-4, 6), Distance(-9, -3), Distance(0, 0), sep=" | ")
    about 12 ± 5 records too high (noise, 95 %) | between 4 records too low and 6 too high (noise, 95 %) | \
about 6 ± 3 records too low (noise, 95 %) | not one record off (noise, 95 %)
    >>> print(Distance(7, 17, unit="person"))
    about 12 ± 5 people too high (noise, 95 %)
    >>> print(Distance(50, None), Distance(-4, 6, (Fraction(-2, 5), Fraction(3, 5))), sep=" | ")
    at least 50 records too high (noise, 95 %) | \
between 4 records too low and 6 too high (noise, 95 %), -0.4 to +0.6 percentiles
    >>> print(Distance(7, 17, unit="added or removed record"))
    about 12 ± 5 added or removed records too high (noise, 95 %)
    >>> print(Distance(-1, 6), Distance(-2, 0), Distance(0, 1), Distance(2, 2), Distance(None, -1), sep=" | ")
    between 1 record too low and 6 too high (noise, 95 %) | at most 2 records too low (noise, 95 %) | \
at most 1 record too high (noise, 95 %) | 2 records too high (noise, 95 %) | at least 1 record too low (noise, 95 %)
    """

    low: int | None
    high: int | None
    percentiles: tuple[Fraction, Fraction] | None = json_field(optional=True, default=None)
    unit: str = json_field(optional=True, default="record")

    def __str__(self) -> str:
        if self.percentiles is not None:
            low, high = (f"{'+' if end > 0 else ''}{text(end)}" for end in self.percentiles)
            return f"{self._say()} ({display.name_interval()}), {low} to {high} percentiles"
        return f"{self._say()} ({display.name_interval()})"

    def _say(self) -> str:
        if self.low is None or self.high is None:
            end, at_least = (self.low, self.high is None) if self.low is not None else (self.high, False)
            if end is None:
                return "unknown"
            known = f"{write_count(abs(end), self.unit)} too {'high' if end > 0 else 'low'}"
            return f"at {'least' if at_least == (end > 0) else 'most'} {known}"
        if self.low == self.high == 0:
            return f"not one {self.unit} off"
        if self.low < 0 < self.high:
            return f"between {write_count(-self.low, self.unit)} too low and {self.high:,} too high"
        near, far = sorted((abs(self.low), abs(self.high)))
        half, side = -(-(far - near) // 2), "high" if self.high > 0 else "low"
        if near == 0 or half == 0:
            return f"{'at most ' if near == 0 else ''}{write_count(far, self.unit)} too {side}"
        return f"about {far - half:,} ± {half:,} {to_plural(self.unit)} too {side}"


@dataclass(frozen=True, kw_only=True)
class ReleasedAnswer(ReleasedTable):
    """A table that was released before, with its place in the ledger and what it cost; ``rho`` None is ε²/2."""

    sequence: int
    id: str
    time: str
    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = json_field(optional=True, default=None)

    __repr__ = ReleasedTable.__str__

    def _caption(self) -> str:
        return f"{self.dataset}, {self.time[:19]}, ε = {text(self.epsilon)}"


@dataclass(frozen=True)
class AnswerPage:
    """Answers that were released before, newest first; ``next`` is the number before which the next page begins."""

    answers: tuple[ReleasedAnswer, ...]
    next: int | None


def check_limits(pairs: Iterable[Limits]) -> None:
    """Refuse limits whose ends are exchanged."""
    for low, high in pairs:
        if low > high:
            raise InvalidInput("the limits that values were clipped to must be (low, high) with low ≤ high")


def format_interval(interval: tuple[Any, Any] | None) -> str:
    """The ends of an interval for people; empty where there is none."""
    return "" if interval is None else f"{format_value(interval[0])} to {format_value(interval[1])}"


def format_cell_limits(limits: Limits | None) -> str:
    """The limits of one cell for people, which are marked where they are one value; empty where there are none.

    >>> format_cell_limits((Fraction(0), Fraction(9))), format_cell_limits((Fraction(7), Fraction(7)))
    ('[0, 9]', '[7, 7] collapsed')
    """
    if limits is None:
        return ""
    return display.format_limits(*limits) + (" collapsed" if limits[0] == limits[1] else "")
