"""Discrete Laplace noise against scipy and by summation."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from idios.core.distributions import DiscreteLaplace
from idios.core.sampling import SeededSource, discrete_laplace
from idios.errors import InvalidInput

SCALES = [Fraction(1, 7), Fraction(1), Fraction(22, 7), Fraction(1000)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_agrees_with_scipy(scale: Fraction) -> None:
    noise, reference = DiscreteLaplace(scale), stats.dlaplace(float(1 / scale))
    k = np.arange(-60, 61)
    assert noise.pmf(k) == pytest.approx(reference.pmf(k), rel=1e-12)
    assert noise.cdf(k) == pytest.approx(reference.cdf(k), rel=1e-12)


@pytest.mark.parametrize("scale", SCALES[:3], ids=str)
def test_masses_add_up(scale: Fraction) -> None:
    noise, k = DiscreteLaplace(scale), np.arange(-200, 201)
    masses = noise.pmf(k)
    assert math.fsum(masses) == pytest.approx(1, rel=1e-14)
    assert np.cumsum(masses) == pytest.approx(noise.cdf(k), rel=1e-12)
    assert math.fsum(np.abs(k) * masses) == pytest.approx(noise.expected_absolute, rel=1e-12)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(10**9), Fraction(10**30)], ids=str)
def test_quantile_is_the_least_that_reaches_p(scale: Fraction) -> None:
    noise = DiscreteLaplace(scale)
    step = max(1, scale // 10**12)  # what floats can tell apart
    for p in (1e-12, 1e-4, 0.025, 0.3, 0.4999, 0.5, 0.51, 0.8, 0.975, 0.9999):
        k = noise.quantile(p)
        assert type(k) is int
        assert noise.cdf(k + step - 1) >= p > noise.cdf(k - step)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_central_interval_is_the_least_that_holds_p(scale: Fraction) -> None:
    noise = DiscreteLaplace(scale)
    for p in (0.01, 0.5, 0.9, 0.95, 0.999999):
        low, high = noise.central_interval(p)
        assert low == -high <= 0
        assert noise.cdf(high) - noise.cdf(low - 1) >= p
        assert high == 0 or noise.cdf(high - 1) - noise.cdf(low) < p


def test_it_approaches_laplace_noise() -> None:
    low, high = DiscreteLaplace(Fraction(10**6)).central_interval(0.95)
    assert high / 10**6 == pytest.approx(math.log(20), rel=1e-5)
    assert low == -high


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(22, 7)], ids=str)
def test_log_ratio_is_exact_and_reached(scale: Fraction) -> None:
    noise, k = DiscreteLaplace(scale), np.arange(-40, 41)
    for shift in (0, 1, -3, 7):
        ratio = noise.log_ratio(shift)
        assert ratio == abs(shift) / scale
        assert isinstance(ratio, Fraction)
        seen = np.abs(np.log(noise.pmf(k) / noise.pmf(k - shift)))
        assert seen.max() == pytest.approx(float(ratio))


def test_scale_zero_is_the_constant_zero() -> None:
    noise = DiscreteLaplace(Fraction(0))
    assert noise.pmf(np.array([-1, 0, 1])).tolist() == [0, 1, 0]
    assert noise.cdf(np.array([-1, 0, 1])).tolist() == [0, 1, 1]
    assert noise.expected_absolute == 0
    assert noise.quantile(0.01) == 0
    assert noise.central_interval(0.95) == (0, 0)
    assert noise.sample() == 0
    assert noise.log_ratio(0) == 0
    with pytest.raises(InvalidInput, match="shift must be 0 where the scale is 0"):
        noise.log_ratio(1)


def test_scales_that_no_float_can_hold() -> None:
    tiny = DiscreteLaplace(Fraction(1, 10**400))
    assert tiny.pmf(0) == 1
    assert tiny.quantile(0.99) == 0
    assert tiny.expected_absolute == 0


def test_between_whole_numbers() -> None:
    noise = DiscreteLaplace(Fraction(3))
    assert noise.pmf(0.5) == 0
    assert noise.cdf(0.5) == noise.cdf(0)
    assert noise.cdf(-0.5) == noise.cdf(-1)
    assert type(noise.pmf(1)) is type(noise.cdf(1)) is float


def test_samples_are_those_of_the_sampler() -> None:
    noise = DiscreteLaplace(Fraction(22, 7))
    drawn = noise.sample(100, SeededSource(4))
    assert np.array_equal(drawn, discrete_laplace(Fraction(22, 7), 100, SeededSource(4)))
    assert type(noise.sample()) is int


def test_a_scale_is_kept_as_a_fraction() -> None:
    for scale in (Fraction(1, 10), "0.1", Decimal("0.1"), 0.1):
        assert DiscreteLaplace(scale) == DiscreteLaplace(Fraction(1, 10))  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [-1, math.nan, math.inf, "wide", None])
def test_illegal_scales_are_refused(scale: object) -> None:
    with pytest.raises(InvalidInput, match="scale must be"):
        DiscreteLaplace(scale)  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [0, 1, math.nan])
def test_illegal_probabilities_are_refused(p: float) -> None:
    noise = DiscreteLaplace(Fraction(1))
    for function in (noise.quantile, noise.central_interval):
        with pytest.raises(InvalidInput, match="p must lie strictly between 0 and 1"):
            function(p)


def test_illegal_shifts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="shift must be a whole number"):
        DiscreteLaplace(Fraction(1)).log_ratio(0.5)  # type: ignore[arg-type]
