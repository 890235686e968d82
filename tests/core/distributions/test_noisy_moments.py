"""Means and variances from noisy sums and a noisy count: the law, the loss, and where they are NULL."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from idios.core.distributions.noisy_moments import NoisyQuotient, NoisyVariance
from idios.core.sampling import SeededSource
from idios.core.statistics.spread import StandardDeviation, Variance
from idios.errors import InvalidInput
from tests.randomness import FALSE_ALARM, chi_square

ONE = Fraction(1)


def spread(low: int, high: int, values: tuple[int, ...], epsilon: Fraction = ONE) -> NoisyVariance:
    squares = sum(v * v for v in values)
    return NoisyVariance(Variance(), low, high, len(values), sum(values), squares, epsilon)


def quotient(low: int, high: int, values: tuple[int, ...], epsilon: Fraction = ONE) -> NoisyQuotient:
    return NoisyQuotient(low, high, len(values), sum(values), epsilon, resolution=10)


@pytest.mark.parametrize("limits", [(0, 0), (0, 1), (-3, 0), (2, 5), (-2, 2)])
def test_one_record_costs_epsilon_and_no_more(limits: tuple[int, int]) -> None:
    """|ΔS|/scale + |ΔZ|/scale + |ΔN|/scale over all that enters, leaves or is replaced; the others do not matter."""
    points = [(), *((v,) for v in range(limits[0], limits[1] + 1))]
    mean_losses, spread_losses = [], []
    for before, after in product(points, points):
        one, other = quotient(*limits, before), quotient(*limits, after)
        pairs = [
            (one.deviation - other.deviation, one.sum_noise.scale),
            (one.size - other.size, one.count_noise.scale),
        ]
        mean_losses.append(sum((abs(Fraction(moved)) / scale for moved, scale in pairs if moved), Fraction(0)))
        here, there = spread(*limits, before), spread(*limits, after)
        moves = [a - b for a, b in zip(here.deviations, there.deviations, strict=True)]
        losses = [abs(Fraction(m)) / noise.scale for m, noise in zip(moves, here.noises, strict=True) if m]
        spread_losses.append(sum(losses, Fraction(0)))
    assert max(mean_losses) == (1 if limits[0] < limits[1] else Fraction(1, 2))
    assert max(spread_losses) == (1 if limits[0] < limits[1] else Fraction(1, 2))


@pytest.mark.parametrize("limits", [(0, 3), (-2, 3), (1, 1)])
@pytest.mark.parametrize("values", [(), (1,), (1, 2, 2), (3,) * 12])
def test_the_law_of_a_mean_is_that_of_its_noises(limits: tuple[int, int], values: tuple[int, ...]) -> None:
    mechanism = quotient(*limits, tuple(min(max(v, limits[0]), limits[1]) for v in values), Fraction(3))
    law: Counter[int | None] = Counter()
    for x, y in product(range(-60, 61), repeat=2):
        answer = mechanism.place(mechanism.deviation + x, mechanism.size + y)
        law[answer] += mechanism.sum_noise.pmf(x) * mechanism.count_noise.pmf(y)  # type: ignore[assignment]
    answers = [None, *range(limits[0] * 10, limits[1] * 10 + 1)]
    assert set(law) <= set(answers)
    assert [mechanism.pmf(a) for a in answers] == pytest.approx([law[a] for a in answers], abs=1e-9)
    assert mechanism.pmf(limits[1] * 10 + 1) == mechanism.pmf(limits[0] * 10 - 1) == 0


@pytest.mark.statistical
def test_draws_of_a_mean_follow_the_law() -> None:
    mechanism = quotient(0, 3, (0, 1, 2, 2, 3, 3))
    drawn = Counter(mechanism.draw() for _ in range(10_000))
    answers = [None, *range(31)]
    expected = [10_000 * mechanism.pmf(a) for a in answers]
    assert chi_square([drawn[a] for a in answers], expected) > FALSE_ALARM


def test_no_noise_leaves_the_definition() -> None:
    for values in combinations_with_replacement(range(-2, 4), 3):
        mean, variance = quotient(-2, 3, values), spread(-2, 3, values)
        assert mean.place(mean.deviation, 3) == (2 * 10 * sum(values) + 3) // 6
        truth = Variance().define(values)
        assert variance.place(*variance.deviations) == Variance().place(truth)  # type: ignore[arg-type]
        root = NoisyVariance(StandardDeviation(), -2, 3, 3, sum(values), sum(v * v for v in values), ONE)
        assert root.place(*root.deviations) == StandardDeviation().place(truth)  # type: ignore[arg-type]


def test_answers_stay_within_their_range() -> None:
    mean, variance = quotient(-2, 3, (0, 0)), spread(-2, 3, (0, 0))
    assert mean.place(10**9, 1) == 30
    assert mean.place(-(10**9), 1) == -20
    assert mean.place(0, 0) is variance.place(0, 0, -1) is None
    assert variance.place(0, 10**9, 1) == 9 * 10**6
    assert variance.place(10**9, 0, 1) == 0
    assert quotient(4, 4, ()).draw(SeededSource(1)) in (None, 40)
    assert spread(4, 4, (4,)).place(0, 0, 5) == 0


def test_large_data_is_answered_closely() -> None:
    values = tuple(range(-50, 51)) * 1000
    mean, variance = quotient(-50, 60, values), spread(-50, 60, values)
    assert mean.draw(SeededSource(1)) in (-1, 0, 1)
    truth = 850 * 10**6
    assert abs((variance.draw(SeededSource(1)) or 0) - truth) < truth / 100
    assert 0 < mean.expected_absolute(0) < 0.1
    assert 0 < variance.expected_absolute(truth) < truth / 100
    root = NoisyVariance(StandardDeviation(), -50, 60, variance.size, variance.total, variance.squares, ONE)
    assert 0 < root.expected_absolute(int(850**0.5 * 10**6)) < 10**5


@pytest.mark.parametrize(("low", "high", "epsilon"), [(1, 0, ONE), (0, 1, Fraction(0))])
def test_illegal_limits_are_refused(low: int, high: int, epsilon: Fraction) -> None:
    with pytest.raises(InvalidInput, match="low ≤ high"):
        quotient(low, high, (), epsilon)
    with pytest.raises(InvalidInput, match="low ≤ high"):
        spread(low, high, (), epsilon)
