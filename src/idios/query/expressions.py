"""Expressions: one small language for what is computed from values, by Idios and never by an engine's own SQL.

It has two users. What an analyst computes from released values (``postprocessing``), and what a controller computes
from the columns of a record (``Column.expression``).

Rules:

1. Every number is exact. A date is its days and a timestamp its microseconds since 1970-01-01, text is text, truth is a
   bool, and NULL is None.
2. NULL is as in SQL: a function of NULL is NULL, except where the registry says otherwise; AND, OR and NOT have three
   values; a CASE takes the first branch whose condition is true.
3. Nothing fails. Division by zero is NULL, and types are checked when an expression is read.
4. ROUND goes to the nearest, and from the middle away from zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias

from idios.query.calendar import DAY, split_date

Value: TypeAlias = Fraction | str | bool | None
Name: TypeAlias = str | int


class Type(StrEnum):
    """What an expression gives."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class Literal:
    """A constant."""

    value: Value


@dataclass(frozen=True)
class Reference:
    """A value of the row that is computed on."""

    name: Name


@dataclass(frozen=True)
class Call:
    """A function of the registry, of some arguments."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Case:
    """The value of the first branch whose condition is true, or else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression = Literal(None)


Expression: TypeAlias = Literal | Reference | Call | Case


@dataclass(frozen=True)
class Function:
    """What a function computes; one that is ``strict`` is NULL where any argument is, and never sees it."""

    compute: Callable[..., Any]
    strict: bool = True


def evaluate(expression: Expression, row: Mapping[Any, Value] | Sequence[Value]) -> Value:
    """The value of an expression on one row.

    >>> half = Call("/", (Reference("a"), Literal(Fraction(2))))
    >>> str(evaluate(half, {"a": Fraction(3)})), evaluate(half, {"a": None})
    ('3/2', None)
    """
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Reference):
        return row[expression.name]  # type: ignore[index]
    if isinstance(expression, Case):
        for condition, value in expression.branches:
            if evaluate(condition, row) is True:
                return evaluate(value, row)
        return evaluate(expression.otherwise, row)
    function = FUNCTIONS[expression.function]
    values = [evaluate(argument, row) for argument in expression.arguments]
    if function.strict and None in values:
        return None
    result: Value = function.compute(*values)
    return result


