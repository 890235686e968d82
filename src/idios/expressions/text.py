"""Expressions as SQL text, for messages: what a part is that cannot be computed."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain

from idios.core.exact import text
from idios.expressions.language import Call, Case, Expression, Literal, Reference

MAX_TEXT = 120
_AROUND = {
    "not": ("NOT (", "", ")"),
    "is null": ("", "", " IS NULL"),
    "is distinct": ("", " IS DISTINCT FROM ", ""),
}
"""What stands before, between and behind the arguments of a function that is written in another way."""
_BETWEEN = ("+", "-", "*", "/", "=", "<>", "<", "<=", ">", ">=", "and", "or", "like", "ilike")


def write_expression(expression: Expression) -> str:
    """An expression in SQL, cut where it is long.

    >>> write_expression(Call("round", (Call("/", (Reference("a"), Reference("b"))), Literal(Fraction(2)))))
    'ROUND(a / b, 2)'
    """
    written = ""
    for piece in _write(expression):  # what stands behind is not looked at
        written += piece
        if len(written) > MAX_TEXT:
            return f"{written[:MAX_TEXT]}…"
    return written


def _write(expression: Expression) -> Iterator[str]:
    """The text piece by piece."""
    if isinstance(expression, Literal):
        yield _write_literal(expression)
    elif isinstance(expression, Reference):
        yield str(expression.name)
    elif isinstance(expression, Case):
        yield "CASE"
        for when, then in expression.branches:
            yield from chain((" WHEN ",), _write(when), (" THEN ",), _write(then))
        yield from chain((" ELSE ",), _write(expression.otherwise), (" END",))
    elif expression.function in _BETWEEN:
        for i, part in enumerate(expression.arguments):
            grouped = isinstance(part, Call) and part.function in _BETWEEN
            yield f" {expression.function.upper()} " * (i > 0) + "(" * grouped
            yield from _write(part)
            yield ")" * grouped
    else:
        begin, between, end = _AROUND.get(expression.function, (f"{expression.function.upper()}(", ", ", ")"))
        if expression.function.startswith("extract "):
            begin = f"EXTRACT({expression.function.removeprefix('extract ').upper()} FROM "
        yield begin
        for i, part in enumerate(expression.arguments):
            yield between * (i > 0)
            yield from _write(part)
        yield end


def _write_literal(literal: Literal) -> str:
    value = literal.value
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    return str(text(value)) if isinstance(value, Fraction) else "'" + value.replace("'", "''") + "'"
