"""Interval arithmetic: what an expression can be, where each of its references lies in a known range.

It has two users. The bounds of a derived column follow from those that its columns declare. The interval of what is
computed from released values follows from theirs: where all of those hold together, so does this one, as the truth is
the same expression of the true values.

Rules:

1. A range holds every value that the expression can have, NULL included; it may hold more. It is exact where each
   reference occurs once and no function jumps.
2. A reference that occurs twice is taken as two: x − x is not 0.
3. Only CASE knows better: in a branch its condition is true and those before it are not, so that what they compare
   lies on the right side of it. A condition that cannot be true has no branch.
4. A node is computed once for the ranges of its references. Each branch of a CASE has its own, so that one with more
   parts than ``MAX_NARROWED``, written out, takes those around it: CASEs that share their branches would be 2ⁿ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from idios.declare.dates import DAY, split_date
from idios.expressions.language import FUNCTIONS, Call, Case, Expression, Literal, Reference, Value

# Ranges of values, and what each function of the language of expressions makes of them.
#
# Rules:
#
# 1. What a function makes of ranges holds every value that it has on values in them, NULL included, and where the
#    function does not jump nothing else. The ranges are taken as independent of each other.
# 2. Division by a range that has 0 in it may be NULL, and has no limit on a side where the divisor comes near 0.
# 3. A part of a moment, such as its month, rises within a period and begins anew with the next one. Over more than one
#    period it may be anything that it ever is.


End: TypeAlias = Fraction | float
"""An end of an interval; a float is ±∞."""

MAX_COMBINATIONS = 10_000
"""How many texts are tried out for LIKE; beyond it may be true or false."""


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high`` (None: without limit), and NULL where it is ``nullable``.

    ``values`` are those of text or truth that are possible. It is empty for what can be nothing but NULL, of any type.
    With neither limits nor values a range is that of anything.

    >>> print(Range(Fraction(0), Fraction(9)), Range.of("a"), Range.of(None), Range(nullable=True), sep="; ")
    0 to 9; 'a'; NULL; anything or NULL
    """

    low: Fraction | None = None
    high: Fraction | None = None
    nullable: bool = False
    values: frozenset[str | bool] | None = None

    @classmethod
    def of(cls, value: Value) -> Range:
        """The range of one value."""
        if value is None:
            return NOTHING
        return cls(value, value) if isinstance(value, Fraction) else cls(values=frozenset([value]))

    @property
    def empty(self) -> bool:
        """Whether it has nothing but NULL."""
        return self.values is not None and not self.values

    @property
    def ends(self) -> tuple[Any, Any]:
        """The least and the greatest value; ±∞ where there is no limit."""
        if self.values is not None:
            return min(self.values), max(self.values)
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high

    @property
    def single(self) -> Value:
        """The only value, if there is one and no NULL beside it; else None."""
        low, high = (None, None) if self.empty else self.ends
        return None if self.nullable or low != high else low

    def __str__(self) -> str:
        if self.values is not None:
            said = ", ".join(map(repr, sorted(self.values)))
        elif self.low is self.high is None:
            said = "anything"
        else:
            low, high = ("…" if end is None else str(end) for end in (self.low, self.high))
            said = low if low == high else f"{low} to {high}"
        return " or ".join(filter(None, [said, "NULL" * self.nullable]))


IMPOSSIBLE = Range(values=frozenset())
NOTHING = replace(IMPOSSIBLE, nullable=True)
"""That of NULL."""
EITHER = Range(values=frozenset([True, False]))


def hull(ranges: Iterable[Range]) -> Range:
    """The least range that holds all of these.

    >>> print(hull([Range.of(Fraction(2)), NOTHING, Range.of(Fraction(5))]))
    2 to 5 or NULL
    """
    listed = list(ranges)
    nullable = any(each.nullable for each in listed)
    known = [each for each in listed if not each.empty]
    if not known:
        return replace(IMPOSSIBLE, nullable=nullable)
    texts = [each.values for each in known if each.values is not None]
    if texts and len(texts) == len(known):
        return Range(nullable=nullable, values=frozenset().union(*texts))
    if texts:  # of text of which nothing is known
        return Range(nullable=nullable)
    return replace(between(min(r.ends[0] for r in known), max(r.ends[1] for r in known)), nullable=nullable)