def list_parts(expression: Expression) -> tuple[Expression, ...]:
    """What an expression is directly made of."""
    if isinstance(expression, Call):
        return expression.arguments
    if isinstance(expression, Case):
        return (*(part for branch in expression.branches for part in branch), expression.otherwise)
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and all of its parts."""
    stack = [expression]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(list_parts(part))


def list_references(expression: Expression) -> tuple[Name, ...]:
    """The names that an expression refers to, each once."""
    return tuple(dict.fromkeys(part.name for part in walk(expression) if isinstance(part, Reference)))


def substitute(expression: Expression, meanings: Mapping[Any, Expression] | Sequence[Expression]) -> Expression:
    """The expression with each reference replaced by what it means."""
    if isinstance(expression, Reference):
        return meanings[expression.name]  # type: ignore[index]
    if isinstance(expression, Call):
        return Call(expression.function, tuple(substitute(part, meanings) for part in expression.arguments))
    if isinstance(expression, Case):
        branches = tuple((substitute(when, meanings), substitute(then, meanings)) for when, then in expression.branches)
        return Case(branches, substitute(expression.otherwise, meanings))
    return expression


def round_half_away(value: Fraction, digits: int = 0) -> Fraction:
    """The nearest multiple of 10^−digits; from the middle away from zero.

    >>> [str(round_half_away(Fraction(v), d)) for v, d in (("2.5", 0), ("-2.5", 0), ("1250", -2), ("0.125", 2))]
    ['3', '-3', '1300', '13/100']
    """
    unit = Fraction(10) ** -digits
    steps = math.floor(abs(value) / unit + Fraction(1, 2))
    return unit * (steps if value >= 0 else -steps)


def match_pattern(text: str, pattern: str, escape: str = "") -> bool:
    r"""Whether LIKE holds: % stands for any text and _ for one character; ``escape`` takes their meaning away.

    The places of the text that the pattern has reached so far are the bits of one number, so that the work is linear
    in the length of the pattern, and that of one step a few machine words, whatever the pattern.

    >>> match_pattern("north-east", "n%e__t"), match_pattern("50%", "50!%", "!"), match_pattern("505", "50!%", "!")
    (True, True, False)
    """
    everywhere = (2 << len(text)) - 1
    places: dict[str, int] = {}
    for place, character in enumerate(text):
        places[character] = places.get(character, 0) | 1 << place
    reached = 1
    at = 0
    while at < len(pattern) and reached:
        sign = pattern[at]
        plain = bool(escape) and sign == escape and at + 1 < len(pattern)
        if plain:
            at += 1
            sign = pattern[at]
        at += 1
        if sign == "%" and not plain:
            reached = everywhere & -(reached & -reached)  # the first place, and all after it
        elif sign == "_" and not plain:
            reached = reached << 1 & everywhere
        else:
            reached = (reached & places.get(sign, 0)) << 1
    return bool(reached >> len(text))


def _and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _pick(choose: Callable[[list[Fraction]], Fraction]) -> Callable[..., Fraction | None]:
    def pick(*values: Fraction | None) -> Fraction | None:
        known = [value for value in values if value is not None]
        return choose(known) if known else None

    return pick


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _fold(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


def _extract(part: str) -> Callable[[Fraction], Fraction]:
    return lambda days: Fraction(split_date(math.floor(days))[part])


DATE_PARTS = ("year", "quarter", "month", "day", "dow")
TIME_PARTS = ("hour", "minute", "second")
EXTRACTED = tuple(f"extract {part}" for part in (*DATE_PARTS, *TIME_PARTS))
"""The parts of dates (of their days), and those of the time of day (of microseconds)."""

_SECOND = 10**6

FUNCTIONS: Mapping[str, Function] = {
    "+": Function(lambda a, b: a + b),
    "-": Function(lambda a, b: a - b),
    "*": Function(lambda a, b: a * b),
    "/": Function(lambda a, b: a / b if b else None),
    "abs": Function(abs),
    "round": Function(lambda value, digits: round_half_away(value, int(digits))),
    "floor": Function(lambda value: Fraction(math.floor(value))),
    "ceil": Function(lambda value: Fraction(math.ceil(value))),
    "greatest": Function(_pick(max), strict=False),
    "least": Function(_pick(min), strict=False),
    "coalesce": Function(_coalesce, strict=False),
    "nullif": Function(lambda a, b: None if a is not None and a == b else a, strict=False),
    "=": Function(lambda a, b: a == b),
    "<>": Function(lambda a, b: a != b),
    "<": Function(lambda a, b: a < b),
    "<=": Function(lambda a, b: a <= b),
    ">": Function(lambda a, b: a > b),
    ">=": Function(lambda a, b: a >= b),
    "and": Function(_and, strict=False),
    "or": Function(_or, strict=False),
    "not": Function(lambda a: not a),
    "is null": Function(lambda a: a is None, strict=False),
    "is distinct": Function(lambda a, b: a != b, strict=False),
    "like": Function(match_pattern),
    "ilike": Function(lambda a, *pattern: match_pattern(_fold(a), *map(_fold, pattern))),
    **{f"extract {part}": Function(_extract(part)) for part in DATE_PARTS},
    "extract hour": Function(lambda moment: Fraction(moment % DAY // (3600 * _SECOND))),
    "extract minute": Function(lambda moment: Fraction(moment % (3600 * _SECOND) // (60 * _SECOND))),
    "extract second": Function(lambda moment: Fraction(moment % (60 * _SECOND) // _SECOND)),
}
"""Every function, and what it means. Parts of a date are of days: a timestamp is divided by a day first."""
