"""What a column in memory is, by its type alone: lists, numpy, pandas, polars and Arrow.

Rules:

1. The kind, the step and whether values can be missing follow from the type of the column. One record must never
   decide them, or the shape of the answer would tell of it. A list has the type of its elements, which must be one
   type; a list that mixes whole numbers and floats is refused unless a step is declared.
2. Nothing here raises an error that quotes a value.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from idios.core.domain import Kind
from idios.declare import dates
from idios.declare.dates import NARROW, Array
from idios.errors import InvalidInput

_PLAIN = frozenset({str, int, bool})
_NUMBERS = {Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL}


@dataclass(frozen=True)
class TypedValues:
    """Values as numbers (dates in days, timestamps in microseconds since 1970) beside the facts of their type.

    ``present`` says which values are there, None if the type cannot miss any. ``decimals`` is the scale of a decimal
    type, None where the type has none.
    """

    values: Array
    kind: Kind
    present: Array | None
    decimals: int | None = None


def read_typed(values: Any, *, mixed: bool = False) -> TypedValues:
    """Read a column by its type; ``mixed`` allows a list of several numeric types, for which a step is declared."""
    column = unwrap(values)
    if isinstance(column, list):
        return _listed(column, mixed)
    return _numpy(column, mixed) if isinstance(column, np.ndarray) else _arrow(column)


def unwrap(values: Any, name: str = "values") -> Any:
    """The column as a list, a numpy array of one dimension, or an Arrow array without dictionary.

    ``name`` is what an error message calls it.
    """
    if isinstance(values, list | tuple | range):
        return list(values)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _decoded(values)
    module, dtype = type(values).__module__.partition(".")[0], getattr(values, "dtype", None)
    if module in ("pandas", "polars", "pyarrow") and dtype is None:
        raise InvalidInput(f"{name} must be one column, got a whole {type(values).__name__}: select a column of it")
    if module == "pandas":
        of = getattr(dtype, "categories", None)  # what a categorical holds; one that holds nothing may be anything
        if isinstance(dtype, np.dtype) or (of is not None and (of.dtype == np.dtype(object) or not len(of))):
            values = np.asarray(values.to_numpy(), dtype=None if of is None else object)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InvalidInput(f"{name} must have one dimension, got {values.ndim}")
        return values
    if module not in ("pandas", "polars"):
        raise InvalidInput(f"{name} must be a list or one column, got {type(values).__name__}")
    try:
        # All of pandas' and polars' own types keep their type in Arrow, whether or not a value is missing.
        return _decoded(pa.array(values, from_pandas=True) if module == "pandas" else values.to_arrow())
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        raise InvalidInput(f"{name} must be a column of one plain type, got a column of {dtype}") from None


def _decoded(values: Any) -> Any:
    if not pa.types.is_dictionary(values.type):
        return values
    return values.cast(values.type.value_type) if isinstance(values, pa.ChunkedArray) else values.dictionary_decode()


def _arrow(values: Any) -> TypedValues:
    kind = values.type
    present = np.asarray(values.is_valid())
    if pa.types.is_decimal(kind):
        if kind.scale < 0:
            raise InvalidInput("decimals must have a scale of at least 0")
        return TypedValues(np.array(values.to_pylist(), dtype=object), Kind.DECIMAL, present, kind.scale)
    if pa.types.is_boolean(kind):
        values, column_kind = values.cast(pa.int8()), Kind.INTEGER
    elif pa.types.is_integer(kind):
        column_kind = Kind.INTEGER
    elif pa.types.is_floating(kind):
        values, column_kind = values.cast(pa.float64()), Kind.NUMBER
    elif pa.types.is_date64(kind):  # milliseconds, of which Arrow would convert whole days only
        return TypedValues(np.asarray(values.cast(pa.int64()).fill_null(0)) // (dates.DAY // 1000), Kind.DATE, present)
    elif pa.types.is_date(kind):
        values, column_kind = values.cast(pa.int32()), Kind.DATE
    elif pa.types.is_timestamp(kind):
        ticks = np.asarray(values.cast(pa.int64()).fill_null(0))
        return TypedValues(dates.ticks_to_microseconds(ticks, kind.unit), Kind.TIMESTAMP, present)
    else:
        raise InvalidInput(f"values must be numbers, dates or timestamps, got a column of {kind}")
    array = np.asarray(values.fill_null(0))
    return TypedValues(array, column_kind, present & np.isfinite(array) if column_kind is Kind.NUMBER else present)


def _numpy(values: Array, mixed: bool) -> TypedValues:
    kind = values.dtype.kind
    if kind == "O":
        return _listed(values.tolist(), mixed)  # in which what is masked is None
    hidden = None
    if isinstance(values, np.ma.MaskedArray):
        hidden, values = np.ma.getmaskarray(values), values.data
    if kind in "iub":
        typed = TypedValues(values.astype(np.int8) if kind == "b" else values, Kind.INTEGER, None)
    elif kind == "f":
        present = np.isfinite(values)
        if values.itemsize > 8:  # what lies beyond the doubles reads as the last of them
            values = np.clip(values, -sys.float_info.max, sys.float_info.max)
        typed = TypedValues(values.astype(np.float64, copy=False), Kind.NUMBER, present)
    elif kind == "M":
        present, unit = ~np.isnat(values), dates.kind_of_unit(values.dtype)
        typed = TypedValues(
            dates.datetime64_to_numbers(np.where(present, values, np.zeros(1, values.dtype))), unit, present
        )
    else:
        raise InvalidInput(f"values must be numbers, dates or timestamps, got an array of {values.dtype}")
    if hidden is None:
        return typed
    visible = ~hidden if typed.present is None else typed.present & ~hidden
    return TypedValues(typed.values, typed.kind, visible, typed.decimals)


def _listed(values: list[Any], mixed: bool) -> TypedValues:
    """A list, or an array of objects, by the one type of its elements."""
    present = [is_present(value) for value in values]
    known = {kind_of(value) for value in one_of_each_type(v for v, there in zip(values, present, strict=True) if there)}
    if not known:
        return TypedValues(np.zeros(len(values)), Kind.NUMBER, np.array(present, dtype=bool))
    if len(known) > 1 and not (mixed and known <= _NUMBERS):
        names = " and ".join(sorted(str(kind) for kind in known))
        raise InvalidInput(f"the list mixes the types {names}: give it one type, or declare a step for numbers")
    kind = known.pop() if len(known) == 1 else Kind.DECIMAL
    read = {Kind.DATE: dates.to_days, Kind.TIMESTAMP: dates.to_microseconds}.get(kind, plain_number)
    numbers = [read(value) if there else 0 for value, there in zip(values, present, strict=True)]
    dtype: type = float if kind is Kind.NUMBER else object
    if kind not in (Kind.NUMBER, Kind.DECIMAL) and all(-NARROW < number < NARROW for number in numbers):
        dtype = np.int64
    return TypedValues(np.array(numbers, dtype=dtype), kind, np.array(present, dtype=bool))


def is_present(value: Any) -> bool:
    """Whether an element of a list is there: None, NaN, ±∞, NaT, NA and what is masked are missing."""
    if type(value) in _PLAIN:
        return True
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":  # pandas' NA, without pandas
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, np.floating):
        return bool(np.isfinite(value))
    if isinstance(value, Decimal):
        return value.is_finite()
    if isinstance(value, datetime.datetime | np.datetime64):
        return bool(value == value)  # NaT is not
    return True


def one_of_each_type(values: Iterable[Any]) -> Iterable[Any]:
    """Some value of every type that occurs, which is a few of many; of numpy's datetimes, whose units differ, all."""
    return {value if type(value) is np.datetime64 else type(value): value for value in values}.values()


def kind_of(value: Any) -> Kind:
    """The kind of an element that is there; an error names its type, and nothing else of it."""
    if isinstance(value, bool | int | np.integer | np.bool_) and not isinstance(value, np.timedelta64):
        return Kind.INTEGER
    if isinstance(value, float | np.floating):
        return Kind.NUMBER
    if isinstance(value, Decimal | Fraction):
        return Kind.DECIMAL
    if isinstance(value, np.datetime64):
        return dates.kind_of_unit(value.dtype)
    if isinstance(value, datetime.datetime):
        return Kind.TIMESTAMP
    if isinstance(value, datetime.date):
        return Kind.DATE
    raise InvalidInput(f"values must be numbers, dates or timestamps, got elements of type {type(value).__name__}")


def plain_number(value: Any) -> int | float | Decimal | Fraction:
    """A number as one of Python's own; what lies beyond the doubles reads as the last of them."""
    if type(value) is int or isinstance(value, Decimal | Fraction):
        return value
    if not isinstance(value, float | np.floating):
        return int(value)
    double = float(value)
    return double if math.isfinite(double) else math.copysign(sys.float_info.max, double)
