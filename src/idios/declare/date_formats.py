"""How dates are written in files without types: formats of strptime, as far as they mean one thing everywhere.

Rules:

1. A format has a day, a month and a year once each, perhaps a time, and between them marks: "%d.%m.%Y %H:%M".
2. A field fits a format if it fits its regular expression (``write_form``), which no locale changes, and if there is
   such a day. Days, months and hours may lack their leading zero, unless nothing divides them from what is beside them.
3. Years have four digits and begin with 1000. Those of two digits are 1969 to 2068, as POSIX has it.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache
from typing import Any

from idios.core.domain import Kind
from idios.errors import InvalidInput

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


def read_day(field: str, format: str) -> datetime.date | None:
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
        return datetime.date(year, month, int(read["%d"]))
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _compile(format: str) -> re.Pattern[str]:
    return re.compile(write_form(format))
