"""How far off what is computed from released values is.

1. The true value of a computed column is the same expression of the true values. So where all of these lie in their
   intervals it lies in what interval arithmetic makes of them (``query.ranges``). Of k released values each is taken at
   1 − 0.05/k; by the union bound all of them hold together with 95 %, however their noises depend on each other.
2. A released value that has no interval may be anything, and so may most that is computed from it. How many records it
   is off is told under its own name, with 1 − 0.05/k as well.
3. Where the value of an aggregate decides which rows are shown, it counts once for every cell that could have been, as
   its own interval does (``margins``, 5).
4. A SELECT around another is a function of all the rows that it folds: k counts the released values of all of them. If
   released values decide which rows these are, the true ones might have chosen others, and there is no interval.
5. Ends are exact, or rounded outwards where a fraction is too long to be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from functools import partial, reduce

from idios.core.exact import text
from idios.margins import StoredIntervals
from idios.model import ReleasedTable
from idios.model.released import Interval
from idios.query.expressions import Expression, Literal, list_references
from idios.query.plan import Plan
from idios.query.postprocessing import FOLDED_TEXTS, Fold, Row, Trace, find_middle, shorten_number
from idios.query.range_arithmetic import LENIENT, STRICT
from idios.query.ranges import Range, find_range

ANYTHING = Range(nullable=True)

WITH_INTERVAL = "it is computed from released values, so each answer has an interval of its own"
NO_NUMBER = "it is computed from released values, and is no number"
CHOSEN = "it is computed from rows that were chosen by released values, and the true ones might choose others"
CHECKED = "it is computed from released values without an interval; how far off these are is told of each of them"
WITHOUT_INTERVAL = "it is computed from released values of which some have no interval"
SEVERAL = "it is computed from several rows of released values, of which some have no interval"
UNLIMITED = "it is computed from released values, and within their intervals there is no limit to it"
UNCHECKED = (CHOSEN, SEVERAL, UNLIMITED)
"""Where a check of released values would tell nothing of what is computed from them."""


class ComputedIntervals:
    """The intervals of what a question computes; ``order`` says which cell each released row is."""

    def __init__(self, plan: Plan, table: ReleasedTable, order: Sequence[int]) -> None:
        self.plan, self.order, self.table = plan, order, table
        self.stored = StoredIntervals(plan, table)
        self.traced = plan.traced
        # whether no released value decides which rows a SELECT folds; one that folds none does so
        self._sure = [
            select.folds is None or all(place < len(plan.keys) for place in traced.folding)
            for select, traced in zip(plan.shown, self.traced, strict=True)
        ]
        self._found: dict[tuple[int, int, int], Range] = {}
        self._inside: dict[tuple[int, int, int], Range] = {}
        self._row: Row | None = None
        self._known: dict[tuple[int, int, int], dict[int, Range]] = {}

    def find(self, row: Row, column: int, kind: str) -> Interval | None:
        """The interval of one value, both ends written as the value is; None where there is none."""
        if row.values[column] is None or kind not in ("integer", "number"):
            return None
        if row is not self._row:  # no row inside is of two rows
            self._row, self._known = row, {}
        parts = max(1, self.count_parts(self.traced[-1].columns[column], row.released))
        found = self._find_range(len(self.traced), row, parts, column)
        if found.low is None or found.high is None:
            return None
        low, high = found.low, found.high
        if kind == "integer":
            low, high = Fraction(math.floor(low)), Fraction(math.ceil(high))
        return str(text(low)), str(text(high))

    def count_parts(self, trace: Trace, rows: int = 1) -> int:
        """How many released values have to lie in their intervals, where a column is computed from so many rows."""
        chosen = {number: self.plan.count_choices(number) for number in self._list_aggregates(trace)}
        return sum(max(rows, choices) for choices in chosen.values())

    def explain_none(self, column: int, kind: str) -> str:
        """Why a computed column has no interval in any row."""
        trace = self.traced[-1].columns[column]
        if kind not in ("integer", "number"):
            return NO_NUMBER
        if trace.folds and not all(self._sure):
            return CHOSEN
        parts, cells = self.count_parts(trace), range(len(self.table.cells))
        unknown = [
            self.plan.aggregates[number]
            for number in self._list_aggregates(trace)
            if not any(self.stored.find(cell, number, parts) for cell in cells)
        ]
        if not unknown:
            return UNLIMITED
        if trace.folds:
            return SEVERAL
        checked = self.table.checks and all(aggregate.check for aggregate in unknown)
        return CHECKED if checked else WITHOUT_INTERVAL

    def _list_aggregates(self, trace: Trace) -> set[int]:
        keys = len(self.plan.keys)
        return {self.plan.measures[place - keys][1] for place in trace.uses if place >= keys}

    def _find_range(self, level: int, row: Row, parts: int, place: int) -> Range:
        """What one value of a row can be; level 0 has the released rows."""
        key = id(row), place, parts
        if key not in self._found:
            if level == 0:
                self._found[key] = self._read_released(row, place, parts)
            else:
                item = self.plan.shown[level - 1].items[place]
                known = self._known.setdefault((level, id(row), parts), {})
                find = partial(self._find_inside, level, row, parts)
                self._found[key] = _widen(_compute(item.expression, find, known))
        return self._found[key]

    def _find_inside(self, level: int, row: Row, parts: int, place: int) -> Range:
        """What a row is computed from: a value of the row inside, or a key or a fold of several of them."""
        select, keys = self.plan.shown[level - 1], len(self.plan.shown[level - 1].keys)
        if not self._sure[level - 1]:
            return ANYTHING
        if select.folds is None:
            return self._find_range(level - 1, row.made_of[0], parts, place)
        key = id(row), place, parts
        if key not in self._inside:
            fold = None if place < keys else select.folds[place - keys]
            expression = select.keys[place] if fold is None else fold.argument or Literal(None)
            values = [
                _compute(
                    expression,
                    partial(self._find_range, level - 1, each, parts),
                    self._known.setdefault((level - 1, -id(each), parts), {}),
                )
                for each in (row.made_of if fold is not None else row.made_of[:1])
            ]
            self._inside[key] = values[0] if fold is None else _fold(fold, values)
        return self._inside[key]

    def _read_released(self, row: Row, place: int, parts: int) -> Range:
        keys = len(self.plan.keys)
        if place < keys:
            return Range.of(row.values[place])
        if row.origin is None:
            raise AssertionError("a released row is its own origin")
        found = self.stored.find(self.order[row.origin], self.plan.measures[place - keys][1], parts)
        return ANYTHING if found is None else Range(*found)


def _compute(expression: Expression, find: Callable[[int], Range], known: dict[int, Range]) -> Range:
    return find_range(expression, {name: find(int(name)) for name in list_references(expression)}, known)


def _widen(found: Range) -> Range:
    """The same with ends that are short enough to go on with."""
    low, high = found.low, found.high
    return replace(
        found,
        low=None if low is None else shorten_number(low, ROUND_FLOOR),
        high=None if high is None else shorten_number(high, ROUND_CEILING),
    )


def _fold(fold: Fold, values: Sequence[Range]) -> Range:
    """What an aggregate over released rows can be; it passes over NULL."""
    if fold.argument is None:
        return Range.of(Fraction(len(values)))
    if fold.function == "COUNT":
        return Range(Fraction(sum(not v.nullable for v in values)), Fraction(sum(not v.empty for v in values)))
    values = [value for value in values if not value.empty]  # SUM(CASE WHEN region = 'north' THEN total END)
    if not values:
        return Range.of(None)
    if fold.function in ("MIN", "MAX"):
        found = LENIENT["least" if fold.function == "MIN" else "greatest"](list(values))
        return ANYTHING if len(found.values or ()) > FOLDED_TEXTS else found
    if any(value.nullable for value in values):
        return ANYTHING
    if fold.function == "MEDIAN":  # it rises with each of them
        lows, highs = ([v.low for v in values if v.low is not None], [v.high for v in values if v.high is not None])
        low, high = (find_middle(ends) if len(ends) == len(values) else None for ends in (lows, highs))
        return Range(low, high)
    total = reduce(lambda a, b: _widen(STRICT["+"](a, b)), values)
    return total if fold.function == "SUM" else STRICT["/"](total, Range.of(Fraction(len(values))))
