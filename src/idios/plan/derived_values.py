"""What a derived column can be in a selected record, by public facts alone.

A selection is about columns of the source (``preimages``). What it leaves of them bounds the derived column, by
interval arithmetic; both ends are then drawn in to the outermost points that some record can have, as far as conditions
on the derived column can be rewritten. All of this follows from the selection and the declarations, and from nothing of
how the question was worded, so that equal questions have equal domains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from idios.core.domain import LIMIT, Categories
from idios.declare.schema import Column
from idios.expressions.diagram import Diagram
from idios.expressions.language import Call, Expression, Literal, list_references, walk
from idios.expressions.predicates import NOTHING, Among, Interval, Intervals, intersection, union
from idios.expressions.preimages import find_node
from idios.expressions.ranges import MAX_COMBINATIONS, Range, find_range
from idios.expressions.work import RUN


def find_possible(selection: Diagram, name: str) -> tuple[Intervals, bool]:
    """The points that a column, derived or not, can have in a selected record, and whether it can be NULL there.

    An upper bound: it may include values that no record has.
    """
    manager = selection.manager
    column = manager.columns[name]
    if column.expression is None:
        return selection.possible(name)
    key = selection.root, name
    if key not in manager.possible_derived:
        manager.possible_derived[key] = _find_points(selection, column), _can_be(selection, column, NOTHING, nulls=True)
    return manager.possible_derived[key]


def _can_be(selection: Diagram, column: Column, points: Intervals, *, nulls: bool = False) -> bool:
    return not (selection & selection.manager.build(Among(column.name, points, nulls))).never


def _find_points(selection: Diagram, column: Column) -> Intervals:
    if selection.never:
        return NOTHING
    known, _ = selection.possible(column.name)
    if isinstance(column.domain, Categories):
        places = range(len(column.domain.values))
        return intersection(known, union((i, i) for i in places if _can_be(selection, column, ((i, i),))))
    node = find_node(column, selection.manager.columns)
    expression = column.expression or Literal(None)
    names = [str(name) for name in list_references(expression)]
    selection.manager.work.spend(RUN * node.weight + _count_matched(expression, selection.manager.columns))
    found = find_range(expression, {name: _narrow_range(selection, name) for name in names})
    if found.empty:
        return NOTHING
    if found.values is not None:  # truth
        ends: Interval = (int(min(found.values)), int(max(found.values)))
    else:
        step = node.grid_step
        low = None if found.low is None else math.ceil(found.low / step)
        high = None if found.high is None else math.floor(found.high / step)
        # what lies beyond ±2^62 reads as that, which is no bound
        ends = (
            None if low is None or low < -LIMIT else column.grid.clamp(min(low, LIMIT)),
            None if high is None or high > LIMIT else column.grid.clamp(max(high, -LIMIT)),
        )
    left = intersection(known, ((column.grid.lower, column.grid.upper),))
    left = intersection(left, (ends,))
    if not left or any(_lies_beyond(selection, name) for name in names):
        return left
    return _draw_in(selection, column, left)


def _narrow_range(selection: Diagram, name: str) -> Range:
    """What the selection leaves of a column of the source.

    What a condition takes for a number beyond ±2^62 reads as that, so that it is no less than that.
    """
    column = selection.manager.columns[name]
    points, nulls = selection.possible(name)
    if not points:
        return Range(nullable=nulls, values=frozenset())
    if isinstance(column.domain, Categories):
        texts = (column.domain.values[i] for first, last in points for i in range(first or 0, (last or 0) + 1))
        return Range(nullable=nulls, values=frozenset(texts))
    low, high = points[0][0], points[-1][1]
    return Range(
        None if low is None else min(low, LIMIT) * column.grid.step,
        None if high is None else max(high, -LIMIT) * column.grid.step,
        nulls,
    )


def _count_matched(expression: Expression, columns: Mapping[str, Column]) -> int:
    """What it takes to compare all texts that columns may be with the patterns of LIKE."""
    patterns = [part for part in walk(expression) if isinstance(part, Call) and part.function in ("like", "ilike")]
    if not patterns:
        return 0
    domains = [columns[str(name)].domain for name in list_references(expression)]
    values = sum(len(domain.values) for domain in domains if isinstance(domain, Categories))
    return RUN * min(values, MAX_COMBINATIONS) * len(patterns)


def _lies_beyond(selection: Diagram, name: str) -> bool:
    """Whether a condition takes a column for numbers beyond ±2^62, where no record has any but the ends."""
    points, _ = selection.possible(name)
    return any((first or 0) > LIMIT or (last or 0) < -LIMIT for first, last in points)


def _draw_in(selection: Diagram, column: Column, points: Intervals) -> Intervals:
    """The same points without those at both ends that no selected record can have."""
    low, high = points[0][0], points[-1][1]
    least, most = -LIMIT if low is None else low, LIMIT if high is None else high
    if not _can_be(selection, column, ((low, high),)):
        return NOTHING
    if not _can_be(selection, column, ((low, least),)):
        low = _search(least, most, lambda point: _can_be(selection, column, ((least, point),)))
    if not _can_be(selection, column, ((most, high),)):
        high = -_search(-most, -least, lambda point: _can_be(selection, column, ((-point, most),)))
    return intersection(points, ((low, high),))


def _search(below: int, reached: int, holds: Callable[[int], bool]) -> int:
    """The first point for which something holds that does not ``below`` and does once it is ``reached``."""
    while reached - below > 1:
        middle = (below + reached) // 2
        below, reached = (below, middle) if holds(middle) else (middle, reached)
    return reached
