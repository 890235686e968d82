"""Preimages: where a part of an expression lies in a set of its points, or is NULL, as a condition on columns.

Every rule is an equivalence, for every record: ROUND is monotone, so that a run of its points comes from a run; a CASE
has a value in the set if some branch has, whose condition is true and those before it are not; GREATEST is at most b if
no part is above, and at least a if some part is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from idios.query.calendar import find_next_change, find_year_start, units_of_part
from idios.query.expressions import EXTRACTED, FUNCTIONS, Call, Case, Literal, Reference, Type, Value, list_references
from idios.query.grid_expressions import GridNode, find_column_range, find_unit
from idios.query.predicates import (
    ALWAYS,
    EVERYTHING,
    NEVER,
    NOTHING,
    Among,
    And,
    Interval,
    Intervals,
    Or,
    Predicate,
    complement,
    intersection,
    union,
)
from idios.query.ranges import find_range
from idios.query.schema import Column
from idios.query.work import RUN, Work

MAX_RUNS = 2_000
"""How many runs of days or hours the values of a part of a date may make, for it to be rewritten."""


def of_points(points: Iterable[int]) -> Intervals:
    """Some points as intervals."""
    return union((point, point) for point in points)


def contains(intervals: Intervals, point: int) -> bool:
    """Whether a point lies in one of some intervals."""
    return any((first is None or first <= point) and (last is None or point <= last) for first, last in intervals)


def _preimage(intervals: Intervals, factor: Fraction, shift: Fraction = Fraction(0)) -> Intervals:
    """The whole numbers p with p·factor + shift in a set of points."""
    if not factor:
        at_shift = shift.denominator == 1 and contains(intervals, int(shift))
        return EVERYTHING if at_shift else NOTHING
    found = []
    for first, last in intervals:
        low = None if first is None else (first - shift) / factor
        high = None if last is None else (last - shift) / factor
        if factor < 0:
            low, high = high, low
        found.append((None if low is None else math.ceil(low), None if high is None else math.floor(high)))
    return union(found)


def _all(parts: Sequence[Predicate | None]) -> Predicate | None:
    """The conjunction; None if it cannot be expressed."""
    if NEVER in parts:
        return NEVER
    kept = [part for part in parts if part is not None and part != ALWAYS]
    return None if None in parts else kept[0] if len(kept) == 1 else And(tuple(kept))


def _any(parts: Sequence[Predicate | None]) -> Predicate | None:
    """The disjunction; None if it cannot be expressed."""
    if ALWAYS in parts:
        return ALWAYS
    kept = [part for part in parts if part is not None and part != NEVER]
    return None if None in parts else kept[0] if len(kept) == 1 else Or(tuple(kept))


_FALSE, _TRUE, _EITHER = ((0, 0),), ((1, 1),), ((0, 1),)

_COMPARED: Mapping[str, Callable[[Fraction], Intervals]] = {
    "=": lambda c: ((int(c), int(c)),) if c.denominator == 1 else NOTHING,
    "<": lambda c: ((None, math.ceil(c) - 1),),
    "<=": lambda c: ((None, math.floor(c)),),
    ">": lambda c: ((math.floor(c) + 1, None),),
    ">=": lambda c: ((math.ceil(c), None),),
    "<>": lambda c: complement(_COMPARED["="](c)),
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Preimages:
    """The preimages of parts of expressions over declared columns; None for one that cannot be expressed."""

    def __init__(self, columns: Mapping[str, Column], work: Work) -> None:
        self._columns = columns
        self._work = work
        self._known: dict[tuple[int, Intervals, bool], tuple[GridNode, Predicate | None]] = {}

    def where(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        """Where a part lies in a set of its points, or is NULL (if ``nulls``)."""
        self._work.spend(1 + len(points))
        key = id(node), points, nulls
        if key not in self._known:
            self._known[key] = node, self._find(node, points, nulls)  # which keeps the node, and so its id
        return self._known[key][1]

    def _find(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        self._work.spend(RUN * (len(points) + 1))
        if node.type is Type.TEXT:
            points = intersection(points, ((0, len(node.values) - 1),))
        elif node.type is Type.BOOLEAN:
            points = intersection(points, _EITHER)
        full = points == self._everything(node)
        if full and nulls:
            return ALWAYS
        if not points and not nulls:
            return NEVER
        expression = node.expression
        if isinstance(expression, Literal):
            return ALWAYS if self._holds(node, expression.value, points, nulls) else NEVER
        if isinstance(expression, Reference):
            return Among(str(expression.name), points, nulls)
        if isinstance(expression, Case):
            return self._case(node, points, nulls)
        found = _RULES[node.function](self, node, points, nulls)
        if found is not None or not (full or not points):
            return found
        return self._strict_presence(node, present=full)

    def _everything(self, node: GridNode) -> Intervals:
        if node.type is Type.TEXT:
            return ((0, len(node.values) - 1),)
        return _EITHER if node.type is Type.BOOLEAN else EVERYTHING

    def _holds(self, node: GridNode, value: Value, points: Intervals, nulls: bool) -> bool:
        if value is None:
            return nulls
        return contains(points, _sign(value) if isinstance(value, Fraction) else int(value is True))

    def _strict_presence(self, node: GridNode, *, present: bool) -> Predicate | None:
        """A strict function is NULL where some part of it is, or where it divides by zero."""
        if not (FUNCTIONS[node.function].strict and node.parts):
            return None
        known = [
            self.where(part, *((self._everything(part), False) if present else (NOTHING, True))) for part in node.parts
        ]
        if node.function == "/" or (node.function in ("round", "floor", "ceil") and not node.parts[1].literal):
            zero: Intervals = ((0, 0),)
            known.append(self.where(node.parts[1], complement(zero) if present else zero, False))
        return _all(known) if present else _any(known)

    def _translated(self, node: GridNode, points: Intervals, part: GridNode) -> Intervals:
        """The points of a part that are some points of the whole."""
        if part.type is Type.TEXT:
            place = {value: i for i, value in enumerate(node.values)}
            return of_points(i for i, value in enumerate(part.values) if contains(points, place[value]))
        return points if node.type is Type.BOOLEAN else _preimage(points, node.scale(part))

    # Numbers.

    def _affine(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        left, right = node.parts
        if not (left.literal or right.literal):
            return None
        part, other = (left, right) if right.literal else (right, left)
        constant = other.expression.value if isinstance(other.expression, Literal) else None
        if not isinstance(constant, Fraction) or (node.function == "/" and not constant):
            return ALWAYS if nulls else NEVER
        if node.function in ("*", "/"):
            return self.where(part, _preimage(points, Fraction(_sign(constant))), nulls)
        factor, shift = node.scale(part), constant / node.grid_step
        if node.function == "-":
            factor, shift = (factor, -shift) if part is left else (-factor, shift)
        return self.where(part, _preimage(points, factor, shift), nulls)

    def _absolute(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        known = intersection(points, ((0, None),))
        if points == EVERYTHING:
            return self.where(node.parts[0], EVERYTHING, nulls)
        return self.where(node.parts[0], union([*known, *_preimage(known, Fraction(-1))]), nulls)

    def _rounded(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        part, divisor = node.parts
        if not divisor.literal or not isinstance(node.expression, Call):
            return None
        ratio = part.step / find_unit(node.expression)
        if not ratio:
            return self.where(part, _preimage(points, ratio), nulls)
        runs = []
        for first, last in points:
            low = None if first is None else _first_rounded(node.function, first, ratio)
            high = None if last is None else _first_rounded(node.function, last + 1, ratio)
            runs.append((low, None if high is None else high - 1))
        return self.where(part, union(runs), nulls)

    def _extracted(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        [part] = node.parts
        name = node.function.removeprefix("extract ")
        if name == "year":
            runs: list[Interval] = [
                (
                    None if first is None else find_year_start(first),
                    None if last is None else find_year_start(last + 1) - 1,
                )
                for first, last in points
            ]
        else:
            listed = self._list_runs(part, name)
            if listed is None:
                return None
            runs = [run for run, value in listed if contains(points, value)]
        # days and hours are rounded down, so that the points of the last one reach up to the next
        return self.where(part, union(_cut(run, part.step) for run in runs), nulls)

    def _list_runs(self, part: GridNode, name: str) -> list[tuple[Interval, int]] | None:
        """The runs of days, or of microseconds, in which a part of a date stays as it is; None without bounds."""
        ranges = {str(ref): find_column_range(self._columns[str(ref)]) for ref in list_references(part.expression)}
        reach = find_range(part.expression, ranges)
        unit = units_of_part(name)
        if reach.low is None or reach.high is None or (reach.high - reach.low) / unit > MAX_RUNS:
            return None
        low, high = math.floor(reach.low), math.floor(reach.high)
        self._work.spend(RUN * ((high - low) // unit + 2))
        starts, at = [low], low
        while at <= high:
            at = find_next_change(at, name)
            starts.append(at)
        value = FUNCTIONS[f"extract {name}"].compute
        found: list[tuple[Interval, int]] = [((a, b - 1), int(value(Fraction(a)))) for a, b in pairwise(starts)]
        found[0] = ((None, found[0][0][1]), found[0][1])
        found[-1] = ((found[-1][0][0], None), found[-1][1])
        return found

    # Choices.

    def _case(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        count = len(node.parts) // 2
        conditions, values = node.parts[:count], node.parts[count:]
        alternatives: list[Predicate | None] = []
        before: list[Predicate | None] = []
        for i, value in enumerate(values):
            if NEVER in before:
                break
            wanted = self.where(value, self._translated(node, points, value), nulls)
            taken = self.where(conditions[i], _TRUE, False) if i < count else ALWAYS
            self._work.spend(RUN * (len(before) + 1))
            alternatives.append(_all([*before, taken, wanted]))
            if i < count:
                before.append(self.where(conditions[i], _FALSE, True))
        return _any(alternatives)

    def _coalesce(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        alternatives: list[Predicate | None] = []
        before: list[Predicate | None] = []
        for part in node.parts:
            wanted = self.where(part, self._translated(node, points, part), False)
            self._work.spend(RUN * (len(before) + 1))
            alternatives.append(_all([*before, wanted]))
            before.append(self.where(part, NOTHING, True))
        return _any([*alternatives, *([_all(before)] if nulls else [])])

    def _extreme(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        """GREATEST, which ignores NULL, is in a..b: none is above b, and one that is known is at least a."""
        alternatives: list[Predicate | None] = []
        for first, last in points:
            limit: Intervals = ((None, last),) if node.function == "greatest" else ((first, None),)
            kept = [self.where(part, self._translated(node, limit, part), True) for part in node.parts]
            inside = [self.where(part, self._translated(node, ((first, last),), part), False) for part in node.parts]
            alternatives.append(_all([*kept, _any(inside)]))
        absent = [_all([self.where(part, NOTHING, True) for part in node.parts])] if nulls else []
        return _any([*alternatives, *absent])

    def _nullif(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        part, other = node.parts
        if not isinstance(other.expression, Literal):
            return None
        equal = self._comparable(part, other, "=")
        kept = intersection(self._translated(node, points, part), complement(equal))
        return self.where(part, union([*kept, *equal]) if nulls else kept, nulls)

    # Truth.

    def _compared(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        left, right = node.parts
        function = node.function
        if left.literal:
            left, right, function = right, left, _MIRRORED[function]
        if not isinstance(right.expression, Literal):
            return None
        if right.expression.value is None:
            return ALWAYS if nulls else NEVER
        true = self._comparable(left, right, function)
        return self.where(left, self._chosen(true, points), nulls)

    def _comparable(self, part: GridNode, literal: GridNode, function: str) -> Intervals:
        """The points of a part for which a comparison with a constant is true; of NULL, none."""
        value = literal.expression.value if isinstance(literal.expression, Literal) else None
        if value is None:
            return NOTHING
        if isinstance(value, Fraction):
            if not part.step:
                return EVERYTHING if FUNCTIONS[function].compute(0, value) else NOTHING
            return _COMPARED[function](value / part.step)
        at = int(value) if isinstance(value, bool) else part.values.index(value) if value in part.values else -1
        return _COMPARED[function](Fraction(at))

    def _chosen(self, true: Intervals, points: Intervals) -> Intervals:
        """Where a comparison that is true in some points has one of some truths."""
        return union([*(true if contains(points, 1) else ()), *(complement(true) if contains(points, 0) else ())])

    def _like(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        text, *pattern = node.parts
        said = [part.expression.value for part in pattern if isinstance(part.expression, Literal)]
        if None in said:
            return ALWAYS if nulls else NEVER
        self._work.spend(sum(map(len, text.values)))
        matches = FUNCTIONS[node.function].compute
        true = of_points(i for i, value in enumerate(text.values) if matches(value, *said))
        return self.where(text, self._chosen(true, points), nulls)

    def _distinct(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        left, right = node.parts
        if left.literal:
            left, right = right, left
        if not points or points == _EITHER:
            return ALWAYS if points else NEVER  # it is never NULL
        if not isinstance(right.expression, Literal):
            return None
        same, equal = right.expression.value is None, self._comparable(left, right, "=")
        yes = self.where(left, complement(equal), not same) if contains(points, 1) else NEVER
        no = self.where(left, equal, same) if contains(points, 0) else NEVER
        return _any([yes, no])

    def _is_null(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        [part] = node.parts
        yes = self.where(part, NOTHING, True) if contains(points, 1) else NEVER
        no = self.where(part, self._everything(part), False) if contains(points, 0) else NEVER
        return ALWAYS if points == _EITHER else _any([yes, no])

    def _not(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        return self.where(node.parts[0], _preimage(points, Fraction(-1), Fraction(1)), nulls)

    def _joined(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        """AND of some conditions; OR is the negation of the AND of their negations."""
        both = node.function == "and"
        good, bad = (_TRUE, _FALSE) if both else (_FALSE, _TRUE)
        good_wanted, bad_wanted = (contains(points, truth[0][0]) for truth in (good, bad))
        alternatives: list[Predicate | None] = []
        if good_wanted or nulls:
            each = [self.where(part, good, nulls) for part in node.parts]
            unknown = [] if good_wanted else [_any([self.where(part, NOTHING, True) for part in node.parts])]
            alternatives.append(_all([*each, *unknown]))
        if bad_wanted:
            # with NULL: at least one is not good. Those that are all good or NULL were just listed
            alternatives.append(_any([self.where(part, bad, False) for part in node.parts]))
        return _any(alternatives)


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)


def _first_rounded(function: str, least: int, ratio: Fraction) -> int:
    """The first whole p for which p·ratio rounds to ``least`` or more; from the middle, away from zero."""
    if function == "floor":
        return math.ceil(least / ratio)
    if function == "ceil":
        return math.floor((least - 1) / ratio) + 1
    middle = (least - Fraction(1, 2)) / ratio
    return math.ceil(middle) if least > 0 else math.floor(middle) + 1


def _cut(run: Interval, step: Fraction) -> Interval:
    """The points whose values, rounded down, lie in a run of whole numbers."""
    first, last = run
    if not step:
        return (None, None) if contains((run,), 0) else (1, 0)
    low = None if first is None else math.ceil(first / step)
    return low, None if last is None else math.ceil((last + 1) / step) - 1


_RULES: Mapping[str, Callable[[Preimages, GridNode, Intervals, bool], Predicate | None]] = {
    **dict.fromkeys(("+", "-", "*", "/"), Preimages._affine),
    **dict.fromkeys(("round", "floor", "ceil"), Preimages._rounded),
    **dict.fromkeys(EXTRACTED, Preimages._extracted),
    **dict.fromkeys(_COMPARED, Preimages._compared),
    **dict.fromkeys(("greatest", "least"), Preimages._extreme),
    **dict.fromkeys(("and", "or"), Preimages._joined),
    **dict.fromkeys(("like", "ilike"), Preimages._like),
    "abs": Preimages._absolute,
    "coalesce": Preimages._coalesce,
    "nullif": Preimages._nullif,
    "is distinct": Preimages._distinct,
    "is null": Preimages._is_null,
    "not": Preimages._not,
}
