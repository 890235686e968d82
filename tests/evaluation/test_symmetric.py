"""What every continuous noise must satisfy, checked by numerical integration."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from idios.errors import InvalidInput
from idios.evaluation.noises import Admissible, Laplace, Staircase, Symmetric

NOISES = [
    Laplace(1),
    Laplace(Fraction(7, 3)),
    Staircase(1, 1),
    Staircase(5, 0.1),
    Staircase(0.5, 30),
    Admissible(2),
    Admissible(3, 12),
    Admissible(1.2, 0.5),
    Admissible(20),
    Admissible(500),
]
# Where the densities of the staircases jump; elsewhere they are smooth.
JUMPS = {
    noise: [noise.sensitivity * (k + part) for k in range(70) for part in (0, noise.gamma)]
    for noise in NOISES
    if isinstance(noise, Staircase)
}


def integral(noise: Symmetric, low: float, high: float) -> float:
    inside = sorted(j for jump in JUMPS.get(noise, []) for j in (jump, -jump) if low < j < high)
    points = [low, *inside, high]
    return sum(integrate.quad(noise.pdf, a, b, epsabs=1e-12)[0] for a, b in pairwise(points))


@pytest.fixture(params=NOISES, ids=repr)
def noise(request: pytest.FixtureRequest) -> Symmetric:
    return request.param


def test_cdf_is_the_integral_of_the_density(noise: Symmetric) -> None:
    points = [float(noise.quantile(p)) for p in (0.2, 0.4, 0.5, 0.55, 0.7, 0.9)]
    for low, high in pairwise(points):
        assert integral(noise, low, high) == pytest.approx(noise.cdf(high) - noise.cdf(low), rel=1e-8, abs=1e-11)


def test_everything_is_symmetric(noise: Symmetric) -> None:
    x = np.linspace(0.01, 7.3, 50)
    assert noise.pdf(-x) == pytest.approx(noise.pdf(x), rel=1e-14)
    assert noise.cdf(-x) == pytest.approx(1 - noise.cdf(x), abs=1e-15)
    assert noise.cdf(0.0) == 0.5
    assert noise.quantile(0.5) == pytest.approx(0, abs=1e-15)
    assert noise.quantile(0.1) == pytest.approx(-noise.quantile(0.9))


def test_quantile_inverts_cdf_far_into_the_tails(noise: Symmetric) -> None:
    small = np.array([1e-30, 1e-12, 1e-6, 0.001, 0.01, 0.1, 0.3, 0.4999, 0.5])
    assert noise.cdf(noise.quantile(small)) == pytest.approx(small, rel=1e-9)
    large = np.array([0.5001, 0.6, 0.9, 0.999999])
    assert noise.cdf(noise.quantile(large)) == pytest.approx(large, rel=1e-12)
    assert np.all(np.diff(noise.quantile(np.concatenate([small, large]))) > 0)


def test_central_interval_holds_its_share(noise: Symmetric) -> None:
    for p in (0.01, 0.5, 0.95, 1 - 1e-9):
        low, high = noise.central_interval(p)
        assert low == -high < 0
        assert noise.cdf(high) - noise.cdf(low) == pytest.approx(p, rel=1e-9)


def test_ends(noise: Symmetric) -> None:
    assert noise.cdf(math.inf) == 1
    assert noise.cdf(-math.inf) == 0
    assert noise.pdf(math.inf) == 0


def test_numbers_give_numbers_and_arrays_arrays(noise: Symmetric) -> None:
    for function in (noise.pdf, noise.cdf, noise.quantile):
        assert type(function(0.25)) is float
        assert type(function(np.float64(0.25))) is float
        table = function(np.array([[0.25, 0.5], [0.75, 0.125]]))
        assert table.shape == (2, 2)
        assert table[0, 0] == function(0.25)


@pytest.mark.parametrize("p", [0, 1, -0.1, 1.5, math.nan])
def test_illegal_probabilities_are_refused(noise: Symmetric, p: float) -> None:
    for function in (noise.quantile, noise.central_interval):
        with pytest.raises(InvalidInput, match="p must lie strictly between 0 and 1"):
            function(p)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplace(0), "scale must be greater than 0, got 0"),
        (lambda: Laplace(-1), "scale must be greater than 0, got -1"),
        (lambda: Laplace(math.nan), "scale must be a finite number, got nan"),
        (lambda: Laplace(math.inf), "scale must be a finite number, got inf"),
        (lambda: Laplace("wide"), "scale must be a finite number, got 'wide'"),
        (lambda: Laplace("1e-400"), "scale must be within the range of floats"),
        (lambda: Laplace(10**400), "scale must be within the range of floats"),
        (lambda: Staircase(0, 1), "sensitivity must be greater than 0, got 0"),
        (lambda: Staircase(1, -1), "epsilon must be greater than 0, got -1"),
        (lambda: Staircase(1, 701), "epsilon must be at most 700, got 701"),
        (lambda: Admissible(1), "gamma must be greater than 1.* got 1"),
        (lambda: Admissible(0.5), "gamma must be greater than 1.* got 0.5"),
        (lambda: Admissible(-2), "gamma must be greater than 0, got -2"),
        (lambda: Admissible(2, 0), "scale must be greater than 0, got 0"),
    ],
)
def test_illegal_parameters_are_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()  # type: ignore[operator]


def test_a_noise_does_not_change(noise: Symmetric) -> None:
    with pytest.raises(AttributeError):
        noise.scale = 3  # type: ignore[attr-defined]
    assert len({noise, noise}) == 1
