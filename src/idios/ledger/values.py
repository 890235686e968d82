"""Values as the ledger checks and writes them: exact amounts of ε, δ and ρ, names, lines of text, numbers, times.

Rules:

1. An amount is a fraction, never a float: ten times 0.1 is 1, and fits a budget of 1.
2. Its denominator divides one fixed number, COMMON. So do the denominators of all sums, which therefore stay
   below 500 digits however many questions are asked and however cleverly their ε are chosen.
3. It is stored as "n/d" in lowest terms, one text for one amount.
4. ρ is computed, not written by a person: ε²/2 may have a denominator that does not divide COMMON. It is then rounded
   up, so that what is counted as spent is never less than what was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from idios.codec import Codec, refuse
from idios.core.concentrated import pure_rho
from idios.errors import InvalidInput
from idios.model import Cost

PLACES = 30
DENOMINATOR = 1000
LARGEST = 10**12

COMMON = math.lcm(*range(1, DENOMINATOR + 1)) * 10**PLACES

LONGEST = 200
LONGEST_TEXT = 1000

Clock = Callable[[], datetime]

_STORED = re.compile(r"(0|[1-9][0-9]*)/([1-9][0-9]*)")


def check_amount(name: str, value: Fraction | int) -> Fraction:
    """Return the value as an exact amount; refuse what is none.

    >>> check_amount("epsilon", Fraction("0.05"))
    Fraction(1, 20)
    """
    # A bool is an int to Python, but never an ε.
    if isinstance(value, bool) or not isinstance(value, (Fraction, int)):
        raise InvalidInput(f"{name} must be an exact Fraction, not {value!r}: write Fraction('0.1'), not 0.1")
    exact = Fraction(value)
    if not 0 <= exact <= LARGEST:
        raise InvalidInput(f"{name} must be between 0 and {LARGEST}, not {_abridge(exact)}")
    if COMMON % exact.denominator:
        raise InvalidInput(
            f"{name} must be a decimal of at most {PLACES} places or a fraction with a denominator of at "
            f"most {DENOMINATOR}, not {_abridge(exact)}; a float is made exact by Fraction(str(x)), not by "
            "Fraction(x)"
        )
    return exact


def check_optional_amount(name: str, value: Fraction | int | None) -> Fraction | None:
    """Do the same for an amount that may be left open."""
    return None if value is None else check_amount(name, value)


def round_rho_up(value: Fraction | int) -> Fraction:
    """Return this ρ if it can be stored as it is, otherwise rounded up to 30 places.

    >>> round_rho_up(Fraction(1, 98)), round_rho_up(Fraction(1, 10**40)) == Fraction(1, 10**30)
    (Fraction(1, 98), True)
    """
    if isinstance(value, bool) or not isinstance(value, (Fraction, int)):
        raise InvalidInput(f"rho must be an exact Fraction, not {value!r}")
    exact = Fraction(value)
    if not 0 <= exact <= LARGEST**2:
        raise InvalidInput(f"rho must be between 0 and {LARGEST**2}, not {_abridge(exact)}")
    if COMMON % exact.denominator == 0:
        return exact
    return Fraction(math.ceil(exact * 10**PLACES), 10**PLACES)


def make_cost(epsilon: Fraction, delta: Fraction, rho: Fraction | None = None, pure: bool = True) -> Cost:
    """Return the cost as it is added up; ρ None is ε²/2, which is enough for any answer with an ε of its own.

    >>> make_cost(Fraction(1, 10), Fraction(0)).rho
    Fraction(1, 200)
    """
    if rho is None and not pure:
        raise InvalidInput("a cost without a pure ε needs its ρ")
    return Cost(epsilon, delta, round_rho_up(pure_rho(epsilon) if rho is None else rho), pure)


def omit_rho(cost: Cost) -> Fraction | None:
    """Return ρ as it is recorded: None where that says the same."""
    return None if cost.pure and cost.rho == round_rho_up(pure_rho(cost.epsilon)) else cost.rho


def encode_amount(value: Fraction) -> str:
    """Write the amount as it is stored and signed.

    >>> encode_amount(Fraction(2)), encode_amount(Fraction(2, 6))
    ('2/1', '1/3')
    """
    return f"{value.numerator}/{value.denominator}"


def decode_amount(text: str) -> Fraction:
    """Read a stored amount; ValueError if it is not a text that `encode_amount` writes.

    >>> decode_amount("1/3")
    Fraction(1, 3)
    """
    match = _STORED.fullmatch(text)
    if match is None:
        raise ValueError("an amount is stored as n/d")
    value = Fraction(int(match[1]), int(match[2]))
    if encode_amount(value) != text:
        raise ValueError("an amount is stored in lowest terms")
    return value


def _abridge(value: Fraction) -> str:
    # Python refuses to print integers of more than a few thousand digits, and no reader wants forty.
    bits = value.numerator.bit_length() + value.denominator.bit_length()
    return str(value) if bits < 400 else f"a fraction of {bits} bits"


Plain = str | int | None
"""A field of a record as it is stored."""


def _read_amount(value: Any, what: str) -> Fraction:
    if not isinstance(value, str):
        raise refuse(what, "an amount as n/d", value)
    return decode_amount(value)


RECORDS = Codec(encode_amount, _read_amount, exact_keys=True)
"""The ledger's records as JSON: amounts as n/d, and exactly the record's own fields. What is signed is made of it."""


def check_name(what: str, value: str) -> str:
    """Return the name; refuse it unless every database stores it unchanged and every terminal shows it.

    >>> check_name("data set", "people")
    'people'
    """
    if not isinstance(value, str) or not value or len(value) > LONGEST or not value.isprintable():
        raise InvalidInput(f"a name of a {what} is 1 to {LONGEST} printable characters, not {str(value)[:LONGEST]!r}")
    return value


def check_text(what: str, value: str) -> str:
    """Return a line that a person wrote; refuse one that is empty or of several lines.

    >>> check_text("reason", "restored from the backup of Monday")
    'restored from the backup of Monday'
    """
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT or not value.isprintable():
        raise InvalidInput(
            f"a {what} is a line of 1 to {LONGEST_TEXT} printable characters, not {str(value)[:LONGEST]!r}"
        )
    return value


def check_number(what: str, value: int, largest: int = 2**63 - 1) -> int:
    """Return the number; refuse one that some database cannot compare.

    >>> check_number("before", 7)
    7
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
        raise InvalidInput(f"{what} must be an integer from 0 to {largest}, not {str(value)[:LONGEST]}")
    return value


def system_clock() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


def format_time(value: datetime) -> str:
    """Write the time as the ledger does: UTC, of fixed width, so that text order is time order.

    >>> format_time(datetime(2026, 11, 15, 12, tzinfo=UTC))
    '2026-11-15T12:00:00.000000Z'
    """
    if value.tzinfo is None:
        raise InvalidInput("the ledger's clock must give times with a time zone: use datetime.now(UTC)")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