def between(low: End, high: End) -> Range:
    """The range between two ends."""
    return Range(None if isinstance(low, float) else low, None if isinstance(high, float) else high)


def _truth(*possible: tuple[bool, bool]) -> Range:
    return Range(values=frozenset(truth for truth, may_be in possible if may_be))


# Arithmetic.


def _plus(a: End, b: End) -> End:
    # ∞ first: a fraction may be too large for a float
    return a if isinstance(a, float) else b if isinstance(b, float) else a + b


def _times(a: End, b: End) -> End:
    if not a or not b:
        return Fraction(0)
    if isinstance(a, float) or isinstance(b, float):
        return math.inf if (a > 0) == (b > 0) else -math.inf
    return a * b


def _add(a: Range, b: Range) -> Range:
    return between(*(_plus(x, y) for x, y in zip(a.ends, b.ends, strict=True)))


def _negate(a: Range) -> Range:
    if a.empty:
        return a
    low, high = a.ends
    return replace(between(-high, -low), nullable=a.nullable)


def _multiply(a: tuple[End, End], b: tuple[End, End]) -> Range:
    corners = [_times(x, y) for x, y in product(a, b)]
    return between(min(corners), max(corners))


def _divide(a: Range, b: Range) -> Range:
    low, high = b.ends
    if low == high == 0:
        return NOTHING
    zero = low <= 0 <= high
    inverse: tuple[End, End] = (-math.inf, math.inf)
    if low >= 0 or high <= 0:  # 1/b falls
        inverse = _invert(high, -math.inf), _invert(low, math.inf)
    return replace(_multiply(a.ends, inverse), nullable=zero)


def _invert(end: End, at_zero: float) -> End:
    return Fraction(0) if isinstance(end, float) else 1 / end if end else at_zero


def _find_size(a: Range) -> Range:
    low, high = a.ends
    least = low if low >= 0 else -high if high <= 0 else Fraction(0)
    return between(least, max(-low, high))


def _rise(function: str, *parameters: Fraction) -> Callable[[Range], Range]:
    """What a function that never falls makes of a range."""

    def compute(end: Fraction | None) -> Fraction | None:
        return None if end is None else FUNCTIONS[function].compute(end, *parameters)

    return lambda a: Range(compute(a.low), compute(a.high))


def _round(a: Range, digits: Range) -> Range:
    return Range() if not isinstance(digits.single, Fraction) else _rise("round", digits.single)(a)


def _extract(part: str, least: int, most: int, find_period: Callable[[Fraction], Any]) -> Callable[[Range], Range]:
    """A part of a moment: it rises within a period, and begins anew with the next."""

    def extract(a: Range) -> Range:
        if a.low is None or a.high is None or find_period(a.low) != find_period(a.high):
            return Range(Fraction(least), Fraction(most))
        return _rise(f"extract {part}")(a)

    return extract


def _split(days: Fraction) -> dict[str, int]:
    return split_date(math.floor(days))


# Comparison.


def _compare(function: str) -> Callable[[Range, Range], Range]:
    """Whether a comparison may be true, and false, of values anywhere in two ranges."""

    def compare(a: Range, b: Range) -> Range:
        if (a.values is None) != (b.values is None):  # a text of which nothing is known
            return EITHER
        (a_low, a_high), (b_low, b_high) = a.ends, b.ends
        same = a_low <= b_high and b_low <= a_high
        if a.values is not None and b.values is not None:
            same = bool(a.values & b.values)
        differs = not a_low == a_high == b_low == b_high
        less, more = a_low < b_high, a_high > b_low
        true, false = {
            "=": (same, differs),
            "<>": (differs, same),
            "<": (less, a_high >= b_low),
            "<=": (a_low <= b_high, more),
            ">": (more, a_low <= b_high),
            ">=": (a_high >= b_low, less),
        }[function]
        return _truth((True, true), (False, false))

    return compare


def _match(function: str) -> Callable[..., Range]:
    """LIKE, of every text and pattern that is possible."""

    def match(*arguments: Range) -> Range:
        sets = [argument.values for argument in arguments if argument.values is not None]
        if len(sets) < len(arguments) or math.prod(map(len, sets)) > MAX_COMBINATIONS:
            return EITHER
        found: set[bool] = set()
        for texts in product(*sets):
            found.add(FUNCTIONS[function].compute(*texts))
            if len(found) == 2:
                break
        return Range(values=frozenset(found))

    return match


