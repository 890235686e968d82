from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idios.core.exact import exact, floor_half_up, positive, text, whole
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
