"""How far off what is computed from released values is.

1. The true value of a computed column is the same expression of the true values. So where all of these lie in their
   intervals it lies in what interval arithmetic makes of them (``expressions.ranges``). Of k released values each is
   taken at 1 − 0.05/k; by the union bound all of them hold together with 95 %, however their noises depend on each
   other.
2. A released value that has no interval may be anything, and so may most that is computed from it. How many records it
   is off is told under its own name, with 1 − 0.05/k as well.
3. Where the value of an aggregate decides which rows are shown, it counts once for every cell that could have been, as
   its own interval does (``intervals``, 5).
4. A SELECT around another is a function of all the rows that it folds, and so are a total and a value OVER others: k
   counts the released values of all of them. If released values decide which rows these are, the true ones might have
   chosen others, and there is no interval.
5. Ends are exact, or rounded outwards where a fraction is too long to be read.
6. Before asking, the same k noises are known. A sum is off by those of its parts, each times its factor. A quotient N/D
   with |N − N′| ≤ a and |D − D′| ≤ b, and true values |N′| ≤ R·d and |D′| = d > b, is off by

       |N/D − N′/D′| = |(N − N′) − (N′/D′)(D − D′)| / |D| ≤ (a + R·b) / (d − b),

   which is told for values of d. R is public where D counts records and N adds up values within bounds; else it is told
   for numerators that are no larger than d.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from functools import cache, partial, reduce
from operator import add
from typing import Any, ClassVar

from idios.answer.intervals import CHECKED as EARLIER
from idios.answer.intervals import StoredIntervals, describe_unknown_margin, public_margin
from idios.core.calibration import Method
from idios.core.exact import text
from idios.core.statistics import Count, Sum
from idios.expressions.language import (
    Call,
    Case,
    Expression,
    Literal,
    Reference,
    Value,
    evaluate,
    list_references,
    walk,
)
from idios.expressions.ranges import LENIENT, STRICT, Range, find_range
from idios.model import ReleasedTable
from idios.model.quote import ExpectedMargin
from idios.model.released import Interval
from idios.plan.postprocessing import FOLDED_TEXTS, Fold, Row, Trace, apply_selects, find_middle, shorten_number
from idios.plan.question import Plan

ANYTHING = Range(nullable=True)

WITH_INTERVAL = "it is computed from released values, so each answer has an interval of its own"
NO_NUMBER = "it is computed from released values, and is no number"
CHOSEN = "it is computed from rows that were chosen by released values, and the true ones might choose others"
CHECKED = "it is computed from released values without an interval; how far off these are is told of each of them"
WITHOUT_INTERVAL = "it is computed from released values of which some have no interval"
SEVERAL = "it is computed from several rows of released values, of which some have no interval"
UNLIMITED = "it is computed from released values, and within their intervals there is no limit to it"
COMPLEX = "it is computed from released values by more than sums, factors and one division"
TOO_LONG = "it has too many groups and parts to be told before asking"
MORE = "…"
"""Stands in the name of what is computed from released values by more than their names tell."""
MOST_PARTS = 20_000
"""How many parts of expressions, of all groups together, are looked at before asking."""
UNCHECKED = (CHOSEN, SEVERAL, UNLIMITED)
"""Where a check of released values would tell nothing of what is computed from them."""


class ComputedIntervals:
    """The intervals of what a question computes; ``order`` says which cell each released row is."""

    anything: ClassVar[Any] = ANYTHING
    """What is known of a value where released values decide which rows it is computed from."""

    def __init__(self, plan: Plan, table: ReleasedTable, order: Sequence[int]) -> None:
        self.plan, self.order, self.table = plan, order, table
        self.stored = StoredIntervals(plan, table)
        self.traced = plan.traced
        # whether no released value decides which rows a SELECT folds; one that folds none does so
        self._sure = [
            select.folds is None or all(place < len(plan.keys) for place in traced.folding)
            for select, traced in zip(plan.shown, self.traced, strict=True)
        ]
        keys = len(plan.keys)
        self._even = [all(place < keys for place in traced.dividing) for traced in self.traced]
        self._found: dict[tuple[int, int, int], Any] = {}
        self._inside: dict[tuple[int, int, int], Any] = {}
        self._row: Row | None = None
        self._known: dict[tuple[int, int, int], dict[int, Any]] = {}

    def find(self, row: Row, column: int, kind: str) -> Interval | None:
        """The interval of one value, both ends written as the value is; None where there is none."""
        if row.values[column] is None or kind not in ("integer", "number"):
            return None
        if row is not self._row:  # no row inside is of two rows
            self._row, self._known = row, {}
        found = self._find_value(row, column)
        if found.low is None or found.high is None:
            return None
        low, high = found.low, found.high
        if kind == "integer":
            low, high = Fraction(math.floor(low)), Fraction(math.ceil(high))
        return str(text(low)), str(text(high))

    def _find_value(self, row: Row, column: int) -> Any:
        """What a value that is shown can be, where all that it is computed from holds together with 95 %."""
        trace = self.traced[-1].columns[column]
        parts = max(1, self.count_parts(trace, (row.reached if trace.beside else 0) or row.released))
        return self._find_range(len(self.traced), row, parts, column)

    def count_parts(self, trace: Trace, rows: int = 1) -> int:
        """How many released values have to lie in their intervals, where a column is computed from so many rows."""
        chosen = {number: self.plan.count_choices(number) for number in self._list_aggregates(trace)}
        return sum(max(min(rows, len(self.plan.cells)), choices) for choices in chosen.values())

    def explain_none(self, column: int, kind: str) -> str:
        """Why a computed column has no interval in any row."""
        trace = self.traced[-1].columns[column]
        if kind not in ("integer", "number"):
            return NO_NUMBER
        if trace.folds and not all((*self._sure, *self._even)):
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

    def _find_range(self, level: int, row: Row, parts: int, place: int) -> Any:
        """What one value of a row can be; level 0 has the released rows."""
        key = id(row), place, parts
        if key not in self._found:
            if level == 0:
                self._found[key] = self._read_released(row, place, parts)
            else:
                item = self.plan.shown[level - 1].items[place]
                known = self._known.setdefault((level, id(row), parts), {})
                find = partial(self._find_inside, level, row, parts)
                self._found[key] = self._compute(item.expression, find, known)
        return self._found[key]

    def _find_inside(self, level: int, row: Row, parts: int, place: int) -> Any:
        """What a row is computed from: a value of the row inside, or a key or a fold of several of them."""
        select, keys = self.plan.shown[level - 1], len(self.plan.shown[level - 1].keys)
        if not self._sure[level - 1]:
            return self.anything
        if select.windows and place >= (width := self._count_places(level)):
            return self._find_beside(level, row, parts, place - width)
        if select.folds is None:
            return self._find_range(level - 1, row.made_of[0], parts, place)
        if place < keys and place in row.totalled:
            return self._make_constant(None)
        key = id(row), place, parts
        if key not in self._inside:
            fold = None if place < keys else select.folds[place - keys]
            expression = select.keys[place] if fold is None else fold.argument or Literal(None)
            values = [
                self._compute(
                    expression,
                    partial(self._find_range, level - 1, each, parts),
                    self._known.setdefault((level - 1, -id(each), parts), {}),
                )
                for each in (row.made_of if fold is not None else row.made_of[:1])
            ]
            if fold is not None and fold.function == "GROUPING" and isinstance(expression, Reference):
                values = [self._make_constant(Fraction(int(expression.name) in row.totalled))]
                fold = None
            self._inside[key] = values[0] if fold is None else self._fold(fold, values)
        return self._inside[key]

    def _count_places(self, level: int) -> int:
        """How many values a row of a SELECT has before those of windows."""
        select = self.plan.shown[level - 1]
        if select.folds is not None:
            return len(select.keys) + len(select.folds)
        return len(self.plan.shown[level - 2].items if level > 1 else self.plan.keys + self.plan.measures)

    def _find_beside(self, level: int, row: Row, parts: int, number: int) -> Any:
        """What a window can be, found once for all rows of a partition."""
        alike, fold = row.beside[number], self.plan.shown[level - 1].windows[number].fold
        key = id(alike), number, parts
        if not self._even[level - 1]:
            return self.anything
        if key not in self._inside:
            argument = fold.argument or Literal(None)
            values = [self._compute(argument, partial(self._find_inside, level, each, parts), {}) for each in alike]
            self._inside[key] = self._fold(fold, values)
        return self._inside[key]

    def _read_released(self, row: Row, place: int, parts: int) -> Range:
        keys = len(self.plan.keys)
        if place < keys:
            return Range.of(row.values[place])
        if row.origin is None:
            raise AssertionError("a released row is its own origin")
        found = self.stored.find(self.order[row.origin], self.plan.measures[place - keys][1], parts)
        return ANYTHING if found is None else Range(*found)

    def _compute(self, expression: Expression, find: Callable[[int], Any], known: dict[int, Any]) -> Any:
        return _widen(find_range(expression, {name: find(int(name)) for name in list_references(expression)}, known))

    def _fold(self, fold: Fold, values: Sequence[Any]) -> Any:
        return _fold(fold, values)

    def _make_constant(self, value: Value) -> Any:
        return Range.of(value)


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
    return total if fold.function in ("SUM", "TOTAL") else STRICT["/"](total, Range.of(Fraction(len(values))))


# What is known before asking.


@dataclass(frozen=True, kw_only=True)
class Part(ExpectedMargin):
    """How far off a part of an expression will be.

    Its true value is at most ``each`` times the number of records, where that is known, and ``weight`` times the
    largest of the released values ``names``; ``counts`` says that it is that number. A constant is a ``Literal``.
    """

    each: Fraction | None = None
    weight: Fraction = Fraction(0)
    names: tuple[str, ...] = ()
    counts: bool = False


class ExpectedMargins(ComputedIntervals):
    """How far off computed columns will be; ``released`` has rows of keys, and NULL for each statistic."""

    anything = Part(reason=CHOSEN)

    def __init__(self, plan: Plan, released: Sequence[tuple[Any, ...]]) -> None:
        none = ReleasedTable(dataset="", version="", guarantee="", statistics=(), groups=(), cells=(), margins=())
        super().__init__(plan, none, range(len(released)))
        self._find_measure = cache(self._know_measure)  # it is the same in every row
        around = {"having": None, "order": (), "limit": None, "offset": 0}  # what is not shown is told of all the same
        selects = [replace(s, where=s.where if s.folds else None, **around) for s in plan.shown]  # type: ignore[arg-type]
        listed = [each.expression for s in selects for each in s.items]
        folds = [fold for s in selects for fold in (*(s.folds or ()), *(window.fold for window in s.windows))]
        listed += [fold.argument for fold in folds if fold.argument is not None]
        parts = sum(1 for _ in walk(*listed))
        times = math.prod(len(select.sets or ((),)) for select in selects)
        few = len(released) * times * parts <= MOST_PARTS
        self.rows = apply_selects(selects, released) if few else None

    def expect(self, column: int) -> ExpectedMargin:
        """How far off a column will be, in any row."""
        trace = self.traced[-1].columns[column]
        if trace.folds and not all((*self._sure, *self._even)):
            return ExpectedMargin(reason=CHOSEN)
        if self.rows is None:
            return ExpectedMargin(reason=TOO_LONG)
        found = (self._find_value(row, column) for row in self.rows)
        widest = reduce(partial(_join, max), map(_lift, found), Part())
        return ExpectedMargin(**{each.name: getattr(widest, each.name) for each in fields(ExpectedMargin)})

    def _read_released(self, row: Row, place: int, parts: int) -> Any:
        keys = len(self.plan.keys)
        return Literal(row.values[place]) if place < keys else self._find_measure(place - keys, parts)

    def _know_measure(self, place: int, parts: int) -> Literal | Part:
        label, number = self.plan.measures[place]
        aggregate, size = self.plan.aggregates[number], self.plan.dataset.size
        statistic, grid = aggregate.statistic, aggregate.grid
        if self.plan.checked is not None:
            return Part(reason=EARLIER)
        if isinstance(statistic, Count) and aggregate.choice.method is Method.EXACT and size is not None:
            return Literal(Fraction(size))
        margin = public_margin(self.plan, number, parts)
        if margin is None:
            return Part(reason=f"{label}: {describe_unknown_margin(aggregate.choice)}")
        each = Fraction(1) if isinstance(statistic, Count) else None
        if isinstance(statistic, Sum) and grid.lower is not None and grid.upper is not None:
            each = max(abs(grid.lower), abs(grid.upper)) * grid.step
        counts = isinstance(statistic, Count) and aggregate.column is None
        most = size if counts else None
        return Part(margin=margin, each=each, weight=Fraction(1), names=(label,), counts=counts, largest=most)

    def _compute(self, expression: Expression, find: Callable[[int], Any], known: dict[int, Any]) -> Any:
        for node in walk(expression):
            if id(node) not in known:
                parts = [known[id(part)] for part in node.parts]
                known[id(node)] = find(int(node.name)) if isinstance(node, Reference) else _combine(node, parts, known)
        return known[id(expression)]

    def _fold(self, fold: Fold, values: Sequence[Any]) -> Any:
        there = [value for value in values if value != Literal(None)]
        if fold.argument is None:
            return Literal(Fraction(len(values)))
        if fold.function not in ("SUM", "TOTAL", "AVG", "MEAN") or not there:
            return Part(reason=COMPLEX) if there else Literal(None)
        parts = [_lift(value) for value in there]
        total, widest = reduce(partial(_join, add), parts), reduce(partial(_join, max), parts)
        plain = isinstance(fold.argument, Reference) and len(there) == len(values)
        named: tuple[str, ...] = (f"{fold.function}({', '.join(widest.names)}{'' if plain else MORE})",)
        adds = fold.function in ("SUM", "TOTAL")
        counts = adds and plain and all(part.counts for part in parts)
        found = total if adds else _scale(total, Fraction(1, len(there)))
        if fold.function == "TOTAL":  # it goes by the name of what it is the total of
            named = widest.names
        return replace(found, each=widest.each, weight=Fraction(1), names=named, counts=counts)

    def _make_constant(self, value: Value) -> Any:
        return Literal(value)


def _lift(part: Literal | Part) -> Part:
    """A number that is known is not off."""
    if isinstance(part, Part):
        return part
    size = abs(part.value) if isinstance(part.value, Fraction) else Fraction(0)
    return Part(
        each=None if size else size, weight=size, reason="" if isinstance(part.value, Fraction | None) else COMPLEX
    )


def _combine(node: Expression, parts: Sequence[Any], known: dict[int, Any]) -> Literal | Part:
    """What is known of a node, from what is known of its parts."""
    if isinstance(node, Case):
        for condition, value in zip(parts[:-1:2], parts[1::2], strict=True):
            if condition == Literal(True) or isinstance(condition, Part):
                return Part(reason=COMPLEX) if isinstance(condition, Part) else value
        return parts[-1]  # type: ignore[no-any-return]
    if not isinstance(node, Call):
        return node  # type: ignore[return-value]
    values = [part for part in parts if isinstance(part, Literal)]
    if len(values) == len(parts):
        return Literal(evaluate(replace(node, arguments=tuple(parts)), {}))
    if node.function in ("+", "-", "*", "/", "round") and Literal(None) in values:
        return Literal(None)
    if node.function in ("+", "-"):
        return reduce(partial(_join, add), map(_lift, parts))
    if node.function == "*" and values:
        return _scale(*sorted(parts, key=lambda part: isinstance(part, Literal)))
    if node.function == "/":
        divisor, asked = parts[1], node.arguments[1]
        if (
            isinstance(asked, Call)
            and asked.function == "nullif"
            and known[id(asked.arguments[1])] == Literal(Fraction(0))
        ):
            divisor = known[id(asked.arguments[0])]
        return _divide(_lift(parts[0]), divisor)
    if node.function == "round" and isinstance(parts[1], Literal):
        unit = Fraction(10) ** -int(parts[1].value)  # type: ignore[arg-type]
        return _join(add, parts[0], Part(margin=unit, weight=unit))
    return Part(reason=next((part.reason for part in parts if isinstance(part, Part) and part.reason), COMPLEX))


def _scale(part: Part, factor: Literal | Fraction) -> Part:
    size = factor.value if isinstance(factor, Literal) else factor
    if not isinstance(size, Fraction):
        return Part(reason=COMPLEX)
    scaled = {name: getattr(part, name) * abs(size) for name in ("margin", "over", "most", "weight")}
    each = None if part.each is None else part.each * abs(size)
    return replace(part, **scaled, each=each, counts=part.counts and size == 1)


def _join(operation: Callable[..., Any], a: Part, b: Part) -> Part:
    """What holds for the sum of both, or with max for both."""
    both = a.divisor and b.divisor
    differ = both and (a.divisor != b.divisor or (operation is add and MORE in a.divisor))
    if a.reason or b.reason or differ:
        return Part(reason=a.reason or b.reason or COMPLEX)
    joined = {name: operation(getattr(a, name), getattr(b, name)) for name in ("margin", "over", "most", "weight")}
    more = (MORE,) if operation is add and set(a.names) & set(b.names) else ()  # S − S/2 is not S
    divided = a if a.error > b.error or not b.divisor else b
    return Part(
        **joined,
        each=None if a.each is None or b.each is None else operation(a.each, b.each),
        names=tuple(dict.fromkeys(a.names + b.names + more)),
        provided=tuple(dict.fromkeys(a.provided + b.provided)),
        divisor=divided.divisor,
        error=divided.error,
        largest=divided.largest,
    )


def _divide(a: Part, b: Literal | Part) -> Literal | Part:
    if isinstance(b, Literal):
        return _scale(a, 1 / b.value) if isinstance(b.value, Fraction) and b.value else Literal(None)
    if a.reason or b.reason or a.divisor or b.divisor:
        return Part(reason=a.reason or b.reason or COMPLEX)
    most = a.each if b.counts else None
    return Part(
        over=a.margin,
        most=a.weight if most is None else most,
        divisor=b.names[0] if len(b.names) == 1 and b.weight == 1 else f"what {', '.join(b.names)} make{MORE}",
        error=b.margin,
        largest=b.largest if b.counts else None,
        provided=a.names if most is None and a.names != b.names else (),
    )
