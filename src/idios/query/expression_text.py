"""Expressions as SQL text, for messages: what a part is that cannot be computed."""

from __future__ import annotations

from fractions import Fraction

from idios.core.exact import text
from idios.query.expressions import Call, Case, Expression, Literal, Reference

MAX_TEXT = 120
_BETWEEN = ("+", "-", "*", "/", "=", "<>", "<", "<=", ">", ">=", "and", "or", "like", "ilike")


def write_expression(expression: Expression) -> str:
    """An expression in SQL, cut where it is long.

    >>> write_expression(Call("round", (Call("/", (Reference("a"), Reference("b"))), Literal(Fraction(2)))))
    'ROUND(a / b, 2)'
    """
    written = _write(expression, MAX_TEXT)
    return written if len(written) <= MAX_TEXT else f"{written[:MAX_TEXT]}…"


def _write(expression: Expression, room: int) -> str:
    """As much of the text as there is room for: what stands behind is not looked at."""
    if room <= 0:
        return "…"
    if isinstance(expression, Literal):
        return _write_literal(expression)
    if isinstance(expression, Reference):
        return str(expression.name)
    if isinstance(expression, Case):
        branches = " ".join(
            f"WHEN {_write(when, room // 2)} THEN {_write(then, room // 2)}" for when, then in expression.branches[:8]
        )
        return f"CASE {branches} ELSE {_write(expression.otherwise, room // 2)} END"
    function, written = expression.function, [_write(part, room // 2) for part in expression.arguments[:20]]
    if function in _BETWEEN:
        parts = zip(written, expression.arguments, strict=False)
        grouped = [
            f"({said})" if isinstance(part, Call) and part.function in _BETWEEN else said for said, part in parts
        ]
        return f" {function.upper()} ".join(grouped)
    if function.startswith("extract "):
        return f"EXTRACT({function.removeprefix('extract ').upper()} FROM {written[0]})"
    if function == "not":
        return f"NOT ({written[0]})"
    if function == "is null":
        return f"{written[0]} IS NULL"
    if function == "is distinct":
        return " IS DISTINCT FROM ".join(written)
    return f"{function.upper()}({', '.join(written)})"


def _write_literal(literal: Literal) -> str:
    value = literal.value
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    return str(text(value)) if isinstance(value, Fraction) else "'" + value.replace("'", "''") + "'"
