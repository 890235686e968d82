"""Numbers are read and written as they are, without rounding."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idios.core.exact import (
    FARTHEST,
    exact,
    exact_value,
    floor_half_up,
    positive,
    round_root_down,
    round_root_up,
    text,
    whole,
)
from idios.errors import InvalidInput


@pytest.mark.parametrize("given_", ["0.1", 0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1), "1/10", "1e-1"])
def test_a_tenth_is_a_tenth(given_: object) -> None:
    assert exact(given_, "epsilon") == Fraction(1, 10)


@pytest.mark.parametrize(
    "bad",
    ["", "much", "1/0", math.nan, math.inf, "nan", "inf", None, True, [1], Decimal("NaN"), "1e999999999", "9" * 300],
)
def test_what_is_no_number_is_refused_by_name(bad: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be a finite number"):
        exact(bad, "epsilon")


def test_a_decimal_comma_is_told_as_a_point() -> None:
    for written, told in (("0,5", r"'0,5': write 0\.5$"), ("-12,25 ", r": write -12\.25$"), ("1,500", "got '1,500'$")):
        with pytest.raises(InvalidInput, match=told):
            exact(written, "epsilon")


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("1", 1),
        ("+1", 1),
        ("-2.50", Fraction(-5, 2)),
        (".5", Fraction(1, 2)),
        ("3.", 3),
        ("1E+2", 100),
        ("25e-1", Fraction(5, 2)),
        ("-1/3", Fraction(-1, 3)),
        (" \t0.1\r\n", Fraction(1, 10)),
        (np.str_("0.1"), Fraction(1, 10)),
        (np.int8(3), 3),
        (np.float32(0.1), Fraction(1, 10)),
    ],
)
def test_what_a_number_is_written_as(written: object, number: Fraction) -> None:
    assert exact(written, "epsilon") == number


@pytest.mark.parametrize(
    "bad",
    [
        *(
            "1_0",
            "1_0.5",
            "0.1_5",
            "1e1_0",
            "1/1_0",
            "1/ 2",
            "1 /2",
            "1 0",
            "1/-2",
            "1/2.5",
            "1.5/2",
            "1/2e3",
            "1e",
            "1e+",
        ),
        *("１", "٣", "0.٣", "1e٣", "²", "½", "−1", "1\u00a0", "\u20031", "1\u200b", "\u00001"),
        *("0x1", "0b1", "infinity", "-inf", "nan", "--1", "+-1", "e5", ".", "+", "1,5", "True", "1j"),
        *(b"1", np.datetime64("2020"), np.timedelta64(5, "D"), np.bool_(True)),
    ],
    ids=repr,
)
def test_numbers_are_read_from_ascii_digits_only(bad: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be a finite number"):
        exact(bad, "epsilon")


@settings(deadline=None)
@given(st.text(max_size=12))
def test_whatever_is_read_is_written_in_ascii(written: str) -> None:
    try:
        number = exact(written, "epsilon")
    except InvalidInput:
        return
    assert written.isascii()
    assert "_" not in written
    assert number == Fraction(written)


@settings(deadline=None)
@given(st.text("0123456789./eE+-_ \uff11", max_size=9))
def test_plain_numbers_are_those_that_fractions_read(written: str) -> None:
    """Fraction() reads the same and more: underscores, and the digits of every script."""
    try:
        number = exact(written, "epsilon")
    except InvalidInput:
        assert not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", written.strip(" "))
        return
    assert number == Fraction(written)


def test_a_long_text_is_refused_at_once() -> None:
    for long in ("9" * 10**6 + "x", " " * 10**6 + "x", "1/" + "9" * 10**6, "1e" + "9" * 10**6):
        with pytest.raises(InvalidInput):
            exact(long, "epsilon")


def test_a_very_large_number_has_a_message() -> None:
    for large in (-(10**5000), Fraction(-(10**5000), 7)):
        with pytest.raises(InvalidInput, match="greater than 0, got a very large"):
            positive(large, "epsilon")


@settings(deadline=None)
@given(st.one_of(st.integers(), st.fractions(), st.decimals(allow_nan=False, allow_infinity=False)))
def test_a_value_is_itself(value: int | Fraction | Decimal) -> None:
    assert exact_value(value) == Fraction(value)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (Decimal("1E+500"), FARTHEST),
        (Decimal("-1E+500"), -FARTHEST),
        (Decimal("-1E+999999999"), -FARTHEST),
        (Decimal("1E-999999999"), 0),
        (Decimal("-1E-500"), 0),
        (Decimal("0E+999999999"), 0),
        (10**401, FARTHEST),
        (-(10**5000), -FARTHEST),
        (Fraction(10**5000, 3), FARTHEST),
        (Fraction(1, 10**5000), 0),
        (Decimal("0." + "1" * 5000), Fraction(int("1" * 4000) * 10**1000 + int("1" * 1000), 10**5000)),
        (np.longdouble("1e4000"), FARTHEST),
        (np.longdouble("-1e4000"), -FARTHEST),
        (np.float16(0.1), Fraction(1, 10)),
        (np.float32(1e30), 10**30),
        (np.uint64(2**64 - 1), 2**64 - 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_finite_value_is_too_large_or_too_small(value: object, read: Fraction) -> None:
    assert exact_value(value) == read


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, Decimal("sNaN"), Decimal("-Infinity"), "secret", None, True, 1j, [7]]
)
def test_what_is_no_value_is_not_quoted(bad: object) -> None:
    with pytest.raises(InvalidInput, match=r"^a value of the column is no finite number$"):
        exact_value(bad)


@pytest.mark.parametrize("bad", [0, -1, "-0.5"])
def test_positive(bad: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be greater than 0"):
        positive(bad, "epsilon")


@pytest.mark.parametrize("bad", [0, 1.5, "2.5", -3])
def test_whole(bad: object) -> None:
    with pytest.raises(InvalidInput, match="k must be a whole number, at least 1"):
        whole(bad, "k")


@given(st.fractions())
def test_text_reads_back(number: Fraction) -> None:
    written = text(number)
    assert written is not None
    assert Fraction(written) == number
    ends = 10**400 % number.denominator == 0  # only twos and fives divide it
    assert ("/" in written) == (not ends)


@given(st.fractions(), st.fractions())
def test_rounding_is_monotone_and_shift_equivariant(a: Fraction, b: Fraction) -> None:
    assert (floor_half_up(a) <= floor_half_up(b)) or a > b
    assert floor_half_up(a + 7) == floor_half_up(a) + 7
    assert abs(floor_half_up(a) - a) <= Fraction(1, 2)


@given(st.fractions(0, 10**9))
def test_roots_are_rounded_to_their_sides(square: Fraction) -> None:
    low, high = round_root_down(square), round_root_up(square)
    assert low**2 <= square <= high**2
    assert high - low <= low / 10**5 or low == high


def test_roots_of_squares_are_exact() -> None:
    assert round_root_down(Fraction(4, 9)) == round_root_up(Fraction(4, 9)) == Fraction(2, 3)
