"""WHERE: from a condition to the set of grid points for which it is true.

SQL's logic has three values. A record is selected where the condition is *true*, so a condition is read with the
question "where is it true?", and NOT turns it into "where is it false?" on its way down:

    true(A AND B)  = true(A) ∩ true(B)      false(A AND B) = false(A) ∪ false(B)
    true(A OR B)   = true(A) ∪ true(B)      false(A OR B)  = false(A) ∩ false(B)
    true(NOT A)    = false(A)               false(NOT A)   = true(A)
    a comparison   true on some points, false on all others, neither on NULL
    x IS NULL      true on NULL, false on every point
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from sqlglot import exp

from idios.core.domain import Kind
from idios.query.intervals import EVERYTHING, NOTHING, Intervals, complement, intersection, union
from idios.query.literals import Value, literal, place
from idios.query.names import column_node, resolve
from idios.query.predicate import ALWAYS, NEVER, All, Among, Any, Predicate
from idios.query.schema import Column
from idios.query.text import Text
from idios.query.whitelist import offset, only

ALLOWED = (
    "A condition compares a column with a literal (= <> < <= > >=, BETWEEN, IN, IS NULL); "
    "conditions are joined by AND, OR and NOT"
)


def _equal(c: Fraction) -> Intervals:
    return ((int(c), int(c)),) if c.denominator == 1 else NOTHING


_TRUE: Mapping[type[exp.Expression], Callable[[Fraction], Intervals]] = {
    exp.EQ: _equal,
    exp.NEQ: lambda c: complement(_equal(c)),
    exp.LT: lambda c: ((None, math.ceil(c) - 1),),
    exp.LTE: lambda c: ((None, math.floor(c)),),
    exp.GT: lambda c: ((math.floor(c) + 1, None),),
    exp.GTE: lambda c: ((math.ceil(c), None),),
}
"""The points g with g < c, g ≤ c, …: exact, whatever c lies between."""

_MIRRORED: Mapping[type[exp.Expression], type[exp.Expression]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def condition(text: Text, node: exp.Expression, columns: Mapping[str, Column], negated: bool = False) -> Predicate:
    """Where a condition is true; with ``negated``, where it is false."""
    kind = type(node)
    if kind is exp.And or kind is exp.Or:
        parts = tuple(condition(text, part, columns, negated) for part in _chain(text, node))
        return All(parts) if (kind is exp.And) != negated else Any(parts)
    if kind is exp.Paren or kind is exp.Not:
        only(text, node, "this")
        return condition(text, node.this, columns, negated != (kind is exp.Not))
    if kind is exp.Boolean:
        only(text, node, "this")
        return ALWAYS if bool(node.this) != negated else NEVER
    if kind is exp.Is:
        return _null(text, node, columns, negated)
    if kind in _TRUE:
        column, points = _comparison(text, node, columns)
    elif kind is exp.Between:
        column, points = _between(text, node, columns)
    elif kind is exp.In:
        column, points = _in(text, node, columns)
    else:
        raise text.refuse(f"this is no condition that is offered. {ALLOWED}", offset(node))
    grid = column.grid
    return Among(column.name, intersection(complement(points) if negated else points, ((grid.lower, grid.upper),)))


def _chain(text: Text, node: exp.Expression) -> list[exp.Expression]:
    """The parts of a AND b AND c …, which the parser nests to the left as deep as the chain is long."""
    kind, parts = type(node), []
    while type(node) is kind:
        only(text, node, "this", "expression")
        parts.append(node.args["expression"])
        node = node.this
    return [node, *reversed(parts)]


def _null(text: Text, node: exp.Expression, columns: Mapping[str, Column], negated: bool) -> Predicate:
    only(text, node, "this", "expression")
    if type(node.args["expression"]) is not exp.Null:
        raise text.refuse("IS is followed by NULL or NOT NULL only", offset(node))
    column = _column(text, node.this, columns)
    grid = column.grid
    return Among(column.name, ((grid.lower, grid.upper),) if negated else NOTHING, nulls=not negated)


def _comparison(text: Text, node: exp.Expression, columns: Mapping[str, Column]) -> tuple[Column, Intervals]:
    only(text, node, "this", "expression")
    kind, left, right = type(node), node.this, node.args["expression"]
    if column_node(text, left) is None and literal(text, left) is not None:
        kind, left, right = _MIRRORED[kind], right, left
    column = _column(text, left, columns)
    if column.kind is Kind.CATEGORY and kind not in (exp.EQ, exp.NEQ):
        raise text.refuse(f"{column.name} is a category, which has no order: use =, <> or IN", offset(node))
    at = place(text, column, _literal(text, right), offset(right))
    if at is None:
        return column, NOTHING if kind is exp.EQ else EVERYTHING
    return column, _TRUE[kind](at)


def _between(text: Text, node: exp.Expression, columns: Mapping[str, Column]) -> tuple[Column, Intervals]:
    only(text, node, "this", "low", "high")
    column = _column(text, node.this, columns)
    if column.kind is Kind.CATEGORY:
        raise text.refuse(f"{column.name} is a category, which has no order: use =, <> or IN", offset(node))
    low, high = (place(text, column, _literal(text, end), offset(end)) for end in (node.args["low"], node.args["high"]))
    if low is None or high is None:
        raise AssertionError("only a category has literals without a place")
    return column, intersection(_TRUE[exp.GTE](low), _TRUE[exp.LTE](high))


def _in(text: Text, node: exp.Expression, columns: Mapping[str, Column]) -> tuple[Column, Intervals]:
    only(text, node, "this", "expressions")
    column = _column(text, node.this, columns)
    values = node.args.get("expressions") or []
    if not values:
        raise text.refuse("IN is followed by a list of literals in parentheses", offset(node))
    places = (place(text, column, _literal(text, value), offset(value)) for value in values)
    return column, union(run for at in places if at is not None for run in _equal(at))


def _column(text: Text, node: exp.Expression, columns: Mapping[str, Column]) -> Column:
    name = column_node(text, node)
    if name is None:
        raise text.refuse(f"a column is expected here, nothing computed from one. {ALLOWED}", offset(node))
    return columns[resolve(text, name, columns, "column")]


def _literal(text: Text, node: exp.Expression) -> Value:
    value = literal(text, node)
    if value is None:
        raise text.refuse(f"a literal is expected here: a number, a string, a date. {ALLOWED}", offset(node))
    return value
