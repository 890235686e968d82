"""Dates as days and timestamps as microseconds since 1970 (UTC), exactly and however far away.

What leaves 64 bits becomes Python's integers.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idios.core.domain import Kind
from idios.errors import InvalidInput

Array = NDArray[Any]

NARROW = 2**62
"""Whole numbers from here on are kept as Python's integers, so that nothing wraps."""

LAST_YEAR = 10**13
"""After 1970, and before; numpy's own calendar wraps around some way beyond."""

_MICROSECONDS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
_PER_MICROSECOND = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
_DAYS = {"W": 7, "D": 1}
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def kind_of_unit(dtype: Any) -> Kind:
    """Whether a datetime64 is a date or a timestamp: it counts days and longer, or less."""
    unit = np.datetime_data(dtype)[0]
    if unit == "generic":
        raise InvalidInput("dates and timestamps need a unit, got datetime64 without one: write datetime64[us]")
    return Kind.DATE if unit in ("Y", "M", "W", "D") else Kind.TIMESTAMP


def since_1970(values: Array) -> Array:
    """The days or microseconds of an array of datetime64; of NaT, some number."""
    unit, times = np.datetime_data(values.dtype)
    if kind_of_unit(values.dtype) is Kind.TIMESTAMP:
        return ticks_to_microseconds(values.astype(np.int64), unit, times)
    if unit in _DAYS:
        return _times(values.astype(np.int64), times * _DAYS[unit])
    last = LAST_YEAR * (12 if unit == "M" else 1)
    ticks = np.clip(_times(values.astype(np.int64), times), -last, last).astype(np.int64)
    return ticks.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)


def ticks_to_microseconds(ticks: Array, unit: str, times: int = 1) -> Array:
    """Microseconds from ticks of ``times`` units, rounded down."""
    if unit in _PER_MICROSECOND:
        return _times(ticks, times) // _PER_MICROSECOND[unit]
    return _times(ticks, times * _MICROSECONDS[unit])


def days(value: Any) -> int:
    """The days of one date, of Python or numpy."""
    if isinstance(value, np.datetime64):
        return int(since_1970(np.array([value]))[0])
    return int(value.toordinal()) - _EPOCH.toordinal()


def microseconds(value: Any) -> int:
    """The microseconds of one timestamp, of Python, numpy or pandas."""
    if hasattr(value, "to_datetime64"):  # of pandas, which reaches further than Python's own
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        return int(since_1970(np.array([value]))[0])
    # not by astimezone, which fails in the first and the last hours that Python has
    offset = value.utcoffset() or datetime.timedelta(0)
    return int((value.replace(tzinfo=None) - _EPOCH - offset) // _MICROSECOND)


def _times(ticks: Array, factor: int) -> Array:
    if factor == 1:
        return ticks
    if len(ticks) and max(-int(ticks.min()), int(ticks.max())) * factor >= NARROW:
        ticks = ticks.astype(object)
    return ticks * factor
