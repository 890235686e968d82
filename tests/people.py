"""People with several rows, in plain Python: what a reduction gives, and which tables are neighbours.

A person is a tuple of rows (x, y, g, t), a table a tuple of people. Nothing here knows about grids, envelopes or SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa

Row = tuple[int | None, int, str | None, int | None]
Person = tuple[Row, ...]
Table = tuple[Person, ...]

NOBODY: Sequence[Row] = ((3, 1, "a", 9), (0, 0, None, None))
"""Rows without a unit, which every table has beside those of people, with values that would show."""


def make_data(table: Table) -> pa.Table:
    """The rows of everybody, each with two columns that tell people apart, and some rows of nobody."""
    owned = [(f"p{i}", i, *row) for i, person in enumerate(table) for row in person]
    half = [("p0", None, *NOBODY[0]), (None, 0, *NOBODY[0])]
    rows = [*owned, *half, *((None, None, *row) for row in NOBODY)]
    rows = rows[1::2] + rows[::2]  # so that no one's rows stand together
    types = {"name": pa.string(), "number": pa.int64(), "x": pa.int64(), "y": pa.int64(), "g": pa.string()}
    columns = {name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(types.items())}
    return pa.table(columns | {"t": pa.array([row[5] for row in rows], pa.int64())})


def list_neighbours(table: Table, people: Iterable[Person], notion: str) -> Iterator[Table]:
    """Every table that differs in one person, with all their rows."""
    for i in range(len(table)):
        rest = (*table[:i], *table[i + 1 :])
        if notion == "add-remove":
            yield rest
        else:
            yield from ((*rest, person) for person in people)
    if notion == "add-remove":
        yield from ((*table, person) for person in people)


def _known(rows: Sequence[Row]) -> list[int]:
    return sorted(row[0] for row in rows if row[0] is not None)


def _mean(values: Sequence[int]) -> Fraction | None:
    return Fraction(math.floor(Fraction(1000 * sum(values), len(values)) + Fraction(1, 2)), 1000) if values else None


def _median(values: Sequence[int]) -> Fraction | None:
    return Fraction(values[(len(values) - 1) // 2] + values[len(values) // 2], 2) if values else None


def _last(rows: Sequence[Row], place: int) -> Any:
    """By t, NULL first; of those that tie the greatest."""
    known = [row for row in rows if row[place] is not None]
    return max(((row[3] is not None, row[3] or 0, row[place]) for row in known), default=(0, 0, None))[2]


REDUCED: dict[str, Callable[[Sequence[Row]], Any]] = {
    "COUNT(*)": len,
    "COUNT(x)": lambda rows: len(_known(rows)),
    "SUM(x)": lambda rows: sum(_known(rows)) if _known(rows) else None,
    "AVG(x)": lambda rows: _mean(_known(rows)),
    "MIN(x)": lambda rows: min(_known(rows), default=None),
    "MAX(x)": lambda rows: max(_known(rows), default=None),
    "MEDIAN(x)": lambda rows: _median(_known(rows)),
    "LAST(x)": lambda rows: _last(rows, 0),
    "BOOL_OR(y)": lambda rows: max(row[1] for row in rows),
    "ALL(y)": lambda rows: min(row[1] for row in rows),
    "LAST(g)": lambda rows: _last(rows, 2),
}


def reduce_table(table: Table, holds: Callable[[Row], bool]) -> list[dict[str, Any]]:
    """What each person with a row that fulfils a condition comes to."""
    return [reduced for person in table if (reduced := _reduce_person(person, holds))]


@cache
def _reduce_person(person: Person, holds: Callable[[Row], bool]) -> dict[str, Any]:
    rows = [row for row in person if holds(row)]
    return {name: reduced(rows) for name, reduced in REDUCED.items()} if rows else {}
