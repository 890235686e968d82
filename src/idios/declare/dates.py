"""The calendar: dates as days and timestamps as microseconds since 1970-01-01 (UTC), both ways, for all packages.

Rules:

1. A date column counts days, a timestamp column microseconds. What has no time zone is UTC.
2. Towards numbers, every conversion is exact, however far away the moment is: what leaves 64 bits becomes Python's
   integers.
3. Towards moments, fractions are rounded down. Python's calendar ends with the years 1 and 9999: ``to_datetime`` clamps
   to its ends, ``format_value`` leaves a number beyond them as it is.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idios.core.domain import Kind
from idios.errors import InvalidInput

Array = NDArray[Any]

EPOCH = datetime(1970, 1, 1)
DAY = 86_400_000_000
"""Microseconds in a day."""
UNITS = {Kind.DATE: DAY, Kind.TIMESTAMP: 1}
"""Microseconds in what a column of each kind counts."""

NARROW = 2**62
"""Whole numbers from here on are kept as Python's integers, so that nothing wraps."""
LAST_YEAR = 10**13
"""After 1970, and before; numpy's own calendar wraps around some way beyond."""

_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = ((end - EPOCH) // _MICROSECOND for end in (datetime.min, datetime.max))
_ISO = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?))?")
_MICROSECONDS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
_PER_MICROSECOND = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
_DAYS = {"W": 7, "D": 1}