# Where NULL is more than NULL.


def list_truths(argument: Range) -> frozenset[Any]:
    """True, False and None (NULL), as far as they are possible."""
    known = frozenset([True, False]) if argument.values is None else argument.values
    return known | {None} if argument.nullable else known


def _connect(decides: bool) -> Callable[[list[Range]], Range]:
    """OR, which one true argument decides; AND is its mirror image."""

    def connect(arguments: list[Range]) -> Range:
        truths = [list_truths(argument) for argument in arguments]
        decided = any(decides in each for each in truths)
        against = all((not decides) in each for each in truths)
        unknown = any(None in each for each in truths) and all(each - {decides} for each in truths)
        return replace(_truth((decides, decided), (not decides, against)), nullable=unknown)

    return connect


def _greatest(arguments: list[Range]) -> Range:
    """At least what is surely there, and where nothing is, at least the least of all."""
    known = [argument for argument in arguments if not argument.empty]
    nullable = all(argument.nullable for argument in arguments)
    if not known or any(argument.values is not None for argument in known):
        return replace(hull(known), nullable=nullable)
    surely = [argument.ends[0] for argument in known if not argument.nullable]
    low = max(surely) if surely else min(argument.ends[0] for argument in known)
    return replace(between(low, max(argument.ends[1] for argument in known)), nullable=nullable)


def _least(arguments: list[Range]) -> Range:
    if any(argument.values for argument in arguments):
        return _greatest(arguments)
    return _negate(_greatest([_negate(argument) for argument in arguments]))


def _coalesce(arguments: list[Range]) -> Range:
    sure = next((i for i, argument in enumerate(arguments) if not argument.nullable), None)
    return replace(hull(arguments if sure is None else arguments[: sure + 1]), nullable=sure is None)


def _nullif(arguments: list[Range]) -> Range:
    a, b = arguments
    if a.empty or b.empty:
        return a
    same = list_truths(_compare("=")(a, b))
    if same == {True} and not b.nullable:
        return NOTHING
    if a.values is not None and b.single is not None:
        a = replace(a, values=a.values - {b.single})
    return replace(a, nullable=a.nullable or True in same)


def _is_null(arguments: list[Range]) -> Range:
    [argument] = arguments
    return _truth((True, argument.nullable), (False, not argument.empty))


def _is_distinct(arguments: list[Range]) -> Range:
    a, b = arguments
    same: frozenset[Any] = frozenset() if a.empty or b.empty else list_truths(_compare("=")(a, b))
    one_null = (a.nullable and not b.empty) or (b.nullable and not a.empty)
    return _truth((True, False in same or one_null), (False, True in same or (a.nullable and b.nullable)))


STRICT: Mapping[str, Callable[..., Range]] = {
    "+": _add,
    "-": lambda a, b: _add(a, _negate(b)),
    "*": lambda a, b: _multiply(a.ends, b.ends),
    "/": _divide,
    "abs": _find_size,
    "round": _round,
    "floor": _rise("floor"),
    "ceil": _rise("ceil"),
    **{function: _compare(function) for function in ("=", "<>", "<", "<=", ">", ">=")},
    "not": lambda a: Range(values=frozenset(not truth for truth in list_truths(a) if truth is not None)),
    "like": _match("like"),
    "ilike": _match("ilike"),
    "extract year": _rise("extract year"),
    "extract quarter": _extract("quarter", 1, 4, lambda days: _split(days)["year"]),
    "extract month": _extract("month", 1, 12, lambda days: _split(days)["year"]),
    "extract day": _extract("day", 1, 31, lambda days: (_split(days)["year"], _split(days)["month"])),
    "extract dow": _extract("dow", 0, 6, lambda days: (math.floor(days) + 4) // 7),
    "extract hour": _extract("hour", 0, 23, lambda moment: moment // DAY),
    "extract minute": _extract("minute", 0, 59, lambda moment: moment // (DAY // 24)),
    "extract second": _extract("second", 0, 59, lambda moment: moment // (DAY // 1440)),
}
LENIENT: Mapping[str, Callable[[list[Range]], Range]] = {
    "and": _connect(decides=False),
    "or": _connect(decides=True),
    "greatest": _greatest,
    "least": _least,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "is null": _is_null,
    "is distinct": _is_distinct,
}


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
