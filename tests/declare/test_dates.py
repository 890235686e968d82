"""Dates and timestamps become numbers and moments again, exactly and up to the ends of the calendar."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idios.core.domain import Kind
from idios.declare.dates import (
    format_value,
    parse_moment,
    since_1970,
    to_datetime,
    to_days,
    to_microseconds,
)


@given(st.datetimes())
def test_a_timestamp_comes_back(moment: datetime) -> None:
    number = to_microseconds(moment)
    assert to_datetime(number, Kind.TIMESTAMP) == moment
    assert since_1970(moment, Kind.TIMESTAMP) == number
    assert to_microseconds(np.datetime64(moment, "us")) == number
    assert parse_moment(str(format_value(Fraction(number), Kind.TIMESTAMP))) == number


@given(st.dates())
def test_a_date_comes_back(day: date) -> None:
    number = to_days(day)
    assert to_datetime(number, Kind.DATE).date() == day
    assert since_1970(day, Kind.DATE) == to_days(np.datetime64(day)) == number
    assert format_value(Fraction(number), Kind.DATE) == day.isoformat()
    assert parse_moment(day.isoformat(), dates_only=True) == number * 86_400_000_000


def test_fractions_are_rounded_down() -> None:
    assert to_datetime(Fraction(-1, 2), Kind.TIMESTAMP) == datetime(1970, 1, 1) - timedelta(microseconds=1)
    assert format_value(Fraction(-1, 2), Kind.DATE) == "1969-12-31"


@pytest.mark.parametrize("sign", [1, -1])
def test_beyond_the_calendar_is_its_end_or_a_number(sign: int) -> None:
    far = Fraction(sign * 10**30)
    assert to_datetime(far, Kind.DATE) == (datetime.max if sign > 0 else datetime.min)
    assert format_value(far, Kind.TIMESTAMP) == far


@pytest.mark.parametrize("given", ["soon", "2026-13-01", 5, None, time(12), np.datetime64("2026-01-31")])
def test_what_is_no_moment(given: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        since_1970(given, Kind.DATE)


def test_timestamps_with_a_zone_are_utc() -> None:
    assert since_1970("1970-01-01T02:00:00+02:00", Kind.TIMESTAMP) == 0
    first = since_1970("0001-01-01T00:00:00", Kind.TIMESTAMP)
    assert since_1970("0001-01-01T00:00:00+01:00", Kind.TIMESTAMP) == first - 3600 * 10**6
