"""Enclosures hold against arbitrary-precision decimals, and are narrow."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from idios.core.enclosures import (
    exp_minus,
    exp_minus_doublings,
    exp_minus_levels,
    exp_minus_multiples,
    floor_bits,
    logarithm,
    logistic,
)
from idios.errors import InvalidInput

PRECISE = Context(prec=420, Emax=MAX_EMAX, Emin=MIN_EMIN)
SLACK = Decimal(10) ** -400  # relative error of the decimal reference, generously

positive_fractions = st.one_of(
    st.fractions(min_value=0, max_value=2000, max_denominator=10**6),
    st.builds(lambda n, e: Fraction(n, 10**e), st.integers(1, 10**6), st.integers(0, 60)),
    st.builds(lambda n, e: Fraction(n * 2**e), st.integers(1, 9), st.integers(0, 14)),
)
precisions = st.integers(0, 400)


def reference_exp_minus(x: Fraction) -> Decimal:
    with localcontext(PRECISE):
        return (-Decimal(x.numerator) / Decimal(x.denominator)).exp()


def holds(enclosure: tuple[int, int], value: Decimal, bits: int) -> bool:
    lo, hi = enclosure
    with localcontext(PRECISE):
        scaled = value * Decimal(2) ** bits
        return lo <= scaled * (1 + SLACK) and scaled * (1 - SLACK) <= hi


@given(positive_fractions, precisions)
@example(Fraction(1, 10**30), 80)
@example(Fraction(333333), 80)
@example(Fraction(64), 64)
@example(Fraction(65), 64)
def test_exp_minus_encloses_and_is_narrow(x: Fraction, bits: int) -> None:
    lo, hi = exp_minus(x, bits)
    assert 0 <= lo <= hi <= lo + 2
    assert holds((lo, hi), reference_exp_minus(x), bits)


@given(positive_fractions, st.integers(0, 40), precisions)
def test_doublings_enclose_and_are_narrow(x: Fraction, number: int, bits: int) -> None:
    enclosures = exp_minus_doublings(x, number, bits)
    assert len(enclosures) == number
    for k, (lo, hi) in enumerate(enclosures):
        assert 0 <= lo <= hi <= lo + 2
        assert holds((lo, hi), reference_exp_minus(x * 2**k), bits)


@given(positive_fractions, precisions)
def test_logistic_encloses_and_is_narrow(x: Fraction, bits: int) -> None:
    lo, hi = logistic(x, bits)
    assert 0 <= lo <= hi <= lo + 3
    with localcontext(PRECISE):
        power = reference_exp_minus(x)
        assert holds((lo, hi), power / (1 + power), bits)


@given(
    st.fractions(min_value=0, max_value=5, max_denominator=1000),
    st.lists(st.integers(0, 3000), min_size=1, max_size=30),
    st.integers(1, 300),
)
def test_multiples_enclose_and_are_narrow(rate: Fraction, multiples: list[int], bits: int) -> None:
    ascending = sorted(multiples)
    enclosures = exp_minus_multiples(rate, ascending, bits)
    for multiple, (lo, hi) in zip(ascending, enclosures, strict=True):
        assert 0 <= lo <= hi <= lo + 4 * len(multiples)
        assert holds((lo, hi), reference_exp_minus(rate * multiple), bits)


@given(
    st.fractions(min_value=0, max_value=5, max_denominator=1000),
    st.sets(st.integers(0, 300), min_size=1, max_size=30) | st.sets(st.integers(0, 10**6), min_size=1, max_size=5),
    st.integers(1, 300),
)
def test_levels_enclose_and_are_narrow(rate: Fraction, levels: set[int], bits: int) -> None:
    powers = exp_minus_levels(rate, levels, bits)
    assert len(powers) <= 32 * len(levels)
    for level in levels:
        lo, hi = powers[level]
        assert 0 <= lo <= hi <= lo + 128 * len(levels)
        assert holds((lo, hi), reference_exp_minus(rate * level), bits)


@given(positive_fractions.filter(bool), st.integers(1, 300))
@example(Fraction(1, 10**60), 16)
def test_floor_bits_gives_the_digits(x: Fraction, bits: int) -> None:
    digits = floor_bits(lambda places: exp_minus(x, places), bits)
    with localcontext(PRECISE):
        assert digits == int(reference_exp_minus(x) * Decimal(2) ** bits)


@given(positive_fractions.filter(bool), st.integers(0, 200))
@example(Fraction(1), 16)
@example(1 + Fraction(1, 10**60), 16)
@example(1 - Fraction(1, 10**60), 150)
@example(Fraction(10**400), 128)
@example(Fraction(1, 10**400), 128)
def test_a_logarithm_is_enclosed(x: Fraction, bits: int) -> None:
    low, high = logarithm(x, bits)
    assert high - low <= 3
    with localcontext(PRECISE):
        scaled = (Decimal(x.numerator) / Decimal(x.denominator)).ln() * 2**bits
        assert low <= scaled <= high


def test_floor_bits_refines_until_both_ends_agree() -> None:
    asked = []

    def below_half(places: int) -> tuple[int, int]:
        """Enclose 1/2 − 2^(−70): the digits 0.0111… of its beginning need more than seventy places."""
        asked.append(places)
        point = ((1 << places) - (1 << places >> 69)) // 2
        return point - 1, point + 1

    assert floor_bits(below_half, 10) == 511
    assert asked == [42, 74]


def test_illegal_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="x must be at least 0"):
        exp_minus(Fraction(-1, 2), 10)
    with pytest.raises(InvalidInput, match="bits must be at least 0, got -1"):
        exp_minus(Fraction(1), -1)
    for x in (0, -1):
        with pytest.raises(InvalidInput, match="x must be greater than 0 for ln x"):
            logarithm(Fraction(x), 10)
    with pytest.raises(InvalidInput, match="ascending"):
        exp_minus_multiples(Fraction(1), [2, 1], 10)
