"""WHERE: from a condition to the set of grid points for which it is true.

SQL's logic has three values. A record is selected where the condition is *true*, so a condition is read with the
question "where is it true?", and NOT turns it into "where is it false?" on its way down:

    true(A AND B)  = true(A) ∩ true(B)      false(A AND B) = false(A) ∪ false(B)
    true(A OR B)   = true(A) ∪ true(B)      false(A OR B)  = false(A) ∩ false(B)
    true(NOT A)    = false(A)               false(NOT A)   = true(A)
    a comparison   true on some points, false on all others, neither on NULL
    x IS NULL      true on NULL, false on every point

A column is its grid: the grid point g stands for the value g·step, so a literal c lies at c/step, exactly and usually
between two points.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from idios.core.domain import LIMIT, Categories, Kind
from idios.core.exact import text as number_text
from idios.query.calendar import UNITS, parse_moment
from idios.query.lexer import QuestionText
from idios.query.parser import allow_only, column_identifier, list_chain, offset_of, resolve_name
from idios.query.predicates import (
    ALWAYS,
    EVERYTHING,
    NEVER,
    NOTHING,
    Among,
    And,
    Intervals,
    Or,
    Predicate,
    complement,
    intersection,
    union,
)
from idios.query.schema import Column

ALLOWED = (
    "A condition compares a column with a literal (= <> < <= > >=, BETWEEN, IN, IS NULL); "
    "conditions are joined by AND, OR and NOT"
)
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?0*[0-9]{1,3})?")
_FORMAT = "DATE '2026-01-31' or TIMESTAMP '2026-01-31 23:59:59'"


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


def read_condition(
    text: QuestionText, node: exp.Expression, columns: Mapping[str, Column], negated: bool = False
) -> Predicate:
    """Where a condition is true; with ``negated``, where it is false."""
    kind = type(node)
    if kind is exp.And or kind is exp.Or:
        parts = tuple(read_condition(text, part, columns, negated) for part in list_chain(text, node))
        return And(parts) if (kind is exp.And) != negated else Or(parts)
    if kind is exp.Paren or kind is exp.Not:
        allow_only(text, node, "this")
        return read_condition(text, node.this, columns, negated != (kind is exp.Not))
    if kind is exp.Boolean:
        allow_only(text, node, "this")
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
        raise text.refusal(f"this is no condition that is offered. {ALLOWED}", offset_of(node))
    grid = column.grid
    return Among(column.name, intersection(complement(points) if negated else points, ((grid.lower, grid.upper),)))


def _null(text: QuestionText, node: exp.Expression, columns: Mapping[str, Column], negated: bool) -> Predicate:
    allow_only(text, node, "this", "expression")
    if type(node.args["expression"]) is not exp.Null:
        raise text.refusal("IS is followed by NULL or NOT NULL only", offset_of(node))
    column = _column(text, node.this, columns)
    grid = column.grid
    return Among(column.name, ((grid.lower, grid.upper),) if negated else NOTHING, nulls=not negated)


def _comparison(text: QuestionText, node: exp.Expression, columns: Mapping[str, Column]) -> tuple[Column, Intervals]:
    allow_only(text, node, "this", "expression")
    kind, left, right = type(node), node.this, node.args["expression"]
    if column_identifier(text, left) is None and read_literal(text, left) is not None:
        kind, left, right = _MIRRORED[kind], right, left
    column = _column(text, left, columns)
    if column.kind is Kind.CATEGORY and kind not in (exp.EQ, exp.NEQ):
        raise text.refusal(f"{column.name} is a category, which has no order: use =, <> or IN", offset_of(node))
    at = locate(text, column, _literal(text, right), offset_of(right))
    if at is None:
        return column, NOTHING if kind is exp.EQ else EVERYTHING
    return column, _TRUE[kind](at)


def _between(text: QuestionText, node: exp.Expression, columns: Mapping[str, Column]) -> tuple[Column, Intervals]:
    allow_only(text, node, "this", "low", "high")
    column = _column(text, node.this, columns)
    if column.kind is Kind.CATEGORY:
        raise text.refusal(f"{column.name} is a category, which has no order: use =, <> or IN", offset_of(node))
    low, high = (
        locate(text, column, _literal(text, end), offset_of(end)) for end in (node.args["low"], node.args["high"])
    )
    if low is None or high is None:
        raise AssertionError("only a category has literals without a place")
    return column, intersection(_TRUE[exp.GTE](low), _TRUE[exp.LTE](high))


def _in(text: QuestionText, node: exp.Expression, columns: Mapping[str, Column]) -> tuple[Column, Intervals]:
    allow_only(text, node, "this", "expressions")
    column = _column(text, node.this, columns)
    values = node.args.get("expressions") or []
    if not values:
        raise text.refusal("IN is followed by a list of literals in parentheses", offset_of(node))
    places = (locate(text, column, _literal(text, value), offset_of(value)) for value in values)
    return column, union(run for at in places if at is not None for run in _equal(at))


def _column(text: QuestionText, node: exp.Expression, columns: Mapping[str, Column]) -> Column:
    name = column_identifier(text, node)
    if name is None:
        raise text.refusal(f"a column is expected here, nothing computed from one. {ALLOWED}", offset_of(node))
    return columns[resolve_name(text, name, columns, "column")]


def _literal(text: QuestionText, node: exp.Expression) -> Value:
    value = read_literal(text, node)
    if value is None:
        raise text.refusal(f"a literal is expected here: a number, a string, a date. {ALLOWED}", offset_of(node))
    return value


@dataclass(frozen=True)
class Moment:
    """A DATE or TIMESTAMP literal: microseconds since 1970-01-01."""

    microseconds: int


Value = Fraction | str | bool | Moment


def read_literal(text: QuestionText, node: exp.Expression) -> Value | None:
    """The value of a literal; None for a node that is no literal."""
    if type(node) is exp.Neg:
        allow_only(text, node, "this")
        value = read_literal(text, node.this)
        return -value if isinstance(value, Fraction) and type(node.this) is exp.Literal else None
    if type(node) is exp.Boolean:
        allow_only(text, node, "this")
        return bool(node.this)
    if type(node) is exp.Literal:
        allow_only(text, node, "this", "is_string")
        return str(node.this) if node.args.get("is_string") else _number(text, node)
    if type(node) is exp.Cast and type(node.this) is exp.Literal and node.this.args.get("is_string"):
        return _moment_literal(text, node)
    if type(node) is exp.Null:
        raise text.refusal("a comparison with NULL holds for no record: write IS NULL or IS NOT NULL", offset_of(node))
    return None


def locate(text: QuestionText, column: Column, value: Value, at: int | None) -> Fraction | None:
    """c/step, the place of a literal on a column's grid; None for a category that is not declared.

    A place beyond the ends of the grid is refused: no value is told apart there.

    >>> from idios.core.domain import Domain
    >>> from idios.query.lexer import tokenize
    >>> cents = Column("price", Kind.DECIMAL, Domain(Fraction(1, 100)))
    >>> locate(tokenize("SELECT"), cents, Fraction("9.995"), None)
    Fraction(1999, 2)
    """
    if isinstance(column.domain, Categories):
        return _category(text, column, column.domain, value, at)
    step = column.domain.step
    if column.kind in UNITS:
        number = Fraction(_microseconds(text, column, value, at), UNITS[column.kind])
    elif isinstance(value, bool) and column.kind is Kind.INTEGER:
        number = Fraction(int(value))
    elif isinstance(value, Fraction):
        number = value
    else:
        raise text.refusal(f"{column.name} is a number: compare it with a number, written without quotes", at)
    if abs(number) > LIMIT * step:
        raise text.refusal(
            f"{column.name} is read in steps of {number_text(step)}, up to 2^62 of them either way: compare it with a "
            f"number within ±{float(LIMIT * step):.3g}",
            at,
        )
    return number / step


def _number(text: QuestionText, node: exp.Expression) -> Fraction:
    """The number as it is written, in the digits that the text may hold: what else Fraction reads is no literal."""
    written = str(node.this)
    if not _NUMBER.fullmatch(written):
        raise text.refusal(f"{written!r} is no number", offset_of(node))
    return Fraction(written)


def _moment_literal(text: QuestionText, node: exp.Expression) -> Moment | None:
    allow_only(text, node, "this", "to")
    allow_only(text, node.this, "this", "is_string")
    to = node.args.get("to")
    if type(to) is not exp.DataType:
        return None
    allow_only(text, to, "this")
    written = str(node.this.this)
    if to.this is exp.DataType.Type.DATE:
        microseconds = parse_moment(written, dates_only=True)
    elif to.this is exp.DataType.Type.TIMESTAMP:
        microseconds = parse_moment(written)
    else:
        return None
    if microseconds is None:
        raise text.refusal(f"{written!r} is no date: write {_FORMAT}, without a time zone", offset_of(node))
    return Moment(microseconds)


def _microseconds(text: QuestionText, column: Column, value: Value, at: int | None) -> int:
    if isinstance(value, str):
        microseconds = parse_moment(value, dates_only=column.kind is Kind.DATE)
        if microseconds is not None:
            return microseconds
    if isinstance(value, Moment):
        return value.microseconds
    raise text.refusal(f"{column.name} is a {column.kind}: compare it with {_FORMAT}, without a time zone", at)


def _category(text: QuestionText, column: Column, domain: Categories, value: Value, at: int | None) -> Fraction | None:
    if isinstance(value, bool) and set(domain.values) <= {"true", "false"}:
        value = "true" if value else "false"
    if not isinstance(value, str):
        raise text.refusal(f"{column.name} is a category: compare it with a string in single quotes", at)
    index = domain.read(value)
    return None if index is None else Fraction(index)
