"""Formats of dates: what may be declared, and that a field fits one as Python's own strptime has it."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

from idios.core.domain import Kind
from idios.declare.dates import check_format, read_day
from idios.declare.declared_columns import read_column
from idios.errors import InvalidInput

FORMATS = ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%y", "%Y%m%d", "%d-%b-%Y", "%B %d, %Y", "%d.%m.%Y %H:%M", "%y%m%d"]
FORMATS += ["%m/%d/%Y %I:%M:%S %p", "%d.%m.%YT%H:%M:%S.%f", "%H.%M %d.%m.%Y", "%d_%m_%Y"]


def write_field(draw: random.Random, format: str) -> str:
    """A date in a format, with or without zeros, sometimes one that does not exist, or with a slip of the pen."""
    moment = datetime.datetime(1000, 1, 1) + datetime.timedelta(seconds=draw.randrange(280_000_000_000))
    written = moment.strftime(format)
    if draw.random() < 0.3:
        written = written.replace("/0", "/").replace(".0", ".")
    if draw.random() < 0.4:
        place = draw.randrange(len(written) + 1)
        written = written[:place] + draw.choice("0123456789.-/ :aPſ٣\n\0") + written[place + draw.randrange(2) :]
    return written.swapcase() if draw.random() < 0.2 else written


@pytest.mark.parametrize("format", FORMATS)
def test_a_field_that_fits_is_read_as_by_strptime(format: str) -> None:
    draw, fitted = random.Random(format), 0
    assert check_format(format, Kind.TIMESTAMP) == format
    for _ in range(2000):
        field = write_field(draw, format)
        day = read_day(field, format)
        if day is not None:
            assert datetime.datetime.strptime(field, format).date() == day
            fitted += 1
    assert fitted > 500


@pytest.mark.parametrize(
    ("field", "format"),
    [
        ("31.02.1996", "%d.%m.%Y"),
        ("22.13.1996", "%d.%m.%Y"),
        ("22.01.96", "%d.%m.%Y"),
        ("22.01.0096", "%d.%m.%Y"),
        ("22.01.1996 24:00", "%d.%m.%Y %H:%M"),
        ("1996122", "%Y%m%d"),
        ("1/22/1996 13:00 PM", "%m/%d/%Y %I:%M %p"),
        ("", "%d.%m.%Y"),
    ],
)
def test_what_does_not_fit(field: str, format: str) -> None:
    assert read_day(field, format) is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("%d.%m", "a day, a month and a year once each"),
        ("%d.%d.%m.%Y", "once each"),
        ("%d.%m.%Y %M", "minutes only with hours"),
        ("%d.%m.%Y %I:%M", "%p where hours are %I"),
        ("%d.%m.%Y %Z", "'%Z' is not known; known are %d"),
        ("%d.%m.%Y (x)", "'(' is not known"),
        ("%d.%m.%Y%", "must be text such as"),
        ("%d.%m.%Y" * 9, "must be text such as"),
        (5, "must be text such as"),
    ],
)
def test_what_may_not_be_declared(given: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match="column 'day'") as raised:
        read_column("day", {"type": "date", "format": given})
    assert told in str(raised.value)


def test_a_format_belongs_to_dates() -> None:
    with pytest.raises(InvalidInput, match="format belongs to dates and timestamps"):
        read_column("day", {"type": "integer", "format": "%d.%m.%Y"})
