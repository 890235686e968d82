"""What a column in memory is, by its type alone: lists, numpy, pandas, polars and Arrow.

Rules:

1. The kind, the step and whether values can be missing follow from the type of the column. One record must never
   decide them, or it would be told by the shape of the answer. A list has the type of its elements, which must be one
   type; a list that mixes whole numbers and floats is refused unless a step is declared.
2. Nothing here raises an error that quotes a value.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from idios.core.domain import Kind
from idios.errors import InvalidInput

Array = NDArray[Any]

_PER_MICROSECOND = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
_MICROSECOND_LIMIT = 2**62


@dataclass(frozen=True)
class Typed:
    """Values as numbers (dates in days, timestamps in microseconds since 1970) beside the facts of their type.

    ``present`` says which values are there, None if the type cannot miss any. ``decimals`` is the scale of a decimal
    type, None where the type has none.
    """

    values: Array
    kind: Kind
    present: Array | None
    decimals: int | None = None


def typed(values: Any, *, mixed: bool = False) -> Typed:
    """Read a column by its type; ``mixed`` allows a list of several numeric types, for which a step is declared."""
    module = type(values).__module__.partition(".")[0]
    if isinstance(values, np.ndarray):
        return _numpy(values, mixed)
    if module == "pandas":
        return _pandas(values, mixed)
    if module == "polars":
        return _arrow(_one_column(values).to_arrow())
    if module == "pyarrow":
        return _arrow(_one_column(values))
    if isinstance(values, list | tuple | range):
        return _listed(list(values), mixed)
    raise InvalidInput(f"values must be a list or one column of numbers, got {type(values).__name__}")


def _one_column(values: Any) -> Any:
    if not hasattr(values, "type") and not hasattr(values, "dtype"):
        raise InvalidInput(f"values must be one column, got a whole {type(values).__name__}: select a column of it")
    return values


def _pandas(values: Any, mixed: bool) -> Typed:
    dtype = getattr(_one_column(values), "dtype", None)
    if isinstance(dtype, np.dtype):
        return _numpy(values.to_numpy(), mixed)
    try:
        # All of pandas' own types keep their type in Arrow, whether or not a value is missing.
        return _arrow(pa.array(values, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        raise InvalidInput(f"values must be numbers, dates or timestamps, got a column of {dtype}") from None


def _arrow(values: Any) -> Typed:
    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.dictionary_decode() if not isinstance(values, pa.ChunkedArray) else values.cast(kind.value_type)
        kind = kind.value_type
    present = np.asarray(values.is_valid())
    if pa.types.is_decimal(kind):
        if kind.scale < 0:
            raise InvalidInput("decimals must have a scale of at least 0")
        return Typed(np.array(values.to_pylist(), dtype=object), Kind.DECIMAL, present, kind.scale)
    if pa.types.is_boolean(kind):
        values, found = values.cast(pa.int8()), Kind.INTEGER
    elif pa.types.is_integer(kind):
        found = Kind.INTEGER
    elif pa.types.is_floating(kind):
        values, found = values.cast(pa.float64()), Kind.NUMBER
    elif pa.types.is_date(kind):
        values, found = values.cast(pa.date32()).cast(pa.int32()), Kind.DATE
    elif pa.types.is_timestamp(kind):
        return _instants(np.asarray(values.cast(pa.int64()).fill_null(0)), kind.unit, present)
    else:
        raise InvalidInput(f"values must be numbers, dates or timestamps, got a column of {kind}")
    array = np.asarray(values.fill_null(0))
    return Typed(array, found, present & np.isfinite(array) if found is Kind.NUMBER else present)


def _numpy(values: Array, mixed: bool) -> Typed:
    if values.ndim != 1:
        raise InvalidInput(f"values must have one dimension, got {values.ndim}")
    hidden = None
    if isinstance(values, np.ma.MaskedArray):
        hidden, values = np.ma.getmaskarray(values), values.data
    kind = values.dtype.kind
    if kind == "O":
        found = _listed(values.tolist(), mixed)
    elif kind in "iub":
        found = Typed(values.astype(np.int8) if kind == "b" else values, Kind.INTEGER, None)
    elif kind == "f":
        with np.errstate(over="ignore"):
            floats = values.astype(np.float64, copy=False)
        found = Typed(floats, Kind.NUMBER, np.isfinite(floats))
    elif kind == "M":
        found = _dates(values)
    else:
        raise InvalidInput(f"values must be numbers, dates or timestamps, got an array of {values.dtype}")
    if hidden is None:
        return found
    shown = ~hidden if found.present is None else found.present & ~hidden
    return Typed(found.values, found.kind, shown, found.decimals)


def _dates(values: Array) -> Typed:
    unit, times = np.datetime_data(values.dtype)
    present = ~np.isnat(values)
    if unit in ("Y", "M", "W", "D"):
        return Typed(values.astype("datetime64[D]").astype(np.int64), Kind.DATE, present)
    return _instants(values.astype(np.int64) * (times if times > 1 else 1), unit, present)


def _instants(ticks: Array, unit: str, present: Array) -> Typed:
    """Timestamps of any unit as microseconds; those that leave 64 bits become Python's integers."""
    factor = _PER_MICROSECOND.get(unit)
    ticks = np.where(present, ticks, 0)
    if factor is None:
        return Typed(ticks // {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}[unit], Kind.TIMESTAMP, present)
    if len(ticks) and int(np.abs(ticks).max()) * factor >= _MICROSECOND_LIMIT:
        ticks = ticks.astype(object)
    return Typed(ticks * factor, Kind.TIMESTAMP, present)


def _listed(values: list[Any], mixed: bool) -> Typed:
    """A list, or an array of objects, by the one type of its elements; None, NaN and ±∞ are missing."""
    present = np.array([_is_there(value) for value in values], dtype=bool)
    known = {_family(value) for value, there in zip(values, present, strict=True) if there}
    if not known:
        return Typed(np.zeros(len(values)), Kind.NUMBER, present)
    if len(known) > 1 and not (mixed and known <= {Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL}):
        names = " and ".join(sorted(str(kind) for kind in known))
        raise InvalidInput(f"the list mixes the types {names}: give it one type, or declare a step for numbers")
    kind = known.pop() if len(known) == 1 else Kind.DECIMAL
    if kind is Kind.DATE:
        epoch = datetime.date(1970, 1, 1).toordinal()
        days = [value.toordinal() - epoch if there else 0 for value, there in zip(values, present, strict=True)]
        return Typed(np.array(days, dtype=np.int64), kind, present)
    if kind is Kind.TIMESTAMP:
        moments = [_microseconds(value) if there else 0 for value, there in zip(values, present, strict=True)]
        return Typed(np.array(moments, dtype=np.int64), kind, present)
    if kind is Kind.NUMBER:
        return Typed(np.array([float(v) if t else 0.0 for v, t in zip(values, present, strict=True)]), kind, present)
    numbers = [value if there else 0 for value, there in zip(values, present, strict=True)]
    if kind is Kind.INTEGER:
        whole = [int(value) for value in numbers]
        narrow = all(-_MICROSECOND_LIMIT < value < _MICROSECOND_LIMIT for value in whole)
        return Typed(np.array(whole, dtype=np.int64 if narrow else object), kind, present)
    return Typed(np.array(numbers, dtype=object), kind, present)


def _family(value: Any) -> Kind:
    if isinstance(value, bool | int | np.integer | np.bool_):
        return Kind.INTEGER
    if isinstance(value, float | np.floating):
        return Kind.NUMBER
    if isinstance(value, Decimal | Fraction):
        return Kind.DECIMAL
    if isinstance(value, datetime.datetime):
        return Kind.TIMESTAMP
    if isinstance(value, datetime.date):
        return Kind.DATE
    raise InvalidInput(f"values must be numbers, dates or timestamps, got elements of type {type(value).__name__}")


def _is_there(value: Any) -> bool:
    if value is None or (isinstance(value, Decimal) and not value.is_finite()):
        return False
    if isinstance(value, datetime.datetime):
        return value == value  # pandas' NaT is not
    return not isinstance(value, float | np.floating) or bool(np.isfinite(value))


def _microseconds(moment: datetime.datetime) -> int:
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
