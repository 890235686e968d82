"""Expressions of columns as whole-number arithmetic: every part on a public grid, none of it too large for an engine.

Rules:

1. A number is a point times a step, and the steps are public: that of x + y is the greatest common divisor of both,
   that of x · y their product, that of ROUND(x, d) is 10^−d. So points are whole numbers, and what is computed from
   points is exact.
2. A quotient of columns has no grid. ROUND, FLOOR or CEIL around it give it one; for that it is brought into the form
   a / b first, which is the same number, and NULL where that is.
3. Text is its place among the texts that a part can be; truth is 0 or 1.
4. The magnitude of a part is public: no point of it, and nothing that is computed on the way to it, is further from 0.
   It follows from the declared columns and from no condition around it: an engine may compute a branch that is not
   taken.
   What would not fit 38 digits is refused.
5. SQL repeats some parts (``weight``): what becomes too long is refused, before it is looked at where it is already too
   long as it is.

A column of the source is NULL or a point within its bounds, or within ±2^62.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import chain

from idios.core.domain import LIMIT, Categories
from idios.core.exact import text
from idios.declare.schema import Column
from idios.errors import InvalidInput
from idios.expressions.language import EXTRACTED, Call, Case, Expression, Literal, Reference, Type, list_references
from idios.expressions.ranges import Range, find_range

# Expressions as SQL text, for messages: what a part is that cannot be computed.


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


MOST = 10**38 - 1
"""The greatest whole number that every engine computes with."""
MOST_QUOTIENT = 10**31
"""The greatest result of a division: Spark keeps six places behind the point."""
MAX_WEIGHT = 2_000
MAX_DEPTH = 120

NUMBERS = ("+", "-", "*", "/", "abs", "round", "floor", "ceil", *EXTRACTED)
CHOICES = ("greatest", "least", "coalesce", "nullif")
ROUNDED = ("round", "floor", "ceil")

_REPEATED = {"extract year": 10, **dict.fromkeys(EXTRACTED[1:], 2), "round": 3}
"""How often SQL repeats the argument of a function."""
_REPEATED_QUOTIENT = 5
_EXTRACTED_MOST = {"quarter": 4, "month": 12, "day": 31, "dow": 6, "hour": 23, "minute": 59, "second": 59}


@dataclass(frozen=True, eq=False)
class GridNode:
    """One part of an expression: its type (None: it is NULL), and the step and magnitude, or the texts, of its points.

    A date counts days and a timestamp microseconds: to both, the type is that of a number. A step of 0 is that of what
    is always 0.
    """

    expression: Expression
    parts: tuple[GridNode, ...]
    type: Type | None
    step: Fraction = Fraction(0)
    magnitude: int = 0
    values: tuple[str, ...] = ()
    weight: int = 1
    depth: int = 1

    @property
    def function(self) -> str:
        """What is called; empty for what is no call."""
        return self.expression.function if isinstance(self.expression, Call) else ""

    @property
    def literal(self) -> bool:
        """Whether it is a constant."""
        return isinstance(self.expression, Literal)

    @property
    def grid_step(self) -> Fraction:
        """The step of a column that is this."""
        return self.step or Fraction(1)

    def scale(self, part: GridNode) -> Fraction:
        """How many steps of this a step of some part is."""
        return part.step / self.grid_step


def make_node(expression: Expression, columns: Mapping[str, Column]) -> GridNode:
    """Put an expression on the grid; InvalidInput says which part of it cannot be.

    >>> from idios.core.domain import Domain, Kind
    >>> wage = Column("wage", Kind.DECIMAL, Domain.declare(step="0.01", bounds=(0, 100)))
    >>> yearly = make_node(Call("*", (Reference("wage"), Literal(Fraction(52)))), {"wage": wage})
    >>> str(yearly.step), yearly.magnitude
    ('13/25', 10000)
    """
    if expression.written_out > MAX_WEIGHT:  # it is no more than the weight
        raise _refuse_length(expression)
    if isinstance(expression, Literal):
        return _literal(expression)
    if isinstance(expression, Reference):
        return _reference(expression, columns[str(expression.name)])
    if isinstance(expression, Case):
        whens = [make_node(when, columns) for when, _ in expression.branches]
        thens = [make_node(then, columns) for _, then in (*expression.branches, (None, expression.otherwise))]
        return _choice(expression, (*whens, *thens), thens, columns)
    function = expression.function
    if function in ROUNDED:
        return _rounded(expression, columns)
    parts = tuple(make_node(part, columns) for part in expression.arguments)
    if function in CHOICES:
        return _choice(expression, parts, parts[:1] if function == "nullif" else parts, columns)
    if function in NUMBERS:
        return _NUMBER[function](expression, parts)
    _check_compared(expression, parts)
    return _finish(expression, parts, Type.BOOLEAN)


def find_column_range(column: Column) -> Range:
    """What a column can be, by its declaration."""
    if isinstance(column.domain, Categories):
        return Range(nullable=column.nullable, values=frozenset(column.domain.values))
    step, ends = column.grid.step, (column.grid.lower, column.grid.upper)
    low, high = (None if end is None else end * step for end in ends)
    return Range(low, high, column.nullable)


def find_common_step(steps: Sequence[Fraction]) -> Fraction:
    """The greatest step that all of these are multiples of; 0 of nothing but 0.

    >>> str(find_common_step([Fraction(1, 2), Fraction(1, 3), Fraction(0)]))
    '1/6'
    """
    return reduce(
        lambda a, b: (
            Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator))
            / (a.denominator * b.denominator)
        ),
        steps,
        Fraction(0),
    )


def _literal(expression: Literal) -> GridNode:
    value = expression.value
    if isinstance(value, Fraction):
        return GridNode(expression, (), Type.NUMBER, abs(value), int(value != 0))
    if isinstance(value, str):
        return GridNode(expression, (), Type.TEXT, values=(value,))
    return GridNode(expression, (), None if value is None else Type.BOOLEAN)


def _reference(expression: Reference, column: Column) -> GridNode:
    if isinstance(column.domain, Categories):
        return GridNode(expression, (), Type.TEXT, values=column.domain.values)
    ends = (LIMIT if end is None else abs(end) for end in (column.grid.lower, column.grid.upper))
    return GridNode(expression, (), Type.NUMBER, column.grid.step, max(ends))


def _finish(
    expression: Expression,
    parts: tuple[GridNode, ...],
    kind: Type | None,
    step: Fraction = Fraction(0),
    magnitude: int = 0,
    values: tuple[str, ...] = (),
    *,
    inner: int = 0,
    repeated: int = 1,
) -> GridNode:
    """A node that fits, ``inner`` being the greatest number on the way to it."""
    weight = 1 + repeated * sum(part.weight for part in parts)
    depth = 1 + max((part.depth for part in parts), default=0)
    if weight > MAX_WEIGHT or depth > MAX_DEPTH:
        raise _refuse_length(expression)
    if max(magnitude, inner) > MOST:
        raise InvalidInput(
            f"{write_expression(expression)} can need more than 38 digits, in steps of its columns: declare bounds of "
            "the columns, or larger steps"
        )
    return GridNode(expression, parts, kind, step, magnitude, values, weight, depth)


def _refuse_length(expression: Expression) -> InvalidInput:
    return InvalidInput(
        f"{write_expression(expression)} becomes too long, with the columns that it is derived from written out"
    )


def scaled(node: GridNode, step: Fraction) -> int:
    """The magnitude of a node in other steps, of which its own is a multiple."""
    return node.magnitude * int(node.step / step) if step else 0


def _sum(expression: Call, parts: tuple[GridNode, ...]) -> GridNode:
    step = find_common_step([part.step for part in parts])
    return _finish(expression, parts, Type.NUMBER, step, sum(scaled(part, step) for part in parts))


def _product(expression: Call, parts: tuple[GridNode, ...]) -> GridNode:
    left, right = parts
    return _finish(expression, parts, Type.NUMBER, left.step * right.step, left.magnitude * right.magnitude)


def _quotient(expression: Call, parts: tuple[GridNode, ...]) -> GridNode:
    left, right = parts
    if not right.literal:
        raise InvalidInput(
            f"{write_expression(expression)} divides by a column, which gives no grid: write ROUND(…, digits), "
            "FLOOR(…) or CEIL(…) around the quotient, and compare products instead of quotients"
        )
    return _finish(expression, parts, Type.NUMBER, left.step / right.step if right.step else left.step, left.magnitude)


def _absolute(expression: Call, parts: tuple[GridNode, ...]) -> GridNode:
    return _finish(expression, parts, Type.NUMBER, parts[0].step, parts[0].magnitude)


def _extracted(expression: Call, parts: tuple[GridNode, ...]) -> GridNode:
    whole = parts[0].magnitude * parts[0].step
    name = expression.function.removeprefix("extract ")
    magnitude = _EXTRACTED_MOST.get(name, math.ceil(whole / 365) + 1972)
    ratio = parts[0].step
    inner = 2 * parts[0].magnitude * ratio.numerator + 4 * 10**11 * ratio.denominator
    repeated = _REPEATED.get(expression.function, 1)
    return _finish(expression, parts, Type.NUMBER, Fraction(1), magnitude, inner=inner, repeated=repeated)


def _rounded(expression: Call, columns: Mapping[str, Column]) -> GridNode:
    """ROUND, FLOOR or CEIL, whose two parts become a dividend and a divisor, which may be the literal 1."""
    dividend, divisor = split_quotient(expression.arguments[0])
    left, right = make_node(dividend, columns), make_node(divisor, columns)
    unit = find_unit(expression)
    if right.literal:
        ratio = left.step / unit
        result = math.ceil(left.magnitude * ratio) + 1
        inner = 2 * left.magnitude * ratio.numerator + 2 * ratio.denominator
        repeated = _REPEATED.get(expression.function, 1)
    else:
        ratio = left.step / right.step / unit if right.step else Fraction(0)
        result = math.ceil(left.magnitude * ratio) + 1
        inner = 2 * left.magnitude * ratio.numerator + right.magnitude * ratio.denominator
        repeated = _REPEATED_QUOTIENT
    if not (right.literal and ratio.denominator == 1) and result > MOST_QUOTIENT:
        inner = MOST + 1
    return _finish(expression, (left, right), Type.NUMBER, unit, result, inner=inner, repeated=repeated)


def find_unit(expression: Call) -> Fraction:
    """What ROUND, FLOOR and CEIL give multiples of."""
    if expression.function != "round":
        return Fraction(1)
    digits = expression.arguments[1]
    if not isinstance(digits, Literal) or not isinstance(digits.value, Fraction):
        raise AssertionError("the digits of ROUND are checked where an expression is read")
    return Fraction(10) ** -int(digits.value)


ONE = Literal(Fraction(1))


def split_quotient(expression: Expression) -> tuple[Expression, Expression]:
    """The same number as a dividend and a divisor neither of which divides by a column: the divisor 1 if none does.

    >>> share = Call("*", (Literal(Fraction(100)), Call("/", (Reference("a"), Reference("b")))))
    >>> [write_expression(part) for part in split_quotient(share)]
    ['100 * a', 'b']
    """
    if not isinstance(expression, Call) or expression.function not in ("+", "-", "*", "/"):
        return expression, ONE
    left, right = expression.arguments
    if expression.function == "/" and isinstance(right, Literal):
        a, b = split_quotient(left)
        return (expression, ONE) if b == ONE else (Call("/", (a, right)), b)
    (a, b), (c, d) = split_quotient(left), split_quotient(right)
    if expression.function == "/":
        # a/b ÷ c/d = ad/bc, and NULL where d is 0, as is add/bcd
        return (a, _times(b, c)) if d == ONE else (_times(_times(a, d), d), _times(_times(b, c), d))
    if b == ONE and d == ONE:
        return expression, ONE
    if expression.function == "*":
        return _times(a, c), _times(b, d)
    return Call(expression.function, (_times(a, d), _times(c, b))), _times(b, d)


def _times(left: Expression, right: Expression) -> Expression:
    return left if right == ONE else right if left == ONE else Call("*", (left, right))


def _choice(
    expression: Expression, parts: tuple[GridNode, ...], chosen: Sequence[GridNode], columns: Mapping[str, Column]
) -> GridNode:
    """One of some values: their common grid, or all of their texts in the order in which they appear.

    It may be bounded where they are not: LEAST(x, 9). Its value is what its range says, wherever it is computed.
    """
    kind = next((part.type for part in chosen if part.type is not None), None)
    step = find_common_step([part.step for part in chosen])
    magnitude = max(scaled(part, step) for part in chosen)
    if magnitude > 1 and step:
        found = find_range(
            expression, {name: find_column_range(columns[str(name)]) for name in list_references(expression)}
        )
        if found.low is not None and found.high is not None:
            magnitude = min(magnitude, math.floor(max(abs(found.low), abs(found.high)) / step))
    values = tuple(dict.fromkeys(value for part in chosen for value in part.values))
    if isinstance(expression, Call) and expression.function == "nullif":
        _check_compared(expression, parts)
    return _finish(expression, parts, kind, step, magnitude, values)


def _check_compared(expression: Call, parts: Sequence[GridNode]) -> None:
    """Refuse a comparison of numbers that do not fit in common steps."""
    numbers = [part for part in parts if part.type is Type.NUMBER]
    step = find_common_step([part.step for part in numbers])
    _finish(expression, (), Type.BOOLEAN, inner=max((scaled(part, step) for part in numbers), default=0))


_NUMBER: Mapping[str, Callable[[Call, tuple[GridNode, ...]], GridNode]] = {
    "+": _sum,
    "-": _sum,
    "*": _product,
    "/": _quotient,
    "abs": _absolute,
    **dict.fromkeys(EXTRACTED, _extracted),
}
