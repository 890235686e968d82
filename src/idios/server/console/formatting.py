"""Numbers and times for people to read, levels of protection and neighbours in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from idios.core.exact import text as exact_text
from idios.core.neighbours import to_plural
from idios.display import format_digits, format_number, to_float

THIN = "\u202f"
NUMERIC_KINDS = ("integer", "number")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{,3999})(\.[0-9]{1,3999}|/[1-9][0-9]{,3999})?")
"""As exact numbers are written, and none that is too long for Python to read."""
_MIDNIGHT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T00:00:00")

LEVELS = {
    "differential": "Holds against any attacker, whatever they know or ask and whatever the data: a change of one "
    "{one} hardly changes the probability of any answer.",
    "group": "Protects groups of up to {group} {several} of the actual data{growth}. How the noise was fitted to the "
    "data is not covered, so this level is for analysts who are trusted.",
    "individual": "Protects each single {one} of the actual data. How the noise was fitted to the data is not "
    "covered, so this level is for analysts who are trusted.",
}
NEIGHBOURS = {
    "replace": "a change is replacing one {one} by another; the number of {several} is public",
    "add-remove": "a change is adding or removing one {one}; the number of {several} is protected too",
}


def format_amount(value: Fraction | str | None) -> str:
    """Format an amount of ε or δ: exact where that is short, else four digits.

    >>> [format_amount(value) for value in ("0.5", Fraction(1, 3), None, "0.0001", Fraction(97, 10**6))]
    ['0.5', '≈\u202f0.3333', 'no limit', '1e-4', '9.7e-5']
    """
    if value is None:
        return "no limit"
    number = Fraction(value)
    text = str(exact_text(number))
    tiny = 0 < abs(number) < Fraction(1, 1000)
    if len(text) <= 6 and "/" not in text and not tiny:
        return text
    close = format_digits(number, 4, power=tiny)
    return close if Fraction(close) == number else f"≈{THIN}{close}"


def format_quantity(value: Fraction | str | None, letter: str = "ε") -> str:
    """Format an amount with its letter.

    >>> format_quantity("0.5"), format_quantity(Fraction(1, 3)), format_quantity("0.000001", "δ")
    ('ε = 0.5', 'ε ≈\u202f0.3333', 'δ = 1e-6')
    """
    text = format_amount(value)
    return text if value is None else f"{letter} {text}" if text[0] == "≈" else f"{letter} = {text}"


def format_value(value: str | None, kind: str = "number") -> str:
    """Format a released value of a kind: as ``format_number`` does; a midnight as its date, names as they are.

    >>> [format_value(value) for value in ("41320", "-1234567.250001", "2026-01-31T00:00:00", None, "1/3")]
    ['41,320', '−1,234,567.25', '2026-01-31', 'NULL', '0.333333']
    >>> [format_value(value) for value in ("-1" + "0" * 310, "200" + "0" * 40 + "/3", "0.000000125", "0.0")]
    ['−1e310', '6.667e41', '1.25e-7', '0']
    >>> format_value("41320", "category"), format_value("007", "category")
    ('41320', '007')
    """
    if value is None:
        return "NULL"
    if kind not in NUMERIC_KINDS or not _NUMBER.fullmatch(value):
        midnight = _MIDNIGHT.fullmatch(value) if kind != "category" else None
        return value if midnight is None else midnight[1]
    return format_number(Fraction(value))


def format_limits(limits: Sequence[str]) -> str:
    """Format the limits that values were clipped to.

    >>> format_limits(["-1200", "88000"])
    '[−1,200, 88,000]'
    """
    return f"[{', '.join(map(format_value, limits))}]"


def parse_number(value: str | None) -> float | None:
    """Parse a released value as the nearest float, which may be infinite; None if it is no number.

    >>> parse_number("41320"), parse_number("1/4"), parse_number("north"), parse_number(None)
    (41320.0, 0.25, None, None)
    """
    if value is None or not _NUMBER.fullmatch(value):
        return None
    return to_float(Fraction(value))


def format_rough(value: float | None) -> str:
    """Format a rough number, such as an expected error: three digits.

    >>> format_rough(1234567.0), format_rough(0.01234), format_rough(None), format_rough(3e15)
    ('1,230,000', '0.0123', '—', '3e+15')
    """
    if value is None:
        return "—"
    if value != 0 and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.3g}"
    return format_value(exact_text(Fraction(f"{value:.3g}")))


def format_time(iso: str) -> str:
    """Format a time: to the second, in UTC.

    >>> format_time("2026-11-14T09:30:05.123456+00:00")
    '2026-11-14 09:30:05'
    """
    return iso[:19].replace("T", " ")


def describe_level(described: dict[str, Any]) -> str:
    """Say what a data set's level of protection means."""
    multiples, growth = described.get("multiples"), ""
    if multiples:
        flat = set(multiples) == {"1"}
        growth = (
            ", all of them together like one" if flat else f", i of them with the i-th of {', '.join(multiples)} × ε"
        )
    words = describe_unit(described)
    return LEVELS[str(described["level"])].format(group=described["group"], growth=growth, **words)


def describe_unit(described: dict[str, Any]) -> dict[str, str]:
    """Say what one change is about, and several of it.

    >>> describe_unit({"unit_word": "person"})
    {'one': 'person', 'several': 'people'}
    """
    word = str(described.get("unit_word", "record"))
    return {"one": word, "several": to_plural(word)}


def describe_neighbours(described: dict[str, Any]) -> str:
    """Say between which data sets an analyst must not be able to tell."""
    unit, names = describe_unit(described), described.get("unit")
    words = NEIGHBOURS[str(described["neighbours"])].format(**unit)
    return f"{words}. All rows with the same {' and '.join(names)} are of one {unit['one']}" if names else words
