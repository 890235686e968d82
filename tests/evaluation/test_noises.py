"""The continuous noises: what all of them satisfy, checked by integration, and what each one promises."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from idios.errors import InvalidInput
from idios.evaluation.noises import Admissible, Laplace, Staircase, Symmetric, paper_pair, tight_pair

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


@pytest.mark.parametrize("scale", [0.01, 1, 250])
def test_laplace_agrees_with_scipy(scale: float) -> None:
    noise, reference = Laplace(scale), stats.laplace(scale=scale)
    x, p = np.linspace(-20, 20, 101) * scale, np.linspace(0.001, 0.999, 99)
    assert noise.pdf(x) == pytest.approx(reference.pdf(x), rel=1e-13)
    assert noise.cdf(x) == pytest.approx(reference.cdf(x), rel=1e-13)
    assert noise.quantile(p) == pytest.approx(reference.ppf(p), rel=1e-12, abs=1e-12)
    assert noise.expected_absolute == scale


def test_laplace_has_the_interval_of_the_paper() -> None:
    assert Laplace(1).central_interval(0.95) == pytest.approx((-2.9957, 2.9957), abs=1e-4)


def test_moving_laplace_by_the_sensitivity_costs_epsilon() -> None:
    noise, x = Laplace(2 / 0.5), np.linspace(-30, 30, 2001)  # sensitivity 2, ε = 0.5
    loss = np.abs(np.log(noise.pdf(x) / noise.pdf(x - 2)))
    assert loss.max() == pytest.approx(0.5)


STAIRCASES = [Staircase(1, 0.1), Staircase(1, 1), Staircase(3, 2), Staircase(0.2, 8)]


def pieces(noise: Staircase, reach: float = 60) -> list[tuple[float, float]]:
    """Cut the positive half line where the density jumps, as far as e^(−reach)."""
    stairs = range(math.ceil(reach / noise.epsilon))
    edges = sorted(noise.sensitivity * (k + part) for k in stairs for part in (0, noise.gamma))
    return list(pairwise(edges))


@pytest.mark.parametrize("noise", STAIRCASES, ids=repr)
def test_mass_and_mean_of_a_staircase_by_integration(noise: Staircase) -> None:
    mass = sum(integrate.fixed_quad(noise.pdf, a, b, n=4)[0] for a, b in pieces(noise))
    mean = sum(integrate.fixed_quad(lambda x: x * noise.pdf(x), a, b, n=4)[0] for a, b in pieces(noise))
    assert 2 * mass == pytest.approx(1, rel=1e-10)
    assert 2 * mean == pytest.approx(noise.expected_absolute, rel=1e-10)
    epsilon = noise.epsilon
    formula = noise.sensitivity * math.exp(epsilon / 2) / (math.exp(epsilon) - 1)
    assert noise.expected_absolute == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize("noise", STAIRCASES, ids=repr)
def test_no_move_of_a_staircase_up_to_the_sensitivity_costs_more_than_epsilon(noise: Staircase) -> None:
    x = noise.sensitivity * np.linspace(-5, 5, 4001)[:, None]
    moves = noise.sensitivity * np.linspace(-0.9999, 0.9999, 301)
    loss = np.abs(np.log(noise.pdf(x + moves) / noise.pdf(x)))
    assert loss.max() == pytest.approx(noise.epsilon, rel=1e-9)
    # The test has power: a little further, and two stairs are passed.
    further = np.abs(np.log(noise.pdf(x + 1.2 * noise.sensitivity) / noise.pdf(x)))
    assert further.max() == pytest.approx(2 * noise.epsilon, rel=1e-9)


@pytest.mark.parametrize("noise", STAIRCASES, ids=repr)
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


@pytest.mark.parametrize("noise", STAIRCASES, ids=repr)
def test_a_staircase_beats_laplace(noise: Staircase) -> None:
    assert noise.expected_absolute < Laplace(noise.sensitivity / noise.epsilon).expected_absolute


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
