"""The noise of smooth sensitivity: its shape, the paper's table, and which pairs really are admissible."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from idios.errors import InvalidInput
from idios.evaluation.noises import Admissible, paper_pair, tight_pair


def test_gamma_two_is_the_cauchy_distribution() -> None:
    noise, reference = Admissible(2, 3), stats.cauchy(scale=3)
    x, p = np.concatenate([-np.logspace(-6, 12, 50), np.logspace(-6, 6, 50)]), np.linspace(0.001, 0.999, 99)
    assert noise.pdf(x) == pytest.approx(reference.pdf(x), rel=1e-12)
    assert noise.cdf(x) == pytest.approx(reference.cdf(x), rel=1e-12)
    assert noise.quantile(p) == pytest.approx(reference.ppf(p), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("gamma", [1.1, 1.5, 2, 3, 4.5, 12])
def test_the_normalising_constant(gamma: float) -> None:
    integral = 2 * (math.pi / gamma) / math.sin(math.pi / gamma)
    assert Admissible(gamma).pdf(0.0) == pytest.approx(1 / integral, rel=1e-12)
    near = integrate.quad(lambda x: 1 / (1 + x**gamma), 0, 1)[0]
    far = integrate.quad(lambda u: u ** (gamma - 2) / (u**gamma + 1), 0, 1)[0]  # x = 1/u
    assert 2 * (near + far) == pytest.approx(integral, rel=1e-6)


def test_the_tail_is_accurate_where_it_is_small() -> None:
    # Far out Pr(X > x) is c·x^(1−γ)/(γ−1), c = pdf(0), up to a relative x^(−γ).
    for gamma in (1.5, 2, 3, 7):
        noise = Admissible(gamma)
        x = -(10.0 ** (24 / gamma))
        assert noise.cdf(x) == pytest.approx(noise.pdf(0.0) * abs(x) ** (1 - gamma) / (gamma - 1), rel=1e-11)


@pytest.mark.parametrize("gamma", [2.5, 3, 4, 10])
def test_mean_absolute_value(gamma: float) -> None:
    noise = Admissible(gamma, 2)
    near = integrate.quad(lambda x: 2 * x * noise.pdf(x), 0, 20)[0]
    # Beyond, the integral of the tail: E[|X|; |X| > b] = 2·b·T(b) + 2·∫ T.
    far = 40 * noise.cdf(-20.0) + 2 * integrate.quad(lambda x: noise.cdf(-x), 20, np.inf)[0]
    assert near + far == pytest.approx(noise.expected_absolute, rel=1e-5)


@pytest.mark.parametrize("gamma", [1.5, 2])
def test_mean_absolute_value_is_infinite_up_to_two(gamma: float) -> None:
    assert Admissible(gamma).expected_absolute == math.inf


@pytest.mark.parametrize(
    ("gamma", "pair", "half_width"),
    [(2, paper_pair, 101.65), (3, paper_pair, 34.22), (2, tight_pair, 25.41), (3, tight_pair, 9.05)],
)
def test_the_table_of_the_paper_and_the_fair_one(gamma: float, pair: object, half_width: float) -> None:
    alpha, _ = pair(gamma, 1)  # type: ignore[operator]
    low, high = Admissible(gamma, 1 / alpha).central_interval(0.95)
    assert (low, high) == pytest.approx((-half_width, half_width), abs=0.006)


def worst_loss(gamma: float, alpha: float, beta: float) -> float:
    """Search for the largest |ln| ratio of densities after a move by α and a stretch by e^β, both ways."""
    noise = Admissible(gamma)
    x = np.logspace(-4, 6, 100_001)
    x = np.concatenate([-x, x])
    stretches = [
        stretch + np.log(noise.pdf(math.exp(stretch) * (x + move)))
        for move in (alpha, 0, -alpha)
        for stretch in (beta, 0, -beta)
    ]
    return max(float(np.abs(np.log(noise.pdf(x)) - moved).max()) for moved in stretches)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 2])
def test_pairs_are_admissible(epsilon: float) -> None:
    for gamma in (2, 3):
        paper, tight = (worst_loss(gamma, *pair(gamma, epsilon)) for pair in (paper_pair, tight_pair))
        assert paper < 0.75 * epsilon  # loose
        assert paper < tight <= epsilon


def test_the_pair_of_the_paper_fails_from_gamma_eight_on() -> None:
    assert worst_loss(7, *paper_pair(7, 1)) < 1
    assert worst_loss(8, *paper_pair(8, 1)) == pytest.approx(1.01, abs=0.005)
    assert worst_loss(20, *paper_pair(20, 1)) == pytest.approx(1.14, abs=0.005)


def test_pairs() -> None:
    assert paper_pair(2, 1) == (1 / 8, 1 / 2)
    assert paper_pair(3, 0.5) == pytest.approx((1 / 24, 1 / 6))
    assert tight_pair(2, 0.5) == (0.25, 0.25)
    assert tight_pair(3, 2) == (0.63, 0.5)


@pytest.mark.parametrize(
    ("pair", "gamma", "epsilon", "message"),
    [
        (tight_pair, 4, 1, "gamma must be 2 or 3 for a tight pair, got 4"),
        (tight_pair, 2, 0, "epsilon must be greater than 0, got 0"),
        (paper_pair, 1, 1, "gamma must be greater than 1"),
        (paper_pair, 2, -1, "epsilon must be greater than 0, got -1"),
    ],
)
def test_illegal_pairs_are_refused(pair: object, gamma: float, epsilon: float, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        pair(gamma, epsilon)  # type: ignore[operator]
