"""Numbers as people write them, read without rounding.

A privacy parameter is a fraction: 0.1 is one tenth, whether it arrives as text, as a
decimal or as the float that Python prints as ``0.1``.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

from idios.errors import InvalidInput

Number: TypeAlias = int | float | str | Decimal | Fraction
"""What a person may write where a number is asked for."""

Extended: TypeAlias = int | float | Fraction
"""An exact number, or one of the floats −∞ and +∞. No other float is ever in this type."""

INFINITY = math.inf


def exact(value: object, name: str) -> Fraction:
    """Read one finite number exactly; ``name`` is what an error message calls it.

    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon"), exact("1e-6", "delta")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000))
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, float):
            return Fraction(repr(float(value)))
        if isinstance(value, (str, Decimal)):
            return Fraction(_modest(value))
        if hasattr(value, "dtype"):  # a numpy scalar, as it prints itself
            return Fraction(_modest(str(value)))
        raise TypeError
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        raise InvalidInput(f"{name} must be a finite number, got {_shown(value)}") from None


def _modest(value: str | Decimal) -> str | Decimal:
    """The number, unless writing it out would take for ever: at most 200 characters and 400 places either way."""
    written = str(value)
    exponent = written.lower().partition("e")[2]
    if len(written) > 200 or (exponent and abs(int(exponent)) > 400):
        raise ValueError
    return value


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
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
