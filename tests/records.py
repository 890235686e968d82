"""Enumeration of small tables of records: cells, missing values, several columns, records that no filter selects.

A record is None (not selected) or a pair of its cell and its values by column, each possibly missing (None). A table
is a multiset of records, written in ascending order. Nothing here uses the package's formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from random import Random
from typing import TypeAlias

from idios.core.domain import Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.statistics import Statistic
from tests.oracle import FAR
from tests.summaries import summarise

Record: TypeAlias = tuple[int, tuple[int | None, ...]] | None
Records: TypeAlias = tuple[Record, ...]


def _order(record: Record) -> tuple[int, tuple[int, ...]]:
    return (-1, ()) if record is None else (record[0], tuple(-FAR - 9 if v is None else v for v in record[1]))


def table(records: Iterable[Record]) -> Records:
    return tuple(sorted(records, key=_order))


@dataclass(frozen=True)
class Asked:
    """One statistic of a question: of which column, and as a textbook defines it."""

    statistic: Statistic
    textbook: Callable[[Sequence[int]], Fraction | int | None]
    column: int = 0


@dataclass(frozen=True)
class World:
    """What is public: the notion of neighbour, which records there can be, and the domain of the columns."""

    notion: Neighbours
    domain: tuple[int, int] = (0, 3)
    cells: int = 1
    columns: int = 1
    filtered: bool = False
    nullable: bool = False
    bounded: bool = True
    fineness: int = 12
    _balls: dict[Records, list[list[Records]]] = field(default_factory=dict, compare=False, hash=False)

    @property
    def whole(self) -> bool:
        return self.cells == 1 and not self.filtered and not self.nullable

    @property
    def grid(self) -> Domain:
        return Domain(lower=self.domain[0], upper=self.domain[1]) if self.bounded else Domain()

    @property
    def kinds(self) -> list[Record]:
        points: list[int | None] = list(range(self.domain[0], self.domain[1] + 1))
        if not self.bounded:
            points += [-FAR, FAR]
        if self.nullable:
            points.append(None)
        values: list[tuple[int | None, ...]] = [()]
        for _ in range(self.columns):
            values = [(*v, p) for v in values for p in points]
        found: list[Record] = [(cell, v) for cell in range(self.cells) for v in values]
        return [*found, None] if self.filtered else found

    def random_table(self, random: Random, size: int) -> Records:
        kinds = [k for k in self.kinds if k is None or not any(v is not None and abs(v) >= FAR for v in k[1])]
        return table(random.choice(kinds) for _ in range(size))

    def neighbours(self, records: Records) -> set[Records]:
        """Every table that differs in one record."""
        rests = {records[:i] + records[i + 1 :] for i in range(len(records))}
        if self.notion is Neighbours.ADD_REMOVE:
            return rests | {table((*records, kind)) for kind in self.kinds}
        return {table((*rest, kind)) for rest in rests for kind in self.kinds} - {records}

    def ball(self, records: Records, reach: int) -> list[list[Records]]:
        """The tables at distance 1, at distance 2, … up to ``reach``."""
        levels = self._balls.get(records, [])
        if len(levels) < reach:
            known, frontier, levels = {records}, {records}, []
            for _ in range(reach):
                frontier = {other for one in frontier for other in self.neighbours(one)} - known
                known |= frontier
                levels.append(list(frontier))
            self._balls[records] = levels
        return levels[:reach]

    def values(self, records: Records, cell: int, column: int) -> tuple[int, ...]:
        """The selected values of one column in one cell."""
        found = (r[1][column] for r in records if r is not None and r[0] == cell)
        return tuple(sorted(v for v in found if v is not None))

    def summary(self, records: Records, cell: int, asked: Asked, distance: int):  # type: ignore[no-untyped-def]
        values = self.values(records, cell, asked.column)
        outside = None if self.whole or self.notion is Neighbours.ADD_REMOVE else len(records) - len(values)
        moves = Moves(self.notion, len(values), outside)
        return summarise(values, asked.statistic, self.grid, moves, distance)

    def answer(self, records: Records, cell: int, asked: Asked) -> int | float | None:
        """The statistic on the answer's grid; None where it is undefined."""
        value = _exact_answer(asked, self.values(records, cell, asked.column))
        return None if value is None else asked.statistic.place(value, self.fineness)

    def change(self, before: Records, after: Records, cell: int, asked: Asked) -> int | float:
        """|Δ|; where it is undefined afterwards, the farthest end of its range."""
        old, new = self.answer(before, cell, asked), self.answer(after, cell, asked)
        assert old is not None
        if new is not None:
            return abs(new - old)
        low, high = (asked.statistic.place(end, self.fineness) for end in asked.statistic.range(self.grid))
        return max(high - old, old - low)


@cache
def _exact_answer(asked: Asked, values: tuple[int, ...]) -> Fraction | int | None:
    return asked.textbook(values)