def to_datetime(number: Fraction | int, kind: Kind) -> datetime:
    """The moment of a number of days (of a date) or microseconds (of a timestamp), clamped to the calendar.

    >>> to_datetime(Fraction(3, 2), Kind.DATE), to_datetime(10**30, Kind.TIMESTAMP).year
    (datetime.datetime(1970, 1, 2, 12, 0), 9999)
    """
    return EPOCH + _MICROSECOND * min(max(int(number * UNITS[kind] // 1), _FIRST), _LAST)


def format_value(number: Fraction, kind: Kind) -> str | Fraction:
    """What an analyst sees for a number of a column of some kind: itself, or a date or timestamp as text.

    >>> format_value(Fraction(365), Kind.DATE), format_value(Fraction(365), Kind.INTEGER)
    ('1971-01-01', Fraction(365, 1))
    """
    if kind not in UNITS or not _FIRST <= number * UNITS[kind] // 1 <= _LAST:
        return number
    moment = to_datetime(number, kind)
    return moment.date().isoformat() if kind is Kind.DATE else moment.isoformat(sep=" ")


def parse_moment(text: str, *, dates_only: bool = False) -> int | None:
    """The microseconds of a date or timestamp in ISO form without a time zone; None for any other text.

    >>> parse_moment("1970-01-01 00:00:01.5"), parse_moment("1970-01-01 00:00", dates_only=True)
    (1500000, None)
    """
    match = _ISO.fullmatch(text)
    if match is None or (dates_only and match[2]):
        return None
    try:
        return to_microseconds(datetime.fromisoformat(text))
    except ValueError:
        return None


def since_1970(moment: Any, kind: Kind) -> Fraction:
    """Days (of a date) or microseconds (of a timestamp, UTC) since 1970-01-01; ValueError if it is no moment.

    >>> since_1970("1970-01-03", Kind.DATE), since_1970(date(1970, 1, 2), Kind.TIMESTAMP)
    (Fraction(2, 1), Fraction(86400000000, 1))
    """
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if not isinstance(moment, date):
        raise ValueError(f"a date or a timestamp is expected, got {type(moment).__name__}")
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    return Fraction(to_microseconds(moment), UNITS[kind])


def split_date(days: int) -> dict[str, int]:
    """The parts of a day's date, in the Gregorian calendar however far away; Sunday is the weekday (dow) 0.

    Years are counted from March, so that a leap day is the last of its year; 400 years have 146,097 days.

    >>> split_date(0), split_date(-(10**9))["year"]
    ({'year': 1970, 'quarter': 1, 'month': 1, 'day': 1, 'dow': 4}, -2735938)
    """
    since_march_0000 = days + 719_468
    cycle, within = divmod(since_march_0000, 146_097)
    year = (within - within // 1_460 + within // 36_524 - within // 146_096) // 365
    day = within - (365 * year + year // 4 - year // 100)
    march = (5 * day + 2) // 153  # months since March: five of them always have 153 days
    month = march + 3 if march < 10 else march - 9
    return {
        "year": 400 * cycle + year + (month <= 2),
        "quarter": (month + 2) // 3,
        "month": month,
        "day": day - (153 * march + 2) // 5 + 1,
        "dow": (days + 4) % 7,
    }


def find_year_start(year: int) -> int:
    """The day on which a year begins.

    >>> find_year_start(1970), find_year_start(2024), split_date(find_year_start(-400) - 1)["year"]
    (0, 19723, -401)
    """

    def leap_days(before: int) -> int:
        return (before - 1) // 4 - (before - 1) // 100 + (before - 1) // 400

    return 365 * (year - 1970) + leap_days(year) - leap_days(1970)


_SHORTEST = {"month": 28, "quarter": 90, "hour": DAY // 24, "minute": DAY // 1440, "second": 10**6}


def units_of_part(part: str) -> int:
    """How many days, or microseconds, a part of a date stays as it is, at least."""
    return _SHORTEST.get(part, 1)


def find_next_change(at: int, part: str) -> int:
    """The first day, or microsecond, after ``at`` on which another quarter, month, day, hour, … begins.

    >>> find_next_change(0, "month"), find_next_change(31, "quarter"), find_next_change(5, "dow")
    (31, 90, 6)
    """
    if part not in ("month", "quarter"):
        unit = units_of_part(part)
        return (at // unit + 1) * unit
    now = then = split_date(at)
    while then[part] == now[part]:
        at += 32 - then["day"]  # some day of the next month
        at -= split_date(at)["day"] - 1
        then = split_date(at)
    return at


def to_days(value: Any) -> int:
    """The days of one date, of Python or numpy."""
    if isinstance(value, np.datetime64):
        return int(datetime64_to_numbers(np.array([value]))[0])
    return int(value.toordinal()) - EPOCH.toordinal()


def to_microseconds(value: Any) -> int:
    """The microseconds of one timestamp, of Python, numpy or pandas."""
    if hasattr(value, "to_datetime64"):  # of pandas, which reaches further than Python's own
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        return int(datetime64_to_numbers(np.array([value]))[0])
    # not by astimezone, which fails in the first and the last hours that Python has
    offset = value.utcoffset() or timedelta(0)
    return int((value.replace(tzinfo=None) - EPOCH - offset) // _MICROSECOND)


def kind_of_unit(dtype: Any) -> Kind:
    """Whether a datetime64 is a date or a timestamp: it counts days and longer, or less."""
    unit = np.datetime_data(dtype)[0]
    if unit == "generic":
        raise InvalidInput("dates and timestamps need a unit, got datetime64 without one: write datetime64[us]")
    return Kind.DATE if unit in ("Y", "M", "W", "D") else Kind.TIMESTAMP


def datetime64_to_numbers(values: Array) -> Array:
    """The days or microseconds of an array of datetime64; of NaT, some number."""
    unit, times = np.datetime_data(values.dtype)
    if kind_of_unit(values.dtype) is Kind.TIMESTAMP:
        return ticks_to_microseconds(values.astype(np.int64), unit, times)
    if unit in _DAYS:
        return _multiply(values.astype(np.int64), times * _DAYS[unit])
    last = LAST_YEAR * (12 if unit == "M" else 1)
    ticks = np.clip(_multiply(values.astype(np.int64), times), -last, last).astype(np.int64)
    return ticks.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64)


def ticks_to_microseconds(ticks: Array, unit: str, times: int = 1) -> Array:
    """Microseconds from ticks of ``times`` units, rounded down."""
    if unit in _PER_MICROSECOND:
        return _multiply(ticks, times) // _PER_MICROSECOND[unit]
    return _multiply(ticks, times * _MICROSECONDS[unit])


def _multiply(ticks: Array, factor: int) -> Array:
    if factor == 1:
        return ticks
    if len(ticks) and max(-int(ticks.min()), int(ticks.max())) * factor >= NARROW:
        ticks = ticks.astype(object)
    return ticks * factor


# How dates are written in files without types: formats of strptime, as far as they mean one thing everywhere.
#
# Rules:
#
# 1. A format has a day, a month and a year once each, perhaps a time, and between them marks: "%d.%m.%Y %H:%M".
# 2. A field fits a format if it fits its regular expression (``write_form``), which no locale changes, and if there is
#    such a day. Days, months and hours may lack their leading zero, unless nothing divides them from what is beside
#    them.
# 3. Years have four digits and begin with 1000. Those of two digits are 1969 to 2068, as POSIX has it.


MONTHS = ["January", "February", "March", "April", "May", "June"]
MONTHS += ["July", "August", "September", "October", "November", "December"]


def _ignore_case(words: list[str]) -> str:
    """Words in any case; of ASCII alone, as a flag would let ſ be an s."""
    return "|".join("".join(f"[{letter.upper()}{letter.lower()}]" for letter in word) for word in words)


_FORMS = {
    "%d": "0[1-9]|[12][0-9]|3[01]",
    "%m": "0[1-9]|1[0-2]",
    "%b": _ignore_case([month[:3] for month in MONTHS]),
    "%B": _ignore_case(MONTHS),
    "%Y": "[1-9][0-9]{3}",
    "%y": "[0-9]{2}",
    "%H": "0[0-9]|1[0-9]|2[0-3]",
    "%I": "0[1-9]|1[0-2]",
    "%M": "[0-5][0-9]",
    "%S": "[0-5][0-9]",
    "%f": "[0-9]{6}",
    "%p": "[AaPp][Mm]",
}
"""How each directive is written, with all its zeros."""
_SHORT = {"%d": "0?[1-9]|[12][0-9]|3[01]", "%m": "0?[1-9]|1[0-2]", "%H": "[01]?[0-9]|2[0-3]", "%I": "0?[1-9]|1[0-2]"}
_SHORT |= {"%f": "[0-9]{1,6}"}
"""How some are written where marks divide them from others."""
_PARTS = re.compile(r"%[a-zA-Z]|[^%]")
_DIRECTIVE = re.compile("%[a-zA-Z]")
_MARKS = " .,:/_-Th"
LONGEST = 40


def check_format(given: Any, kind: Kind) -> str:
    """Check how the dates of a column are declared to be written.

    >>> check_format("%d.%m.%Y", Kind.DATE)
    '%d.%m.%Y'
    """
    if kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise InvalidInput("format belongs to dates and timestamps")
    if not isinstance(given, str) or len(given) > LONGEST or "".join(_PARTS.findall(given)) != given:
        raise InvalidInput(f'format must be text such as "%d.%m.%Y" or "%m/%d/%Y %H:%M", got {given!r}')
    parts = _PARTS.findall(given)
    unknown = [part for part in parts if part not in _FORMS and part not in _MARKS]
    if unknown:
        raise InvalidInput(
            f"format {given!r}: {unknown[0]!r} is not known; known are {', '.join(_FORMS)} and the marks {_MARKS!r}"
        )
    day, month, year, hour, minute, second, fraction, half = (
        sum(part in several for part in parts)
        for several in (["%d"], ["%m", "%b", "%B"], ["%Y", "%y"], ["%H", "%I"], ["%M"], ["%S"], ["%f"], ["%p"])
    )
    if not (day == month == year == 1 and 1 >= hour >= minute >= second >= fraction and half == parts.count("%I")):
        raise InvalidInput(
            f"format {given!r} must have a day, a month and a year once each (%d, %m, %Y), minutes only with hours, "
            "seconds only with minutes, and %p where hours are %I"
        )
    return given


def write_form(format: str) -> str:
    """The regular expression of what is written in a format, the same to Python and to engines.

    >>> write_form("%Y%m%d")
    '([1-9][0-9]{3})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])'
    """
    parts = _PARTS.findall(format)
    written = []
    for i, part in enumerate(parts):
        if part in _FORMS:
            beside = [each for each in (*parts[max(i - 1, 0) : i], *parts[i + 1 : i + 2]) if each in _FORMS]
            written.append(f"({_FORMS[part] if beside else _SHORT.get(part, _FORMS[part])})")
        else:
            written.append(f"[{part}]" if part == "." else part)
    return "".join(written)


def read_day(field: str, format: str) -> date | None:
    """The day that a field is in a format; None if it does not fit, or there is no such day.

    >>> read_day("22.01.1996", "%d.%m.%Y"), read_day("31.02.1996", "%d.%m.%Y")
    (datetime.date(1996, 1, 22), None)
    """
    fits = _compile(format).fullmatch(field)
    if not fits:
        return None
    read = dict(zip(_DIRECTIVE.findall(format), fits.groups(), strict=True))
    short = int(read.get("%y", 0))
    year = int(read["%Y"]) if "%Y" in read else short + (2000 if short < 69 else 1900)
    name = (read.get("%b") or read.get("%B") or "").title()
    month = int(read["%m"]) if "%m" in read else 1 + [each[:3] for each in MONTHS].index(name[:3])
    try:
        return date(year, month, int(read["%d"]))
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _compile(format: str) -> re.Pattern[str]:
    return re.compile(write_form(format))
