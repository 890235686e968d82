"""Exact amounts of ε and δ, and how they are written.

Rules:

1. An amount is a fraction, never a float: ten times 0.1 is 1, and fits a budget of 1.
2. Its denominator divides one fixed number, COMMON. So do the denominators of all sums, which therefore stay
   below 500 digits however many questions are asked and however cleverly their ε are chosen.
3. It is stored as "n/d" in lowest terms, one text for one amount.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

from idios.codec import Codec, refuse
from idios.errors import InvalidInput

PLACES = 30
DENOMINATOR = 1000
LARGEST = 10**12

COMMON = math.lcm(*range(1, DENOMINATOR + 1)) * 10**PLACES

_STORED = re.compile(r"(0|[1-9][0-9]*)/([1-9][0-9]*)")


def amount(name: str, value: Fraction | int) -> Fraction:
    """The value as an exact amount, refused unless it is one.

    >>> amount("epsilon", Fraction("0.05"))
    Fraction(1, 20)
    """
    # A bool is an int to Python, but never an ε.
    if isinstance(value, bool) or not isinstance(value, (Fraction, int)):
        raise InvalidInput(f"{name} must be an exact Fraction, not {value!r}: write Fraction('0.1'), not 0.1")
    exact = Fraction(value)
    if not 0 <= exact <= LARGEST:
        raise InvalidInput(f"{name} must be between 0 and {LARGEST}, not {_abridged(exact)}")
    if COMMON % exact.denominator:
        raise InvalidInput(
            f"{name} must be a decimal of at most {PLACES} places or a fraction with a denominator of at "
            f"most {DENOMINATOR}, not {_abridged(exact)}; a float is made exact by Fraction(str(x)), not by "
            "Fraction(x)"
        )
    return exact


def optional_amount(name: str, value: Fraction | int | None) -> Fraction | None:
    """The same for an amount that may be left open."""
    return None if value is None else amount(name, value)


def stored(value: Fraction) -> str:
    """The amount as it is stored and signed.

    >>> stored(Fraction(2)), stored(Fraction(2, 6))
    ('2/1', '1/3')
    """
    return f"{value.numerator}/{value.denominator}"


def read(text: str) -> Fraction:
    """The amount behind a stored text; ValueError if it is not one that `stored` writes.

    >>> read("1/3")
    Fraction(1, 3)
    """
    match = _STORED.fullmatch(text)
    if match is None:
        raise ValueError("an amount is stored as n/d")
    value = Fraction(int(match[1]), int(match[2]))
    if stored(value) != text:
        raise ValueError("an amount is stored in lowest terms")
    return value


def _abridged(value: Fraction) -> str:
    # Python refuses to print integers of more than a few thousand digits, and no reader wants forty.
    bits = value.numerator.bit_length() + value.denominator.bit_length()
    return str(value) if bits < 400 else f"a fraction of {bits} bits"


Plain = str | int | None
"""A field of a record as it is stored."""


def _read_amount(value: Any, what: str) -> Fraction:
    if not isinstance(value, str):
        raise refuse(what, "an amount as n/d", value)
    return read(value)


RECORDS = Codec(stored, _read_amount, exact_keys=True)
"""The ledger's records as JSON: amounts as n/d, and exactly the record's own fields. What is signed is made of it."""
