"""The intervals of means and variances miss the truth once in twenty draws at most, and are no wider than they must."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from idios.core.distributions.noisy_moments import NoisyQuotient, NoisyVariance, find_half_width
from idios.core.sampling import SeededSource
from idios.core.statistics.spread import StandardDeviation, Variance

LIMITS = [(0, 3), (-2, 3), (1, 1), (-5, -2)]
VALUES = [(1,), (1, 2, 2), (3,) * 12, (0, 1, 3, 3, 2, 2, 1, 0)]


def clip(values: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
    return tuple(min(max(v, low), high) for v in values)


def quotient(limits: tuple[int, int], values: tuple[int, ...], epsilon: Fraction) -> NoisyQuotient:
    clipped = clip(values, *limits)
    return NoisyQuotient(*limits, len(clipped), sum(clipped), epsilon, resolution=10)


def spread(statistic: Variance, limits: tuple[int, int], values: tuple[int, ...], epsilon: Fraction) -> NoisyVariance:
    clipped = clip(values, *limits)
    squares = sum(v * v for v in clipped)
    return NoisyVariance(statistic, *limits, len(clipped), sum(clipped), squares, epsilon, fineness=100)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("values", VALUES)
def test_the_interval_of_a_mean_misses_it_in_one_of_twenty_draws_at_most(
    limits: tuple[int, int], values: tuple[int, ...]
) -> None:
    """At every confidence, from the exact law of both noises; what is beyond ±40 is counted as missed."""
    mechanism = quotient(limits, values, Fraction(3))
    truth = mechanism.place(mechanism.deviation, mechanism.size)
    assert truth is not None
    noises = range(-40, 41)
    of_sum, of_count = mechanism.sum_noise.pmf(np.array(noises)), mechanism.count_noise.pmf(np.array(noises))
    for parts in (1, 2, 5, 20):
        held = 0.0
        for (i, x), (j, y) in product(enumerate(noises), repeat=2):
            interval = mechanism.find_interval(mechanism.deviation + x, mechanism.size + y, parts=parts)
            value = mechanism.place(mechanism.deviation + x, mechanism.size + y)
            assert (interval is None) == (value is None)
            if interval is None or value is None:
                held += of_sum[i] * of_count[j]  # nothing is stated
                continue
            assert interval[0] <= value <= interval[1]
            held += of_sum[i] * of_count[j] if interval[0] <= truth <= interval[1] else 0
        assert 1 - held <= 0.05 / parts


@pytest.mark.parametrize("deviation", [-90, -3, 0, 2, 90])
@pytest.mark.parametrize("count", [1, 4, 60])
def test_the_interval_of_a_mean_is_what_the_sums_allow_and_no_wider(deviation: int, count: int) -> None:
    mechanism = quotient((-2, 3), (1, 2), Fraction(2))
    far, few = find_half_width(mechanism.sum_noise, 2), find_half_width(mechanism.count_noise, 2)
    possible = [
        mechanism.place(total, number)
        for total in range(deviation - far, deviation + far + 1)
        for number in range(max(1, count - few), count + few + 1)
    ]
    assert mechanism.find_interval(deviation, count) == (min(possible), max(possible))  # type: ignore[type-var]


@pytest.mark.parametrize("statistic", [Variance(), StandardDeviation()])
@pytest.mark.parametrize(("limits", "values"), [((0, 2), (0, 1, 2, 2)), ((-2, 1), (-2, -2, 1)), ((1, 1), (1, 1))])
def test_the_interval_of_a_variance_misses_it_in_one_of_twenty_draws_at_most(
    statistic: Variance, limits: tuple[int, int], values: tuple[int, ...]
) -> None:
    mechanism = spread(statistic, limits, values, Fraction(8))
    truth = mechanism.place(*mechanism.deviations)
    assert truth is not None
    missed = dict.fromkeys((1, 2, 5, 20), 0.0)
    for noise in product(range(-8, 9), range(-8, 9), range(-2, 3)):
        noisy = [exact + x for exact, x in zip(mechanism.deviations, noise, strict=True)]
        probabilities = [float(each.pmf(x)) for each, x in zip(mechanism.noises, noise, strict=True)]
        value = mechanism.place(*noisy)
        for parts in missed:
            interval = mechanism.find_interval(*noisy, parts=parts)
            assert (interval is None) == (value is None)
            if interval is None or value is None:
                continue
            assert interval[0] <= value <= interval[1]
            if not interval[0] <= truth <= interval[1]:
                missed[parts] += probabilities[0] * probabilities[1] * probabilities[2]
    assert all(probability <= 0.05 / parts for parts, probability in missed.items())


@pytest.mark.parametrize("noisy", [(-40, -300, 100), (0, 10, 20), (35, 200, 30), (60, 900, 12), (3, -50, 1)])
def test_the_interval_of_a_variance_holds_all_that_the_sums_allow_and_hardly_more(noisy: tuple[int, int, int]) -> None:
    mechanism = spread(Variance(), (-2, 3), (1, 2), Fraction(8))
    far, farther, few = (find_half_width(noise, 3) for noise in mechanism.noises)
    possible = [
        mechanism.place(total, squares, number)
        for total in range(noisy[0] - far, noisy[0] + far + 1)
        for squares in range(noisy[1] - farther, noisy[1] + farther + 1, farther)
        for number in range(max(1, noisy[2] - few), noisy[2] + few + 1)
    ]
    low, high = mechanism.find_interval(*noisy) or (0, 0)
    assert low == min(possible)  # type: ignore[type-var]
    assert 0 <= high - max(possible) <= mechanism.fineness // 5  # type: ignore[operator,type-var]


def test_a_share_too_small_for_all_noises_would_be_noticed() -> None:
    """Planted: each noise at 95 % instead of 97.5 %, on a mean whose sum and count both matter."""
    mechanism = quotient((0, 3), (3,) * 12, Fraction(1, 10))
    far, few = find_half_width(mechanism.sum_noise), find_half_width(mechanism.count_noise)
    outside = 1 - (1 - _tail(mechanism.sum_noise.cdf(-far - 1))) * (1 - _tail(mechanism.count_noise.cdf(-few - 1)))
    assert outside > 0.05
    both = find_half_width(mechanism.sum_noise, 2), find_half_width(mechanism.count_noise, 2)
    assert _tail(mechanism.sum_noise.cdf(-both[0] - 1)) + _tail(mechanism.count_noise.cdf(-both[1] - 1)) <= 0.05


def _tail(below: float) -> float:
    return 2 * float(below)


def test_value_and_interval_come_from_one_draw() -> None:
    mean, variance = quotient((0, 9), (4,) * 50, Fraction(1)), spread(Variance(), (0, 9), (4, 5) * 50, Fraction(1))
    for mechanism in (mean, variance):
        alone = [mechanism.draw(source) for source in map(SeededSource, range(20))]
        sums = [mechanism.draw_sums(source) for source in map(SeededSource, range(20))]
        assert [mechanism.place(*noisy) for noisy in sums] == alone
        for value, interval in zip(alone, (mechanism.find_interval(*noisy) for noisy in sums), strict=True):
            assert interval is None or interval[0] <= value <= interval[1]  # type: ignore[operator]
