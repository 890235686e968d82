"""Derived columns: what a controller declares of one, and what follows from its expression.

    text ─▶ expression of columns ─▶ columns of the source alone ─▶ grid (``expressions.grid``) and range ─▶ Column

Rules:

1. An expression is of declared columns, derived ones included, in the language of ``expressions``. No text of it
   reaches an engine.
2. A derived column in an expression is replaced by its own expression, cut to its bounds or values: what it reads as.
3. Type, step, bounds and whether it can be NULL follow. Truth is a whole number from 0 to 1, text a category whose
   values come in the order in which they appear.
4. ``bounds`` narrow: a value outside reads as the nearer bound. ``values`` order a category, and others read as NULL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from idios.core.domain import LIMIT, Categories, Domain, Kind
from idios.declare.dates import UNITS
from idios.declare.declared_columns import read_domain
from idios.declare.schema import Column
from idios.errors import InvalidInput, QuestionRefused
from idios.expressions.grid import GridNode, find_column_range, make_node
from idios.expressions.language import Call, Case, Expression, Literal, Reference, Type, list_references
from idios.expressions.ranges import Range, find_range
from idios.sql.expression_reader import read_expression
from idios.sql.lexer import SHAPE, tokenize
from idios.sql.literals import TypedExpression
from idios.sql.names import resolve_name
from idios.sql.parser import Name, SyntaxNode, parse

DERIVED_KEYS = ("expression", "bounds", "centre", "values")
FOLLOWS = ("type", "step", "decimals", "nullable")
"""What follows from the expression and is not declared."""

_SELECT = "SELECT "
_ALLOWED = (
    "An expression is made of declared columns, literals, + - * /, comparisons, AND OR NOT, CASE, EXTRACT and functions"
)
_TYPES = {Kind.CATEGORY: Type.TEXT, Kind.DATE: Type.DATE, Kind.TIMESTAMP: Type.TIMESTAMP}


def derive_columns(given: Mapping[str, Mapping[str, Any]], held: Mapping[str, Column]) -> dict[str, Column]:
    """Check the derived columns of a data set whose source holds some columns.

    >>> age = Column("age", Kind.INTEGER, Domain(lower=0, upper=120), nullable=False)
    >>> adult = derive_columns({"adult": {"expression": "age >= 18"}}, {"age": age})["adult"]
    >>> adult.kind, adult.grid.upper, adult.nullable
    (<Kind.INTEGER: 'integer'>, 1, False)
    """
    derivation = _Derivation(given, held)
    return {name: derivation.column(name) for name in given}


class _Derivation:
    def __init__(self, given: Mapping[str, Mapping[str, Any]], held: Mapping[str, Column]) -> None:
        self._given = given
        self._held = held
        self._made: dict[str, tuple[Column, TypedExpression]] = {}
        self._making: list[str] = []

    def column(self, name: str) -> Column:
        return self._make(name)[0]

    def _make(self, name: str) -> tuple[Column, TypedExpression]:
        if name not in self._made:
            if name in self._making:
                circle = " → ".join([*self._making[self._making.index(name) :], name])
                raise InvalidInput(f"column {self._making[0]!r}: derived columns use each other in a circle: {circle}")
            self._making.append(name)
            try:
                self._made[name] = self._derive(name, self._given[name])
            except QuestionRefused as error:
                raise InvalidInput(_explain(name, str(self._given[name]["expression"]), error)) from None
            self._making.pop()
        return self._made[name]

    def _derive(self, name: str, table: Mapping[str, Any]) -> tuple[Column, TypedExpression]:
        for key in table:
            if key in FOLLOWS:
                raise InvalidInput(f"column {name!r}: {key} is not declared of a derived column: it follows")
            if key not in DERIVED_KEYS:
                known = ", ".join(DERIVED_KEYS)
                raise InvalidInput(f"column {name!r}: {key!r} is not known; of a derived column known are {known}")
        formula = table["expression"]
        if not isinstance(formula, str):
            raise InvalidInput(f"column {name!r}: an expression is text, got {type(formula).__name__}")
        read = self._read(formula)
        try:
            return _finish(name, formula, read, table, self._held)
        except InvalidInput as error:
            raise InvalidInput(f"column {name!r}, expression {formula!r}: {error}") from None

    def _read(self, formula: str) -> TypedExpression:
        text = tokenize(_SELECT + formula)
        tree = parse(text)
        clauses = (tree.source, tree.where, tree.group, tree.sets, tree.having, tree.order, tree.limit, tree.offset)
        if len(tree.items) != 1 or tree.items[0].alias is not None or any(clauses):
            raise text.refusal(_ALLOWED, len(_SELECT))

        def leaf(node: SyntaxNode) -> TypedExpression | None:
            if not isinstance(node, Name):
                return None
            named = resolve_name(text, node, [*self._held, *self._given], "column")
            return self._make(named)[1] if named in self._given else _refer_to(self._held[named])

        return read_expression(text, tree.items[0].node, leaf)


def _explain(name: str, formula: str, error: QuestionRefused) -> str:
    offset = None if error.offset is None else max(0, error.offset - len(_SELECT))
    return f"column {name!r}, expression: {QuestionRefused(error.message.replace(SHAPE, _ALLOWED), formula, offset)}"


def _refer_to(column: Column) -> TypedExpression:
    named = column if column.kind is Kind.CATEGORY else None
    whole = named is None and column.grid.step.denominator == 1
    return TypedExpression(Reference(column.name), _TYPES.get(column.kind, Type.NUMBER), whole=whole, column=named)


def _finish(
    name: str, formula: str, read: TypedExpression, table: Mapping[str, Any], held: Mapping[str, Column]
) -> tuple[Column, TypedExpression]:
    """The column, and what stands for it in other expressions."""
    expression = read.expression
    used = [str(column) for column in list_references(expression)]
    node, found = (
        make_node(expression, held),
        find_range(expression, {key: find_column_range(held[key]) for key in used}),
    )
    if read.type is None or found.empty:
        raise InvalidInput("it is always NULL")
    if not used:
        raise InvalidInput("it names no column, and so has one value")
    if read.type is Type.TEXT:
        column = _make_category(name, node, found, table)
    else:
        column = _make_number(name, read.type, node, found, table)
    column = replace(column, expression=expression, formula=formula)
    settled = replace(
        read,
        expression=_settle(expression, column, node, found),
        depth=min(node.depth, 90),
        column=column if column.kind is Kind.CATEGORY else None,
    )
    make_node(settled.expression, held)  # refused here, where the column is known
    return column, settled


def _make_category(name: str, node: GridNode, found: Range, table: Mapping[str, Any]) -> Column:
    for key in ("bounds", "centre"):
        if key in table:
            raise InvalidInput(f"{key} belongs to numeric columns, and this is text")
    possible = [value for value in node.values if found.values is None or value in found.values]
    values = table.get("values", possible)
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise InvalidInput('values are a list such as ["a", "b"]')
    if strange := [value for value in values if value not in possible]:
        raise InvalidInput(f"values lists {strange[0]!r}, which the expression never gives")
    nullable = found.nullable or len(values) < len(possible)
    return Column(name, Kind.CATEGORY, Categories(tuple(values)), nullable)


def _make_number(name: str, kind: Type, node: GridNode, found: Range, table: Mapping[str, Any]) -> Column:
    if "values" in table:
        raise InvalidInput("values belong to text, and this is none")
    if kind is Type.BOOLEAN:
        for key in ("bounds", "centre"):
            if key in table:
                raise InvalidInput(f"{key} belongs to numbers, and this is true or false")
        return Column(name, Kind.INTEGER, Domain(lower=0, upper=1), found.nullable)
    step = node.grid_step
    whole = Kind.INTEGER if step.denominator == 1 else Kind.DECIMAL
    column_kind = {Type.DATE: Kind.DATE, Type.TIMESTAMP: Kind.TIMESTAMP}.get(kind, whole)
    declared = read_domain(column_kind, {"step": step, "bounds": table.get("bounds"), "centre": table.get("centre")})
    if not isinstance(declared, Domain):
        raise AssertionError("numbers have a grid")
    # what lies beyond ±2^62 reads as that, which is no bound
    low = None if found.low is None or found.low < -LIMIT * step else math.ceil(found.low / step)
    high = None if found.high is None or found.high > LIMIT * step else math.floor(found.high / step)
    if any(end is not None and abs(end) > LIMIT for end in (low, high)):
        raise InvalidInput(
            "all of it lies beyond 2^62 steps of its grid: declare bounds of its columns, or larger steps"
        )
    domain = declared.narrowed(low, high)
    if domain is None:
        raise InvalidInput(f"it lies within {_ends(found, column_kind)}, and the declared bounds outside of that")
    return Column(name, column_kind, domain, found.nullable)


def _ends(found: Range, kind: Kind) -> str:
    unit = {Kind.DATE: " days", Kind.TIMESTAMP: " microseconds"}.get(kind, "") if kind in UNITS else ""
    return f"{found.low}..{found.high}{unit}"


def cuts_values(column: Column, columns: Mapping[str, Column]) -> bool:
    """Whether the bounds of a derived column are narrower than what its expression can be."""
    expression = column.expression or Literal(None)
    found = find_range(
        expression, {name: find_column_range(columns[str(name)]) for name in list_references(expression)}
    )
    if found.values is not None:  # text, of which what is not listed is NULL, or truth
        return False
    lower, upper, step = column.grid.lower, column.grid.upper, column.grid.step
    return (lower is not None and (found.low is None or found.low < lower * step)) or (
        upper is not None and (found.high is None or found.high > upper * step)
    )


def _settle(expression: Expression, column: Column, node: GridNode, found: Range) -> Expression:
    """What the column reads as: the expression, cut where the column is."""
    if isinstance(column.domain, Categories):
        if all(value in column.domain.values for value in found.values or node.values):
            return expression
        same = tuple(Call("=", (expression, Literal(value))) for value in column.domain.values)
        return Case(((Call("or", same), expression),))
    if node.type is Type.BOOLEAN:
        return expression
    step = column.grid.step
    settled = expression
    for function, bound, own, end in (
        ("greatest", column.grid.lower, found.low, -LIMIT),
        ("least", column.grid.upper, found.high, LIMIT),
    ):
        if bound is None and node.magnitude > LIMIT:
            settled = Call(function, (settled, Literal(Fraction(end * step))))
        elif bound is not None and own != bound * step:
            settled = Call(function, (settled, Literal(Fraction(bound * step))))
    if settled == expression or not found.nullable:
        return settled
    return Case(((Call("is null", (expression,)), Literal(None)),), settled)  # of NULL, GREATEST would be the bound
