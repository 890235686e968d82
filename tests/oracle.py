"""Enumeration: every neighbour of every small table, tried one by one.

Nothing here uses the package's formulas. A table is a multiset of selected values and a number of
records outside the selection; its neighbours are made by changing records, exactly as the
definition says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

FAR = 10**9
"""Stands for any value at all where the domain is unbounded; no small table contains it."""


class Table(NamedTuple):
    """The selected values, sorted, and how many records are not selected."""

    values: tuple[int, ...]
    outside: int = 0


class Space:
    """All tables within reach of some starting tables, and which are neighbours of which."""

    def __init__(
        self,
        starts: Iterable[Table],
        *,
        notion: str,
        selection: bool,
        domain: tuple[int, int],
        bounded: bool,
        reach: int,
    ) -> None:
        self.notion, self.selection, self.domain, self.bounded = notion, selection, domain, bounded
        low, high = domain
        self.points = list(range(low, high + 1))
        if not bounded:
            self.points = [-FAR, *self.points, FAR, FAR + 1]
        self.starts = list(dict.fromkeys(starts))
        self.index: dict[Table, int] = {table: i for i, table in enumerate(self.starts)}
        self.edges: list[list[int]] = []
        self._neighbours: dict[Table, set[Table]] = {}
        frontier = self.starts
        for _ in range(reach):
            following: list[Table] = []
            for table in frontier:
                found = []
                for other in self._change_one(table):
                    if other not in self.index:
                        self.index[other] = len(self.index)
                        following.append(other)
                    found.append(self.index[other])
                self.edges.append(found)
            frontier = following
        self.tables = list(self.index)
        self.reach = reach

    def neighbours(self, table: Table) -> set[Table]:
        """Every table that differs from this one in one record; listed once, as pairs are compared many times."""
        if table not in self._neighbours:
            self._neighbours[table] = self._change_one(table)
        return self._neighbours[table]

    def _change_one(self, table: Table) -> set[Table]:
        values, outside = table
        found = set()
        if self.notion == "add-remove":
            for v in self.points:
                found.add(Table(tuple(sorted((*values, v))), outside))
            for i in range(len(values)):
                found.add(Table(values[:i] + values[i + 1 :], outside))
            return found
        for i in range(len(values)):
            rest = values[:i] + values[i + 1 :]
            for v in self.points:
                found.add(Table(tuple(sorted((*rest, v))), outside))
            if self.selection:
                found.add(Table(rest, outside + 1))
        if self.selection and outside:
            for v in self.points:
                found.add(Table(tuple(sorted((*values, v))), outside - 1))
        found.discard(table)
        return found

    @cached_property
    def _flat(self) -> tuple[np.ndarray, np.ndarray]:
        lengths = [len(found) + 1 for found in self.edges]
        flat = np.concatenate([np.array([i, *found]) for i, found in enumerate(self.edges)])
        return flat, np.concatenate([[0], np.cumsum(lengths)[:-1]])

    def envelopes(
        self,
        statistic: Callable[[Sequence[int]], Fraction | int | None],
        undefined: tuple[float, float],
        place: Callable[[Fraction | float], Fraction | float] = lambda value: value,
    ) -> dict[Table, list[tuple[Fraction | float, Fraction | float]]]:
        """lo_i and hi_i of every starting table for i = 0..reach, each put in its ``place``.

        A table on which the statistic is undefined stands for every value it could take.
        """
        computed = {values: statistic(values) for values in {table.values for table in self.tables}}
        # ranks among all values that occur, so that exact numbers become small integers
        levels = sorted({*undefined, *(value for value in computed.values() if value is not None)})
        rank = {level: i for i, level in enumerate(levels)}
        ends = [
            {values: rank[end if value is None else value] for values, value in computed.items()} for end in undefined
        ]
        low, high = (np.array([end[table.values] for table in self.tables]) for end in ends)
        flat, starts = self._flat
        known = len(self.edges)
        steps = [(low, high)]
        for _ in range(self.reach):
            low, high = low.copy(), high.copy()
            low[:known] = np.minimum.reduceat(steps[-1][0][flat], starts)
            high[:known] = np.maximum.reduceat(steps[-1][1][flat], starts)
            steps.append((low, high))
        placed = [place(self._infinite(level)) for level in levels]
        found = [(low[: len(self.starts)].tolist(), high[: len(self.starts)].tolist()) for low, high in steps]
        return {
            table: [(placed[low[i]], placed[high[i]]) for low, high in found] for i, table in enumerate(self.starts)
        }

    def _infinite(self, value: Fraction | float) -> Fraction | float:
        """A value that the far points reached is infinite in an unbounded domain."""
        if not self.bounded and abs(value) > FAR // 1000:
            return math.inf if value > 0 else -math.inf
        return value


def small_tables(domain: tuple[int, int], sizes: Iterable[int], outsides: Iterable[int]) -> list[Table]:
    """Every multiset of the given sizes over the domain, with every number of records outside."""
    points = range(domain[0], domain[1] + 1)
    return [
        Table(values, outside)
        for size in sizes
        for values in combinations_with_replacement(points, size)
        for outside in outsides
    ]


# The statistics as a textbook defines them, from the whole list.


def kth_smallest(values: Sequence[int], k: int) -> int | None:
    return values[k - 1] if len(values) >= k else None


def kth_largest(values: Sequence[int], k: int) -> int | None:
    return values[-k] if len(values) >= k else None


def discrete_quantile(values: Sequence[int], q: Fraction) -> int | None:
    for rank, value in enumerate(values, start=1):
        if Fraction(rank, len(values)) >= q:
            return value
    return None


def quantile(values: Sequence[int], q: Fraction) -> Fraction | None:
    if not values:
        return None
    place = q * (len(values) - 1)
    left = math.floor(place)
    right = min(left + 1, len(values) - 1)
    return values[left] + (place - left) * (values[right] - values[left])


def iqr(values: Sequence[int]) -> int | None:
    if not values:
        return None
    return discrete_quantile(values, Fraction(3, 4)) - discrete_quantile(values, Fraction(1, 4))  # type: ignore[operator]


def mean(values: Sequence[int]) -> Fraction | None:
    return Fraction(sum(values), len(values)) if values else None


def trimmed_mean(values: Sequence[int], p: Fraction) -> Fraction | None:
    cut = math.floor(p * len(values))
    return mean(values[cut : len(values) - cut])


def winsorized_mean(values: Sequence[int], p: Fraction) -> Fraction | None:
    if not values:
        return None
    cut = math.floor(p * len(values))
    kept = values[cut : len(values) - cut]
    return mean([kept[0]] * cut + list(kept) + [kept[-1]] * cut)


def variance(values: Sequence[int]) -> Fraction | None:
    if not values:
        return None
    centre = Fraction(sum(values), len(values))
    return sum(((v - centre) ** 2 for v in values), Fraction(0)) / len(values)
