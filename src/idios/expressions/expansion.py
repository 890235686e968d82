"""Conditions on derived columns, rewritten as conditions on the columns that they are derived from.

"The value of an expression lies in this set of points, or is NULL" is pushed down the expression, the set turning into
the preimage of itself, until it is about columns of the source. So age_group = 'child' and age < 18 are one condition,
and one question. This is exact, part by part: for every record, the rewritten condition holds if and only if the point
of the derived column lies in the set.

Where there is no such preimage by column (x + y, x · y, the month of a date without bounds) the condition stays one on
the derived column, beside "it is not NULL", which can nearly always be rewritten. A decision diagram then takes the
derived column for one of its own, as if it could have any value beside any values of the others. This is safe: records
are some of the assignments that the diagram knows. What is true for all assignments is true for all records
(``always``, so also ``whole``), what no assignment fulfils no record does (``never``, cells that are left out), and
what an assignment can be is no less than what a record can be (domains of statistics, so also envelopes). Equal
diagrams hold for the same records. Only the converse is lost: two wordings of one condition may be two questions, each
of which is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from idios.core.domain import LIMIT, Categories
from idios.declare.schema import Column
from idios.expressions.grid import GridNode, make_node
from idios.expressions.language import Literal, list_references
from idios.expressions.point_sets import list_points, of_points
from idios.expressions.predicates import (
    EVERYTHING,
    NOTHING,
    Among,
    And,
    Interval,
    Intervals,
    Or,
    Predicate,
    gather_by_column,
    union,
)
from idios.expressions.preimages import Preimages
from idios.expressions.work import Work

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
