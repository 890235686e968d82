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
4. A node is computed once for the ranges of its references. Each branch of a CASE has its own, so that one with more
   parts than ``MAX_NARROWED``, written out, takes those around it: CASEs that share their branches would be 2ⁿ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from idios.expressions.language import FUNCTIONS, Call, Case, Expression, Literal, Reference
from idios.expressions.range_arithmetic import IMPOSSIBLE, LENIENT, NOTHING, STRICT, Range, between, hull, list_truths

__all__ = ["MAX_NARROWED", "Range", "find_range", "hull", "narrow"]

MAX_NARROWED = 2_000
"""How many parts a CASE may have, written out, in whose branches ranges are narrowed."""


def find_range(expression: Expression, ranges: Mapping[Any, Range], known: dict[int, Range] | None = None) -> Range:
    """A range that holds every value of the expression, where each reference lies in its own.

    ``known`` has those of nodes, by identity, for several expressions.

    >>> from fractions import Fraction
    >>> share = Call("/", (Reference("a"), Call("+", (Reference("a"), Literal(Fraction(1))))))
    >>> print(find_range(share, {"a": Range(Fraction(0), Fraction(9))}))
    0 to 9
    """
    return _find(expression, ranges, {} if known is None else known)


def _find(expression: Expression, ranges: Mapping[Any, Range], known: dict[int, Range]) -> Range:
    """The same where the ranges of some nodes are known, by identity."""
    if isinstance(expression, Literal):
        return Range.of(expression.value)
    if isinstance(expression, Reference):
        return ranges[expression.name]
    if id(expression) not in known:
        known[id(expression)] = (
            _find_case(expression, ranges, known)
            if isinstance(expression, Case)
            else _find_call(expression, ranges, known)
        )
    return known[id(expression)]


def _find_call(call: Call, ranges: Mapping[Any, Range], known: dict[int, Range]) -> Range:
    arguments = [_find(argument, ranges, known) for argument in call.arguments]
    if not FUNCTIONS[call.function].strict:
        return LENIENT[call.function](arguments)
    nullable = any(argument.nullable for argument in arguments)
    if any(argument.empty for argument in arguments):
        return NOTHING
    found = STRICT[call.function](*arguments)
    return replace(found, nullable=True) if nullable else found


# CASE.


def _find_case(case: Case, ranges: Mapping[Any, Range], known: dict[int, Range]) -> Range:
    narrows = case.written_out <= MAX_NARROWED
    seen: list[Range] = []
    for condition, value in case.branches:
        truths = list_truths(_find(condition, ranges, known))
        taken = ranges if not narrows else narrow(condition, ranges, holds=True) if True in truths else None
        if True in truths and taken is not None:
            seen.append(_find(value, taken, known if taken is ranges else {}))
        left = None if truths == {True} else narrow(condition, ranges, holds=False) if narrows else ranges
        if left is None:
            return hull(seen)
        ranges, known = left, known if left is ranges else {}
    return hull([*seen, _find(case.otherwise, ranges, known)])


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
    return _narrow(condition, ranges, holds, set())


def _narrow(
    condition: Expression, ranges: Mapping[Any, Range], holds: bool, done: set[tuple[int, bool]]
) -> Mapping[Any, Range] | None:
    """The same but for those conditions, by identity and truth, that were narrowed by before."""
    if (id(condition), holds) in done:
        return ranges
    done.add((id(condition), holds))
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
            left = None if left is None else _narrow(argument, left, holds, done)
        return left
    if function == "not" and isinstance(inner := arguments[0], Call):
        if inner.function in _OPPOSITE:
            return _narrow_both(_OPPOSITE[inner.function], inner.arguments, ranges, holds=holds)
        if inner.function in ("is null", "is distinct"):  # never NULL itself
            return _narrow(inner, ranges, not holds, done)
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
