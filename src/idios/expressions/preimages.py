"""Preimages: where a part of an expression lies in a set of its points, or is NULL, as a condition on columns.

Every rule is an equivalence, for every record: ROUND is monotone, so that a run of its points comes from a run; a CASE
has a value in the set if some branch has, whose condition is true and those before it are not; GREATEST is at most b if
no part is above, and at least a if some part is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from idios.core.domain import LIMIT, Categories
from idios.declare.dates import find_next_change, find_year_start, units_of_part
from idios.declare.schema import Column
from idios.expressions.grid import GridNode, find_column_range, find_unit, make_node
from idios.expressions.language import (
    EXTRACTED,
    FUNCTIONS,
    Call,
    Case,
    Literal,
    Reference,
    Type,
    Value,
    list_references,
)
from idios.expressions.predicates import (
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
    gather_by_column,
    intersection,
    union,
)
from idios.expressions.ranges import find_range
from idios.expressions.work import CHARACTERS, RUN, Work

# Sets of points, and conditions on them, of which preimages are made; None is one that cannot be expressed.


COMPARED: Mapping[str, Callable[[Fraction], Intervals]] = {
    "=": lambda c: ((int(c), int(c)),) if c.denominator == 1 else NOTHING,
    "<": lambda c: ((None, math.ceil(c) - 1),),
    "<=": lambda c: ((None, math.floor(c)),),
    ">": lambda c: ((math.floor(c) + 1, None),),
    ">=": lambda c: ((math.ceil(c), None),),
    "<>": lambda c: complement(COMPARED["="](c)),
}
"""The points for which a comparison with a constant is true."""


def of_points(points: Iterable[int]) -> Intervals:
    """Some points as intervals."""
    return union((point, point) for point in points)


def list_points(intervals: Intervals, count: int) -> Iterable[int]:
    """Those of the points 0, 1, … before ``count`` that lie in some intervals."""
    for first, last in intervals:
        yield from range(max(0, first or 0), count if last is None else min(count, last + 1))


def contains(intervals: Intervals, point: int) -> bool:
    """Whether a point lies in one of some intervals."""
    return any((first is None or first <= point) and (last is None or point <= last) for first, last in intervals)


def find_affine_preimage(intervals: Intervals, factor: Fraction, shift: Fraction = Fraction(0)) -> Intervals:
    """The whole numbers p with p·factor + shift in a set of points.

    >>> find_affine_preimage(((3, 8), (20, None)), Fraction(-2), Fraction(1))
    ((None, -10), (-3, -1))
    """
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


def join_all(parts: Sequence[Predicate | None], work: Work) -> Predicate | None:
    """The conjunction, with one condition on each column; None if it cannot be expressed."""
    if NEVER in parts:
        return NEVER
    if None in parts:
        return None
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    joined = gather_by_column(And(tuple(flat)), work)  # type: ignore[arg-type]
    if any(isinstance(part, Among) and not part.intervals and not part.nulls for part in joined):
        return NEVER
    return joined[0] if len(joined) == 1 else And(tuple(joined))


def join_any(parts: Sequence[Predicate | None], work: Work) -> Predicate | None:
    """The disjunction, with one condition on each column; None if it cannot be expressed."""
    if ALWAYS in parts:
        return ALWAYS
    if None in parts:
        return None
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    joined = gather_by_column(Or(tuple(flat)), work)  # type: ignore[arg-type]
    if any(isinstance(part, Among) and part.intervals == EVERYTHING and part.nulls for part in joined):
        return ALWAYS
    return joined[0] if len(joined) == 1 else Or(tuple(joined))


MAX_RUNS = 2_000
"""How many runs of days or hours the values of a part of a date may make, for it to be rewritten."""


_FALSE, _TRUE, _EITHER = ((0, 0),), ((1, 1),), ((0, 1),)

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Preimages:
    """The preimages of parts of expressions over declared columns; None for one that cannot be expressed."""

    def __init__(self, columns: Mapping[str, Column], work: Work) -> None:
        self._columns = columns
        self._work = work
        self._known: dict[tuple[int, Intervals, bool], tuple[GridNode, Predicate | None]] = {}
        self._chains: dict[int, tuple[GridNode, list[Predicate | None]]] = {}
        self._places: dict[tuple[int, int], tuple[GridNode, dict[int, int]]] = {}

    def _all(self, parts: Sequence[Predicate | None]) -> Predicate | None:
        return join_all(parts, self._work)

    def _any(self, parts: Sequence[Predicate | None]) -> Predicate | None:
        return join_any(parts, self._work)

    def where(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        """Where a part lies in a set of its points, or is NULL (if ``nulls``)."""
        self._work.spend(1 + len(points))
        if isinstance(node.expression, Literal):
            return ALWAYS if self._holds(node.expression.value, points, nulls) else NEVER
        key = id(node), points, nulls
        if key not in self._known:
            self._known[key] = node, self._find(node, points, nulls)  # which keeps the node, and so its id
        return self._known[key][1]

    def _find(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        self._work.spend(RUN * (len(points) + 4))
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

    def _holds(self, value: Value, points: Intervals, nulls: bool) -> bool:
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
        return self._all(known) if present else self._any(known)

    def _translated(self, node: GridNode, points: Intervals, part: GridNode) -> Intervals:
        """The points of a part that are some points of the whole."""
        if part.type is Type.TEXT:
            places = self._find_places(node, part)
            if len(places) == 1:
                [(place, own)] = places.items()
                return ((own, own),) if contains(points, place) else NOTHING
            return of_points(places[i] for i in list_points(points, len(node.values)) if i in places)
        return points if node.type is Type.BOOLEAN else find_affine_preimage(points, node.scale(part))

    def _find_places(self, node: GridNode, part: GridNode) -> dict[int, int]:
        """By the place of a text in the whole, its place in a part."""
        key = id(node), id(part)
        if key not in self._places:
            self._work.spend(len(part.values) + len(node.values))
            own = {value: i for i, value in enumerate(part.values)}
            self._places[key] = node, {i: own[value] for i, value in enumerate(node.values) if value in own}
        return self._places[key][1]

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
            return self.where(part, find_affine_preimage(points, Fraction(_sign(constant))), nulls)
        factor, shift = node.scale(part), constant / node.grid_step
        if node.function == "-":
            factor, shift = (factor, -shift) if part is left else (-factor, shift)
        return self.where(part, find_affine_preimage(points, factor, shift), nulls)

    def _absolute(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        known = intersection(points, ((0, None),))
        if points == EVERYTHING:
            return self.where(node.parts[0], EVERYTHING, nulls)
        return self.where(node.parts[0], union([*known, *find_affine_preimage(known, Fraction(-1))]), nulls)

    def _rounded(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        part, divisor = node.parts
        if not divisor.literal or not isinstance(node.expression, Call):
            return None
        ratio = part.step / find_unit(node.expression)
        if not ratio:
            return self.where(part, find_affine_preimage(points, ratio), nulls)
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
        alternatives: list[Predicate | None] = []
        for taken, value in zip(self._find_chain(node), node.parts[count:], strict=False):
            wanted = self.where(value, self._translated(node, points, value), nulls)
            if wanted != NEVER:
                alternatives.append(self._all([taken, wanted]))
        return self._any(alternatives)

    def _find_chain(self, node: GridNode) -> list[Predicate | None]:
        """Where each branch of a CASE, or each part of a COALESCE, is the one that counts; and where none is."""
        if id(node) not in self._chains:
            case = isinstance(node.expression, Case)
            chain: list[Predicate | None] = []
            left: Predicate | None = ALWAYS  # where none before is
            for part in node.parts[: len(node.parts) // 2] if case else node.parts:
                taken, not_taken = (
                    (self.where(part, _TRUE, False), self.where(part, _FALSE, True))
                    if case
                    else (ALWAYS, self.where(part, NOTHING, True))
                )
                chain.append(self._all([left, taken]))
                left = self._all([left, not_taken])
            self._chains[id(node)] = node, [*chain, left]
        return self._chains[id(node)][1]

    def _coalesce(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        *chain, absent = self._find_chain(node)
        alternatives: list[Predicate | None] = [absent] if nulls else []
        for reached, part in zip(chain, node.parts, strict=True):
            wanted = self.where(part, self._translated(node, points, part), False)
            if wanted != NEVER:
                alternatives.append(self._all([reached, wanted]))
        return self._any(alternatives)

    def _extreme(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        """GREATEST, which ignores NULL, is in a..b: none is above b, and one that is known is at least a."""
        alternatives: list[Predicate | None] = []
        for first, last in points:
            limit: Intervals = ((None, last),) if node.function == "greatest" else ((first, None),)
            kept = [self.where(part, self._translated(node, limit, part), True) for part in node.parts]
            inside = [self.where(part, self._translated(node, ((first, last),), part), False) for part in node.parts]
            alternatives.append(self._all([*kept, self._any(inside)]))
        absent = [self._all([self.where(part, NOTHING, True) for part in node.parts])] if nulls else []
        return self._any([*alternatives, *absent])

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
            return COMPARED[function](value / part.step)
        self._work.spend(len(part.values) // 16)
        at = int(value) if isinstance(value, bool) else part.values.index(value) if value in part.values else -1
        return COMPARED[function](Fraction(at))

    def _chosen(self, true: Intervals, points: Intervals) -> Intervals:
        """Where a comparison that is true in some points has one of some truths."""
        return union([*(true if contains(points, 1) else ()), *(complement(true) if contains(points, 0) else ())])

    def _like(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        text, *pattern = node.parts
        said = [part.expression.value for part in pattern if isinstance(part.expression, Literal)]
        if None in said:
            return ALWAYS if nulls else NEVER
        longest = sum(len(part) for part in said if isinstance(part, str))
        self._work.spend(sum(1 + (len(value) + longest) // CHARACTERS for value in text.values))
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
        return self._any([yes, no])

    def _is_null(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        [part] = node.parts
        yes = self.where(part, NOTHING, True) if contains(points, 1) else NEVER
        no = self.where(part, self._everything(part), False) if contains(points, 0) else NEVER
        return ALWAYS if points == _EITHER else self._any([yes, no])

    def _not(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        return self.where(node.parts[0], find_affine_preimage(points, Fraction(-1), Fraction(1)), nulls)

    def _joined(self, node: GridNode, points: Intervals, nulls: bool) -> Predicate | None:
        """AND of some conditions; OR is the negation of the AND of their negations."""
        both = node.function == "and"
        good, bad = (_TRUE, _FALSE) if both else (_FALSE, _TRUE)
        good_wanted, bad_wanted = (contains(points, truth[0][0]) for truth in (good, bad))
        alternatives: list[Predicate | None] = []
        if good_wanted or nulls:
            each = [self.where(part, good, nulls) for part in node.parts]
            unknown = [] if good_wanted else [self._any([self.where(part, NOTHING, True) for part in node.parts])]
            alternatives.append(self._all([*each, *unknown]))
        if bad_wanted:
            # with NULL: at least one is not good. Those that are all good or NULL were just listed
            alternatives.append(self._any([self.where(part, bad, False) for part in node.parts]))
        return self._any(alternatives)


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
    **dict.fromkeys(COMPARED, Preimages._compared),
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


# Conditions on derived columns, rewritten as conditions on the columns that they are derived from.
#
# "The value of an expression lies in this set of points, or is NULL" is pushed down the expression, the set turning
# into the preimage of itself, until it is about columns of the source. So age_group = 'child' and age < 18 are one
# condition, and one question. This is exact, part by part: for every record, the rewritten condition holds if and only
# if the point of the derived column lies in the set.
#
# Where there is no such preimage by column (x + y, x · y, the month of a date without bounds) the condition stays one
# on the derived column, beside "it is not NULL", which can nearly always be rewritten. A decision diagram then takes
# the derived column for one of its own, as if it could have any value beside any values of the others. This is safe:
# records are some of the assignments that the diagram knows. What is true for all assignments is true for all records
# (``always``, so also ``whole``), what no assignment fulfils no record does (``never``, cells that are left out), and
# what an assignment can be is no less than what a record can be (domains of statistics, so also envelopes). Equal
# diagrams hold for the same records. Only the converse is lost: two wordings of one condition may be two questions,
# each of which is paid for.


Where: TypeAlias = Callable[[GridNode, Intervals, bool], Predicate | None]


class Expander:
    """What rewrites conditions on the declared columns of one question."""

    def __init__(self, columns: Mapping[str, Column], work: Work) -> None:
        self._columns = columns
        self._work = work
        needed = any(column.expression is not None for column in columns.values())
        self._preimages = Preimages(columns, work) if needed else None
        self._known: dict[Among, Predicate] = {}
        self._nodes: dict[str, GridNode] = {}

    def expand(self, predicate: Predicate) -> Predicate:
        """The same selection, in terms of columns of the source as far as it can be expressed so."""
        if self._preimages is None:
            return predicate
        if not isinstance(predicate, Among):
            return type(predicate)(tuple(self.expand(part) for part in gather_by_column(predicate, self._work)))
        if self._columns[predicate.column].expression is None:
            return predicate
        if predicate not in self._known:
            column = self._columns[predicate.column]
            self._known[predicate] = self._expand_derived(predicate, column, self._preimages.where)
        return self._known[predicate]

    def _expand_derived(self, among: Among, column: Column, where: Where) -> Predicate:
        if column.name not in self._nodes:
            self._nodes[column.name] = find_node(column, self._columns)
            self._work.spend(self._nodes[column.name].weight)
        node = self._nodes[column.name]
        self._work.spend(len(node.values) // 16)
        points, others = _points_of_expression(among.intervals, column, node)
        whole = where(node, union([*points, *others]) if among.nulls else points, among.nulls)
        if whole is not None:
            return whole
        every, _ = _points_of_expression(EVERYTHING, column, node)
        present, absent = where(node, every, False), where(node, others, True)
        if present is None or absent is None:
            return among
        kept: Predicate = And((Among(among.column, among.intervals), present))
        return Or((kept, absent)) if among.nulls else kept


@lru_cache(maxsize=256)
def _known_node(derived: Column, columns: tuple[Column, ...]) -> GridNode:
    if derived.expression is None:
        raise AssertionError(f"{derived.name} is no derived column")
    return make_node(derived.expression, {column.name: column for column in columns})


def find_node(derived: Column, columns: Mapping[str, Column]) -> GridNode:
    """The expression of a derived column on the grids of the columns that it is derived from."""
    return _known_node(
        derived, tuple(columns[str(name)] for name in list_references(derived.expression or Literal(None)))
    )


def _points_of_expression(intervals: Intervals, column: Column, node: GridNode) -> tuple[Intervals, Intervals]:
    """The points of the expression that read as some points of its column, and those that read as NULL.

    What lies beyond the bounds, or beyond ±2^62, reads as the nearer end.
    """
    if isinstance(column.domain, Categories):
        values = column.domain.values
        if values == node.values:
            return intervals, NOTHING
        place = {value: i for i, value in enumerate(node.values)}
        chosen = of_points(place[values[i]] for i in list_points(intervals, len(values)))
        return chosen, of_points(place[value] for value in {*node.values} - {*values})
    low = -LIMIT if column.grid.lower is None else column.grid.lower
    high = LIMIT if column.grid.upper is None else column.grid.upper
    kept: list[Interval] = []
    for first, last in intervals:
        # what is compared with a point beyond the ends of the grid is compared with the ends
        first = None if first is None else max(-LIMIT, min(LIMIT, first))
        last = None if last is None else max(-LIMIT, min(LIMIT, last))
        if (first is not None and first > high) or (last is not None and last < low):
            continue
        kept.append((None if first is None or first <= low else first, None if last is None or last >= high else last))
    return union(kept), NOTHING
