"""Numbers as people write them, read without rounding.

A privacy parameter is a fraction: 0.1 is one tenth, whether it arrives as text, as a
decimal or as the float that Python prints as ``0.1``.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias, TypeVar

from idios.errors import InvalidInput

Number: TypeAlias = int | float | str | Decimal | Fraction
"""What a person may write where a number is asked for."""

Extended: TypeAlias = int | float | Fraction
"""An exact number, or one of the floats −∞ and +∞. No other float is ever in this type."""

INFINITY = math.inf

Term = TypeVar("Term", bound=Any)

PLACES = 400
FARTHEST = 10**PLACES
"""Where the values of a column end, either way: far outside what a float holds."""

# [0-9], because \d, int() and Fraction() take the digits of every script.
_BLANK = r"[ \t\n\r\f\v]*"
_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TEXT = re.compile(rf"{_BLANK}([+-]?(?:[0-9]+/[0-9]+|{_DECIMAL})){_BLANK}")
_WRONG = (ValueError, TypeError, ArithmeticError)


def exact(value: object, name: str) -> Fraction:
    """Read one finite number exactly; ``name`` is what an error message calls it.

    Text is a decimal such as 0.1, -2 or 1e-6, or a fraction such as 1/3, in ASCII digits.

    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon"), exact("1e-6", "delta")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000))
    """
    try:
        ratio = _ratio(value)
        return Fraction(_modest(_written(value))) if ratio is None else ratio
    except _WRONG:
        raise InvalidInput(f"{name} must be a finite number, got {_shown(value)}") from None


def exact_value(value: object) -> Fraction:
    """Read one value of a column, which no finite number is too large or too small for.

    Beyond ±10⁴⁰⁰ it is ±10⁴⁰⁰, and nearer to 0 than 10⁻⁴⁰⁰ it is 0: writing it out could take for ever.

    >>> exact_value(Decimal("1E+999999")) == FARTHEST, exact_value(Decimal("1E-999999")), exact_value(0.1)
    (True, Fraction(0, 1), Fraction(1, 10))
    """
    try:
        number = _ratio(value)
        if number is None:
            number = _shortened(value if isinstance(value, Decimal) else _written(value))
    except _WRONG:
        raise InvalidInput("a value of the column is no finite number") from None  # and which, is private
    size, parts = abs(number.numerator), number.denominator
    if parts > FARTHEST and size * FARTHEST < parts:
        return Fraction(0)
    if size > FARTHEST and size > FARTHEST * parts:
        return Fraction(FARTHEST if number > 0 else -FARTHEST)
    return number


def _shortened(written: str | Decimal) -> Fraction:
    """The number itself, unless its exponent alone says that it is too far out or too near to 0."""
    if isinstance(written, str) and "/" in written:
        return Fraction(written)
    number = Decimal(written)
    if number.is_finite() and number and abs(number.adjusted()) > PLACES:
        far = 0 if number.adjusted() < 0 else FARTHEST
        return Fraction(-far if number.is_signed() else far)
    return Fraction(number)


def _ratio(value: object) -> Fraction | None:
    """A whole number or a fraction; numpy's timedelta64 is neither, though it is a kind of its integers."""
    if not isinstance(value, Rational) or isinstance(value, bool) or _numpy_kind(value) == "m":
        return None
    return Fraction(int(value.numerator), int(value.denominator))


def _numpy_kind(value: object) -> str:
    return str(getattr(getattr(value, "dtype", None), "kind", "none"))


def _written(value: object) -> str:
    """A number as it is written, or as a float, a decimal or a numpy scalar prints itself."""
    if isinstance(value, float):
        written = repr(float(value))
    elif isinstance(value, (str, Decimal)) or _numpy_kind(value) in ("i", "u", "f"):
        written = str(value)
    else:
        raise TypeError
    match = _TEXT.fullmatch(written)
    if match is None:
        raise ValueError
    return match[1]


def _modest(written: str) -> str:
    """The number, unless writing it out would take for ever: at most 200 characters and 400 places either way."""
    exponent = written.lower().partition("e")[2]
    if len(written) > 200 or (exponent and abs(int(exponent)) > PLACES):
        raise ValueError
    return written


def positive(value: object, name: str) -> Fraction:
    """Read one number greater than zero, exactly."""
    number = exact(value, name)
    if number <= 0:
        raise InvalidInput(f"{name} must be greater than 0, got {_shown(value)}")
    return number


def whole(value: object, name: str, least: int = 1) -> int:
    """Read one whole number, at least ``least``."""
    number = exact(value, name)
    if number.denominator != 1 or number < least:
        raise InvalidInput(f"{name} must be a whole number, at least {least}, got {_shown(value)}")
    return number.numerator


def text(value: Extended | None) -> str | None:
    """Write a number exactly: a decimal where it ends, otherwise a fraction.

    >>> text(Fraction(1, 4)), text(Fraction(1, 3)), text(41320), text(-math.inf), text(None)
    ('0.25', '1/3', '41320', '-inf', None)
    """
    if value is None:
        return None
    if isinstance(value, float):
        return "inf" if value > 0 else "-inf"
    number = Fraction(value)
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"
    places = max(twos, fives)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def plus(term: Term, other: Term) -> Term:
    """The sum, of which Python cannot compute ∞ + 10⁴⁰⁰, since it makes both floats first.

    >>> plus(10**400, INFINITY), plus(Fraction(1, 2), 1)
    (inf, Fraction(3, 2))
    """
    if isinstance(term, float) != isinstance(other, float):
        return term if isinstance(term, float) else other
    total: Term = term + other
    return total


def minus(term: Term, other: Term) -> Term:
    """The difference, likewise."""
    negative: Term = -other
    return plus(term, negative)


def floor_half_up(value: Extended) -> int | float:
    """The nearest whole number, halves upwards: ⌊v + ½⌋, monotone, infinities kept.

    >>> floor_half_up(Fraction(5, 2)), floor_half_up(Fraction(-5, 2)), floor_half_up(math.inf)
    (3, -2, inf)
    """
    if isinstance(value, float):
        return value
    number = Fraction(value)
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)


def _shown(value: object) -> str:
    try:
        written = repr(value)
    except ValueError:  # Python prints no integer of more than a few thousand digits
        return f"a very large {type(value).__name__}"
    return written if len(written) <= 60 else f"{written[:57]}..."
