"""What the values of a column of categories are, so that equal ones are equal however they were written.

Rules:

1. A column has one family: bool, number, text, date or timestamp. It follows from the type of the column; a list has
   that of its elements, which must be one.
2. Numbers are equal by value; a float that is not whole has the value that it prints: 0.1 is one tenth, in any
   precision. Dates are equal by day, timestamps by microsecond in UTC.
3. Nothing here raises an error that quotes a value of the data.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from idios.core.domain import Categories, Kind
from idios.core.exact import exact
from idios.data.columns import is_present, kind_of, one_of_each_type, read_typed, unwrap
from idios.errors import InvalidInput


class Family(StrEnum):
    """The types that categories can have."""

    BOOL = "bool"
    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"


_OF_KIND = {Kind.DATE: Family.DATE, Kind.TIMESTAMP: Family.TIMESTAMP}
_OF_NUMPY = {"b": Family.BOOL, "U": Family.TEXT, "T": Family.TEXT} | dict.fromkeys("iuf", Family.NUMBER)


@dataclass(frozen=True)
class Labels:
    """The values that are there; dates and timestamps are whole numbers.

    ``family`` is None for a list that holds nothing, and for a column of Arrow's null type.
    """

    family: Family | None
    values: list[Any]
    missing: int


def read_labels(given: Any, name: str = "values") -> Labels:
    """Read a column of categories by its type; ``name`` is what an error message calls it."""
    if isinstance(given, str | bytes):
        raise InvalidInput("values and categories must be lists or columns, not a single text")
    column = unwrap(given, name)
    if isinstance(column, np.ndarray) and column.dtype.kind == "O":
        column = column.tolist()
    if isinstance(column, list):
        values = [value for value in column if is_present(value)]
        family = _of_list(values, name)
        if family is Family.NUMBER:
            values = [value if type(value) is int else _plain(value) for value in values]
    elif isinstance(column, np.ndarray):
        values, family = _present(column), _of_array(column, name)
    else:
        if column.type == pa.string_view():  # of which Arrow drops no nulls
            column = column.cast(pa.large_string())
        floats = pa.types.is_floating(column.type)
        values = _present(np.asarray(column.drop_null())) if floats else column.drop_null().to_pylist()
        family = _of_arrow(column.type, name)
    if family in (Family.DATE, Family.TIMESTAMP):
        read = read_typed(column)
        values = (read.values if read.present is None else read.values[read.present]).tolist()
    return Labels(family, values, len(column) - len(values))


def read_declared(categories: Any) -> Labels:
    """Read the declared categories: at least one, none of them missing, all different; numbers as fractions."""
    labels = read_labels(categories, "categories")
    if labels.missing:
        raise InvalidInput("a declared category must be a value, got a missing one: leave it out")
    values: list[Any] = [_number(value) for value in labels.values] if labels.family is Family.NUMBER else labels.values
    return Labels(labels.family, list(Categories(tuple(values)).values), 0)


def count_labels(labels: Labels, declared: Labels) -> tuple[int, ...]:
    """How many values equal each of the declared categories."""
    occur, counts = Counter(labels.values), [0] * len(declared.values)
    forms = {value: place for place, value in enumerate(declared.values)}
    if declared.family is Family.NUMBER:
        # what is a tenth to Python is found by that; the float 0.1, which prints as a tenth, is not one to Python
        for place, number in enumerate(declared.values):
            double = _double(number)
            if double is not None:
                forms.setdefault(double, place)
    for form, place in forms.items():
        counts[place] += occur[form]
    return tuple(counts)


def to_list(values: Any) -> list[Any]:
    """The elements of a list or a column as its owner wrote them."""
    return list(values.to_pylist() if hasattr(values, "to_pylist") else values)


def _present(values: Any) -> list[Any]:
    """The values of an array as Python's own."""
    if isinstance(values, np.ma.MaskedArray):
        values = values.compressed()
    if values.dtype.kind != "f":
        return [value for value in values.tolist() if is_present(value)]
    values = values[np.isfinite(values)]
    if values.dtype == np.float64:
        return list(values.tolist())
    different, places = np.unique(values, return_inverse=True)
    plain = [_plain(value) for value in different]
    return [plain[place] for place in places]


def _plain(value: Any) -> Any:
    """A number as one of Python's own that prints the same, if it is not whole, as other precisions do differently."""
    if isinstance(value, np.integer):
        return int(value)
    if not isinstance(value, np.floating) or isinstance(value, float):
        return value
    return int(value) if value.is_integer() else Decimal(str(value))


def _number(value: Any) -> Fraction:
    """The number that a value stands for; 2.0**70 is that whole number, and not the rounder one that it prints as."""
    return exact(int(value) if isinstance(value, float) and value.is_integer() else value, "a category")


def _double(number: Fraction) -> float | None:
    """The double that stands for a number, if there is one."""
    try:
        double = float(number)
    except OverflowError:
        return None
    return double if _number(double) == number else None


def _of_list(values: list[Any], name: str) -> Family | None:
    families = {_of_element(value, name) for value in one_of_each_type(values)}
    if len(families) > 1:
        mixed = " and ".join(sorted(families))
        raise InvalidInput(f"{name} mix the types {mixed}: give them one type")
    return families.pop() if families else None


def _of_element(value: Any, name: str) -> Family:
    if isinstance(value, bool | np.bool_):
        return Family.BOOL
    if isinstance(value, str):
        return Family.TEXT
    try:
        return _OF_KIND.get(kind_of(value), Family.NUMBER)
    except InvalidInput:
        raise _unknown(name, f"elements of type {type(value).__name__}") from None


def _of_array(values: Any, name: str) -> Family:
    if values.dtype.kind == "M":
        return _OF_KIND[read_typed(values[:0]).kind]
    if values.dtype.kind not in _OF_NUMPY:
        raise _unknown(name, f"an array of {values.dtype}")
    return _OF_NUMPY[values.dtype.kind]


def _of_arrow(kind: Any, name: str) -> Family | None:
    if pa.types.is_null(kind):
        return None
    if pa.types.is_boolean(kind):
        return Family.BOOL
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Family.NUMBER
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Family.TEXT
    if pa.types.is_date(kind):
        return Family.DATE
    if pa.types.is_timestamp(kind):
        return Family.TIMESTAMP
    raise _unknown(name, f"a column of {kind}")


def _unknown(name: str, given: str) -> InvalidInput:
    return InvalidInput(f"{name} must be text, numbers, bools, dates or timestamps, got {given}")
