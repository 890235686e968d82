"""Exact numbers: those that people write are read without rounding, and written without.

A privacy parameter is a fraction: 0.1 is one tenth, whether it arrives as text, as a decimal or as the float that
Python prints as ``0.1``. What is irrational is certified by ``enclosures.py``.
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
_COMMA = re.compile(rf"{_BLANK}([+-]?[0-9]{{1,9}}),([0-9]{{1,2}}){_BLANK}")  # three digits may be thousands
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
        comma = isinstance(value, str) and _COMMA.fullmatch(value)
        point = f": write {comma[1]}.{comma[2]}" if comma else ""
        raise InvalidInput(f"{name} must be a finite number, got {format_value(value)}{point}") from None


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
    if type(value) is Fraction:  # which is almost always so; the checks below take longer than all else
        return value
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
        raise InvalidInput(f"{name} must be greater than 0, got {format_value(value)}")
    return number


def whole(value: object, name: str, least: int = 1) -> int:
    """Read one whole number, at least ``least``."""
    number = exact(value, name)
    if number.denominator != 1 or number < least:
        raise InvalidInput(f"{name} must be a whole number, at least {least}, got {format_value(value)}")
    return number.numerator


def count_places(denominator: int) -> int | None:
    """How many digits a fraction of this denominator has after the point; None if they never end.

    >>> count_places(1), count_places(40), count_places(3)
    (0, 3, None)
    """
    rest, twos, fives = denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def text(value: Extended | None) -> str | None:
    """Write a number exactly: a decimal where it ends, otherwise a fraction.

    >>> text(Fraction(1, 4)), text(Fraction(1, 3)), text(41320), text(-math.inf), text(None)
    ('0.25', '1/3', '41320', '-inf', None)
    """
    if value is None:
        return None
    if isinstance(value, float):
        return "inf" if value > 0 else "-inf"
    number = value if type(value) is Fraction else Fraction(value)
    places = count_places(number.denominator)
    if places is None:
        return f"{number.numerator}/{number.denominator}"
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def round_up_digits(number: Fraction, digits: int) -> Fraction:
    """The number with so many significant digits, rounded up: a bound stays one.

    >>> [str(round_up_digits(Fraction(n), 3)) for n in ("1/3", "-1/3", "123456")]
    ['167/500', '-333/1000', '124000']
    """
    if number == 0:
        return number
    size = abs(number)
    places = digits - math.floor(math.log10(size.numerator) - math.log10(size.denominator)) - 1
    return Fraction(math.ceil(number * Fraction(10) ** places)) / Fraction(10) ** places


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


def floor_half_up(value: Extended, times: int = 1) -> int | float:
    """The whole number nearest to so many times the value, halves upwards: ⌊v + ½⌋, monotone, infinities kept.

    >>> floor_half_up(Fraction(5, 2)), floor_half_up(Fraction(-5, 2)), floor_half_up(Fraction(1, 3), 100)
    (3, -2, 33)
    >>> floor_half_up(math.inf)
    inf
    """
    if isinstance(value, float):
        return value * times
    top, bottom = value.numerator * times, value.denominator
    return (2 * top + bottom) // (2 * bottom)


def round_root_down(square: Fraction) -> Fraction:
    """The root of a number, exactly where that is a fraction, otherwise rounded down to six digits or more.

    >>> str(round_root_down(Fraction(1, 9))), text(round_root_down(Fraction(2)))
    ('1/3', '1.414213')
    """
    return _enclose_root(square)[0]


def round_root_up(square: Fraction) -> Fraction:
    """The root of a number, exactly where that is a fraction, otherwise rounded up to six digits or more."""
    return _enclose_root(square)[1]


def _enclose_root(square: Fraction) -> tuple[Fraction, Fraction]:
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top**2 == square.numerator and bottom**2 == square.denominator:
        return Fraction(top, bottom), Fraction(top, bottom)
    places = 6
    while square * 100**places < 10**10:
        places += 1
    digits = math.isqrt(math.floor(square * 100**places))
    return Fraction(digits, 10**places), Fraction(digits + 1, 10**places)


def format_value(value: object) -> str:
    """Write what was given, shortened where it is long, for a message about it."""
    try:
        written = repr(value)
    except ValueError:  # Python prints no integer of more than a few thousand digits
        return f"a very large {type(value).__name__}"
    return written if len(written) <= 60 else f"{written[:57]}..."
