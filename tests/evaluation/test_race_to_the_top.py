"""R2T: its truncated sums, its penalty and its law from the formula; and truncation at a known limit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from idios.evaluation.race_to_the_top import (
    BETA,
    draw_raced_sums,
    draw_truncated_sums,
    find_best_limit,
    find_penalty,
    truncate_at_powers,
)

VALUES = np.sort(np.rint(np.random.default_rng(1).lognormal(4, 1, 500)))
GREATEST = 2.0**20


def laplace_cdf(x: float) -> float:
    return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2


def raced_cdf(values: np.ndarray, epsilon: float, greatest: float, at: float) -> float:
    """Pr(the answer is at most this): that of every Q̃(τ), which are independent."""
    limits, exact = truncate_at_powers(values, greatest)
    scales = len(limits) * limits / epsilon
    away = (at - exact) / scales + find_penalty(len(limits))
    return math.prod(map(laplace_cdf, away.tolist())) if at >= 0 else 0.0


@pytest.mark.statistical
def test_answers_have_the_law_of_the_formula() -> None:
    found = draw_raced_sums(VALUES, 1.0, 40_000, np.random.default_rng(2), GREATEST)
    for share in (0.1, 0.5, 0.9):
        at = float(np.quantile(found, share))
        assert raced_cdf(VALUES, 1.0, GREATEST, at) == pytest.approx(share, abs=5 * math.sqrt(0.25 / len(found)))


def test_what_is_released_costs_epsilon_at_most() -> None:
    """All Q̃(τ) are noisy sums: their losses add up to ε for whoever contributes up to the declared bound."""
    epsilon, greatest, worst = 1.0, 8.0, 0.0
    for others in itertools.combinations_with_replacement(range(9), 2):
        for value in range(9):
            one, two = (np.sort(np.array(table, float)) for table in (others, (*others, value)))
            limits, less = truncate_at_powers(one, greatest)
            _, more = truncate_at_powers(two, greatest)
            scales = len(limits) * limits / epsilon
            worst = max(worst, float(np.sum((more - less) / scales)))
    assert worst == pytest.approx(epsilon), "attained by whoever contributes all of the bound, and not exceeded"


def test_it_stays_between_the_truth_and_the_papers_bound() -> None:
    epsilon, truth, draws = 1.0, float(VALUES.sum()), 20_000
    found = draw_raced_sums(VALUES, epsilon, draws, np.random.default_rng(3), GREATEST)
    powers = math.log2(GREATEST)
    farthest = 4 * powers * math.log(powers / BETA) * float(VALUES.max()) / epsilon
    held = np.mean((found <= truth) & (found >= truth - farthest))
    assert held >= 1 - BETA
    assert np.median(found) < truth, "the penalty is a bias"


def test_a_larger_bound_costs_its_logarithm() -> None:
    def err(greatest: float) -> float:
        found = draw_raced_sums(VALUES, 4.0, 4000, np.random.default_rng(4), greatest)
        return float(np.median(np.abs(found - VALUES.sum())))

    assert 1.4 < err(2.0**40) / err(2.0**20) < 3


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_best_limit_is_the_best(epsilon: float) -> None:
    best = find_best_limit(VALUES, epsilon)

    def measure(limit: float) -> float:
        found = draw_truncated_sums(VALUES, epsilon, 20_000, np.random.default_rng(5), limit)
        return float(np.abs(found - VALUES.sum()).mean())

    tried = {float(value): measure(float(value)) for value in VALUES[::25]}
    assert measure(best) <= 1.03 * min(tried.values())


def test_nobody_contributes_nothing() -> None:
    found = draw_raced_sums(np.zeros(50), 1.0, 1000, np.random.default_rng(6), GREATEST)
    assert np.median(found) == 0
