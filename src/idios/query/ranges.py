"""Interval arithmetic: what an expression can be, where each of its references lies in a known range.

It has two users. The bounds of a derived column follow from those that its columns declare. The interval of what is
computed from released values follows from theirs: where all of those hold together, so does this one, as the truth is
the same expression of the true values.

Rules:

1. A range holds every value that the expression can have, NULL included; it may hold more. It is exact where each
   reference occurs once and no function jumps (``range_arithmetic``).
2. A reference that occurs twice is taken as two: x − x is not 0.
3. Only CASE knows better: in a branch its condition is true and those before it are not, so that what they compare
   lies on the right side of it. A condition that cannot be true has no branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from idios.query.expressions import FUNCTIONS, Call, Case, Expression, Literal, Reference
from idios.query.range_arithmetic import IMPOSSIBLE, LENIENT, NOTHING, STRICT, Range, between, hull, list_truths

__all__ = ["Range", "find_range", "hull", "narrow"]


def find_range(expression: Expression, ranges: Mapping[Any, Range]) -> Range:
    """A range that holds every value of the expression, where each reference lies in its own.

    >>> from fractions import Fraction
    >>> share = Call("/", (Reference("a"), Call("+", (Reference("a"), Literal(Fraction(1))))))
    >>> print(find_range(share, {"a": Range(Fraction(0), Fraction(9))}))
    0 to 9
    """
    if isinstance(expression, Literal):
        return Range.of(expression.value)
    if isinstance(expression, Reference):
        return ranges[expression.name]
    if isinstance(expression, Case):
        return _find_case(expression, ranges)
    arguments = [find_range(argument, ranges) for argument in expression.arguments]
    if not FUNCTIONS[expression.function].strict:
        return LENIENT[expression.function](arguments)
    nullable = any(argument.nullable for argument in arguments)
    if any(argument.empty for argument in arguments):
        return NOTHING
    found = STRICT[expression.function](*arguments)
    return replace(found, nullable=True) if nullable else found


# CASE.


def _find_case(case: Case, ranges: Mapping[Any, Range]) -> Range:
    seen: list[Range] = []
    for condition, value in case.branches:
        truths = list_truths(find_range(condition, ranges))
        if True in truths and (taken := narrow(condition, ranges, holds=True)) is not None:
            seen.append(find_range(value, taken))
        left = None if truths == {True} else narrow(condition, ranges, holds=False)
        if left is None:
            return hull(seen)
        ranges = left
    return hull([*seen, find_range(case.otherwise, ranges)])


_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def narrow(condition: Expression, ranges: Mapping[Any, Range], *, holds: bool) -> Mapping[Any, Range] | None:
    """The ranges of what is referred to where a condition holds, or where it is false or NULL; None: nowhere.

    They are narrowed by references to truth, and by comparisons of references with references or constants.

    >>> from fractions import Fraction
    >>> minor = Call("<", (Reference("age"), Literal(Fraction(18))))
    >>> age = {"age": Range(Fraction(0), Fraction(120), nullable=True)}
    >>> print(narrow(minor, age, holds=True)["age"], narrow(minor, age, holds=False)["age"], sep="; ")
    0 to 18; 18 to 120 or NULL
    """
    if isinstance(condition, Reference):
        truths = list_truths(ranges[condition.name])
        truths = truths & {True} if holds else truths - {True}
        return _put(ranges, condition.name, Range(nullable=None in truths, values=truths - {None}))
    if not isinstance(condition, Call):
        return ranges
    function, arguments = condition.function, condition.arguments
    if function == ("and" if holds else "or"):
        left: Mapping[Any, Range] | None = ranges
        for argument in arguments:
            left = None if left is None else narrow(argument, left, holds=holds)
        return left
    if function == "not" and isinstance(inner := arguments[0], Call):
        if inner.function in _OPPOSITE:
            return narrow(Call(_OPPOSITE[inner.function], inner.arguments), ranges, holds=holds)
        if inner.function in ("is null", "is distinct"):  # never NULL itself
            return narrow(inner, ranges, holds=not holds)
    if function == "is null" and isinstance(arguments[0], Reference):
        name = arguments[0].name
        own = ranges[name]
        return _put(ranges, name, replace(NOTHING, nullable=own.nullable) if holds else replace(own, nullable=False))
    if function in _OPPOSITE:
        return _narrow_both(function, arguments, ranges, holds=holds)
    return ranges


def _narrow_both(
    function: str, arguments: tuple[Expression, ...], ranges: Mapping[Any, Range], *, holds: bool
) -> Mapping[Any, Range] | None:
    left: Mapping[Any, Range] | None = ranges
    for (own, other), comparison in ((arguments, function), (arguments[::-1], _MIRRORED[function])):
        if left is None or not isinstance(own, Reference) or not isinstance(other, Literal | Reference):
            continue
        before, against = left[own.name], find_range(other, left)
        if holds:
            left = _put(left, own.name, _cut(before, comparison, against))
        elif not against.nullable:
            after = _cut(before, _OPPOSITE[comparison], against)
            left = _put(left, own.name, replace(after, nullable=before.nullable))
    return left


def _put(ranges: Mapping[Any, Range], name: Any, found: Range) -> Mapping[Any, Range] | None:
    return None if found.empty and not found.nullable else {**ranges, name: found}


def _cut(own: Range, comparison: str, against: Range) -> Range:
    """What is left of a range where a comparison with a value of another is true."""
    if own.empty or against.empty:
        return IMPOSSIBLE
    if own.values is not None or against.values is not None:
        left = own.values
        if comparison == "=":
            left = against.values if left is None else left if against.values is None else left & against.values
        elif comparison == "<>" and left is not None:
            left = left - {against.single}
        return Range(values=left)
    (low, high), (least, most) = own.ends, against.ends
    if comparison in ("<", "<=", "="):
        high = min(high, most)
    if comparison in (">", ">=", "="):
        low = max(low, least)
    return between(low, high) if low <= high else IMPOSSIBLE
