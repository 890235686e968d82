"""People with several rows, in plain Python: what a reduction gives, and which tables are neighbours.

A person is a tuple of rows (x, y, g, t), a table a tuple of people. Nothing here knows about grids, envelopes or SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from idios.core import calibration
from idios.plan import planner
from idios.sql.reader import RecentQuestions

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


Anyone = TypeVar("Anyone")


def list_neighbours(table: tuple[Anyone, ...], people: Iterable[Anyone], notion: str) -> Iterator[tuple[Anyone, ...]]:
    """Every table that differs in one person, with all their rows in all tables."""
    for i in range(len(table)):
        rest = (*table[:i], *table[i + 1 :])
        if notion == "add-remove":
            yield rest
        else:
            yield from ((*rest, person) for person in people)
    if notion == "add-remove":
        yield from ((*table, person) for person in people)


def list_tables(people: Iterable[Anyone], notion: str, largest: int = 2) -> list[tuple[Anyone, ...]]:
    """Every table of so many people; under replace there is someone to replace."""
    sizes = range(1 if notion == "replace" else 0, largest + 1)
    return [table for size in sizes for table in combinations_with_replacement(people, size)]


Read = TypeVar("Read")


def pair_neighbours(
    read: Mapping[tuple[Anyone, ...], Read], people: Sequence[Anyone], notion: str
) -> Iterator[tuple[Read, Read]]:
    """What was read of every two tables that are neighbours; the order of people does not matter."""
    known = {tuple(sorted(map(repr, table))): found for table, found in read.items()}
    for table, found in read.items():
        others = {tuple(sorted(map(repr, other))) for other in list_neighbours(table, people, notion)}
        for other in others & known.keys():
            yield found, known[other]


def answer_however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer tables of two people, which are refused where their number is public."""
    for name in ("refuse_hopeless", "refuse_too_few", "refuse_undefined"):
        monkeypatch.setattr(calibration, name, lambda *_: None)


def _known(rows: Sequence[Row]) -> list[int]:
    return sorted(row[0] for row in rows if row[0] is not None)


def _mean(values: Sequence[int]) -> Fraction | None:
    return Fraction(math.floor(Fraction(1000 * sum(values), len(values)) + Fraction(1, 2)), 1000) if values else None


def _median(values: Sequence[int]) -> Fraction | None:
    return Fraction(values[(len(values) - 1) // 2] + values[len(values) // 2], 2) if values else None


def _cap(value: int | None, low: int, high: int) -> int | None:
    return None if value is None else min(max(value, low), high)


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
    "LEAST(SUM(x), 2)": lambda rows: _cap(sum(_known(rows)) if _known(rows) else None, 0, 2),
    "GREATEST(LEAST(SUM(x), 4), 1)": lambda rows: _cap(sum(_known(rows)) if _known(rows) else None, 1, 4),
}


def forget_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan every question anew, so that a planted error meets nothing that was planned before, and leaves nothing."""
    monkeypatch.setattr(RecentQuestions, "prepare", lambda _, *given: planner.prepare(*given))


def reduce_table(table: Table, holds: Callable[[Row], bool]) -> list[dict[str, Any]]:
    """What each person with a row that fulfils a condition comes to."""
    return [reduced for person in table if (reduced := _reduce_person(person, holds))]


@cache
def _reduce_person(person: Person, holds: Callable[[Row], bool]) -> dict[str, Any]:
    rows = [row for row in person if holds(row)]
    return {name: reduced(rows) for name, reduced in REDUCED.items()} if rows else {}
