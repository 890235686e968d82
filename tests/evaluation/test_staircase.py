"""Staircase noise: its mass, its mean, its guarantee and that nothing on the reals does better."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from idios.evaluation.noises import Laplace, Staircase

CASES = [Staircase(1, 0.1), Staircase(1, 1), Staircase(3, 2), Staircase(0.2, 8)]


def pieces(noise: Staircase, reach: float = 60) -> list[tuple[float, float]]:
    """Cut the positive half line where the density jumps, as far as e^(−reach)."""
    stairs = range(math.ceil(reach / noise.epsilon))
    edges = sorted(noise.sensitivity * (k + part) for k in stairs for part in (0, noise.gamma))
    return list(pairwise(edges))


@pytest.mark.parametrize("noise", CASES, ids=repr)
def test_mass_and_mean_by_integration(noise: Staircase) -> None:
    mass = sum(integrate.fixed_quad(noise.pdf, a, b, n=4)[0] for a, b in pieces(noise))
    mean = sum(integrate.fixed_quad(lambda x: x * noise.pdf(x), a, b, n=4)[0] for a, b in pieces(noise))
    assert 2 * mass == pytest.approx(1, rel=1e-10)
    assert 2 * mean == pytest.approx(noise.expected_absolute, rel=1e-10)
    epsilon = noise.epsilon
    formula = noise.sensitivity * math.exp(epsilon / 2) / (math.exp(epsilon) - 1)
    assert noise.expected_absolute == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize("noise", CASES, ids=repr)
def test_no_move_up_to_the_sensitivity_costs_more_than_epsilon(noise: Staircase) -> None:
    x = noise.sensitivity * np.linspace(-5, 5, 4001)[:, None]
    moves = noise.sensitivity * np.linspace(-0.9999, 0.9999, 301)
    loss = np.abs(np.log(noise.pdf(x + moves) / noise.pdf(x)))
    assert loss.max() == pytest.approx(noise.epsilon, rel=1e-9)
    # The test has power: a little further, and two stairs are passed.
    further = np.abs(np.log(noise.pdf(x + 1.2 * noise.sensitivity) / noise.pdf(x)))
    assert further.max() == pytest.approx(2 * noise.epsilon, rel=1e-9)


@pytest.mark.parametrize("noise", CASES, ids=repr)
def test_the_width_of_the_stairs_is_the_best_one(noise: Staircase) -> None:
    def mean(gamma: float) -> float:
        """E|X| of the staircase with another γ, stair by stair."""
        decay = math.exp(-noise.epsilon)
        height = (1 - decay) / (2 * (gamma + decay * (1 - gamma)))
        k = np.arange(math.ceil(60 / noise.epsilon))
        upper = ((k + gamma) ** 2 - k**2) / 2
        lower = ((k + 1) ** 2 - (k + gamma) ** 2) / 2
        return noise.sensitivity * 2 * height * float(np.sum(decay**k * (upper + decay * lower)))

    assert mean(noise.gamma) == pytest.approx(noise.expected_absolute, rel=1e-9)
    assert mean(noise.gamma) < min(mean(noise.gamma * 0.9), mean(noise.gamma * 1.1))


@pytest.mark.parametrize("noise", CASES, ids=repr)
def test_it_beats_laplace(noise: Staircase) -> None:
    assert noise.expected_absolute < Laplace(noise.sensitivity / noise.epsilon).expected_absolute
