"""Laplace noise against scipy, and the paper's interval."""

import numpy as np
import pytest
from scipy import stats

from idios.evaluation.noises import Laplace


@pytest.mark.parametrize("scale", [0.01, 1, 250])
def test_agrees_with_scipy(scale: float) -> None:
    noise, reference = Laplace(scale), stats.laplace(scale=scale)
    x, p = np.linspace(-20, 20, 101) * scale, np.linspace(0.001, 0.999, 99)
    assert noise.pdf(x) == pytest.approx(reference.pdf(x), rel=1e-13)
    assert noise.cdf(x) == pytest.approx(reference.cdf(x), rel=1e-13)
    assert noise.quantile(p) == pytest.approx(reference.ppf(p), rel=1e-12, abs=1e-12)
    assert noise.expected_absolute == scale


def test_the_interval_of_the_paper() -> None:
    assert Laplace(1).central_interval(0.95) == pytest.approx((-2.9957, 2.9957), abs=1e-4)


def test_a_move_by_the_sensitivity_costs_epsilon() -> None:
    noise, x = Laplace(2 / 0.5), np.linspace(-30, 30, 2001)  # sensitivity 2, ε = 0.5
    loss = np.abs(np.log(noise.pdf(x) / noise.pdf(x - 2)))
    assert loss.max() == pytest.approx(0.5)
