"""The values of an answer: exact text as it is stored, and Python's own."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

from idios.codec import read_number
from idios.display import to_float
from idios.errors import InvalidInput

PYTHON_TYPES = {
    "integer": int,
    "number": float,
    "date": datetime.date,
    "timestamp": datetime.datetime,
    "category": str,
    "boolean": bool,
}
"""What ``python_value`` makes of each kind of value."""


def python_value(stored: str | None, kind: str) -> Any:
    """A stored value as Python's own."""
    if stored is None or kind == "category":
        return stored
    if kind == "date":
        return datetime.date.fromisoformat(stored)
    if kind == "timestamp":
        return datetime.datetime.fromisoformat(stored)
    if kind == "boolean":
        return stored == "true"
    if kind == "integer":
        return int(stored)
    # both are the nearest float, and what has no denominator is read faster
    return to_float(Fraction(stored)) if "/" in stored else float(stored)


def infer_kind(values: list[Any]) -> str | None:
    """The kind of a column's values, if any of them is there to tell; among whole numbers one float decides."""
    present = {type(value) for value in values if value is not None}
    for kind in ("number", "integer", "timestamp", "date", "category", "boolean"):
        if PYTHON_TYPES[kind] in present:
            return kind
    return None


def read_value(stored: Any, kind: str | None, column: str) -> Any:
    """A stored value as Python's own, from a source that is not trusted."""
    if stored is None:
        return None
    if kind not in PYTHON_TYPES:
        raise InvalidInput(
            f"an answer: types must give column {column!r} one of {', '.join(PYTHON_TYPES)}, got {kind!r}"
        )
    if not isinstance(stored, str):
        raise InvalidInput(f"an answer: the values of column {column!r} must be written as text")
    if kind in ("integer", "number"):
        read_number(stored, f"an answer: a value of column {column!r}")
    try:
        return python_value(stored, kind)
    except (ValueError, OverflowError):
        raise InvalidInput(f"an answer: a value of column {column!r} is not of the type {kind}") from None


def plain_number(exact: Fraction | None) -> int | float | None:
    """An exact number as Python's own."""
    if exact is None:
        return None
    # a float ends before 2¹⁰²⁴
    return int(exact) if exact.denominator == 1 or abs(exact) >= 2**1023 else float(exact)
