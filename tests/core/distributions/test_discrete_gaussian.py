"""Discrete Gaussian noise: each claim of the proof by itself, the distribution of the draws, and floats by summation.

The statistical tests have a false-alarm rate of 10^(−6) together; each is shown to have power by samplers that are
wrong on purpose.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from idios.core.distributions import DiscreteGaussian, discrete_gaussian
from idios.core.distributions.discrete_gaussian import _bound_places, _keep, _Strata
from idios.core.enclosures import exp_minus
from idios.core.sampling import SeededSource
from idios.errors import InvalidInput
from tests.randomness import FALSE_ALARM, Scripted, chi_square, more

SIGMAS = [Fraction(1, 7), Fraction(1, 2), Fraction(1), Fraction(22, 7), Fraction(100), Fraction(10**9)]


def power(exponent: Fraction) -> Decimal:
    """e^(−exponent) in the current context."""
    return (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


# ---------------------------------------------------------------------------------------------- the proof, in parts


@pytest.mark.parametrize("sigma", [*SIGMAS, Fraction(31), Fraction(33), Fraction(10**30)], ids=str)
def test_what_is_proposed_and_kept_multiplies_to_the_weight(sigma: Fraction) -> None:
    strata = _Strata(sigma**2)
    width, number = 1 << strata.bits, strata.number
    assert (number * width) ** 2 >= 36 * sigma**2
    assert width == 1 or sigma / 32 < width <= sigma / 16
    for i in (0, 1, number // 2, number - 1):
        for offset in {0, width // 3, width - 1}:
            wanted = Fraction((i * width + offset) ** 2) / (2 * sigma**2)
            assert strata.rate * i**2 + strata._exponent(i, offset) == wanted
    for steps in (0, 1, 5):  # of the tail
        for offset in {0, width - 1}:
            i = number + steps
            wanted = Fraction((i * width + offset) ** 2) / (2 * sigma**2)
            proposed = strata.rate * (number**2 + 2 * number * steps)
            assert proposed + strata.rate * steps**2 + strata._exponent(i, offset) == wanted


@pytest.mark.parametrize("sigma", [*SIGMAS, Fraction(1, 50), Fraction(10**30)], ids=str)
def test_the_weights_of_strata_and_tail_are_enclosed(sigma: Fraction) -> None:
    strata = _Strata(sigma**2)
    with localcontext(prec=120):
        weights = [power(strata.rate * i**2) for i in range(strata.number)]
        ratio = power(2 * strata.number * strata.rate)
        weights.append(power(strata.rate * strata.number**2) / (1 - ratio))
        for places in (128, 192):
            for (low, high), weight in zip(strata.enclose(places), weights, strict=True):
                assert low <= weight * 2**places <= high
                assert high - low <= 2**20
        total, part = sum(weights), Decimal(0)
        for j, weight in enumerate(weights):
            part += weight
            assert int(strata.low[j]) <= part / total * 2**32 + Decimal("1e-60")
            if j < strata.number:
                assert part / total * 2**32 <= int(strata.high[j]) <= int(strata.low[j]) + 2
    assert strata.low[-1] == 2**32
    assert len(strata.high) == strata.number


@pytest.mark.parametrize("variance", [32**2, 100**2, Fraction(10**4, 7)], ids=str)
def test_every_word_is_decided_as_the_exact_comparison_does(variance: Fraction) -> None:
    """All points of all strata: the words v that are surely kept, v + 1 ≤ 2^16·e^(−z), and surely not, v ≥ 2^16·e^(−z).

    Both sets are intervals of words, so their ends are enough.
    """
    strata = _Strata(Fraction(variance))
    words = np.arange(2**16, dtype=np.int64)
    open_words = 0
    for i in range(strata.number):
        for offset in range(1 << strata.bits):
            kept, possible = strata._decide(words, np.full_like(words, i), np.full_like(words, offset))
            sure, thrown = int(kept.sum()), int((~possible).sum())
            assert kept[:sure].all()
            assert not possible[2**16 - thrown :].any()
            low, high = exp_minus(strata._exponent(i, offset), 80)
            assert sure << 64 <= low
            assert 2**16 - thrown << 64 >= high or thrown == 0
            open_words += 2**16 - thrown - sure
    assert open_words < 2**16 * strata.number * 2**strata.bits / 50  # and few are left open


def test_no_product_overflows_at_any_width() -> None:
    """The greatest stratum and offset at widths up to those of objects, in Python's own integers."""
    for exponent in (5, 16, 40, 53, 54, 60, 99):
        for variance in (Fraction(4**exponent * 256), Fraction(4**exponent * 1023)):
            strata = _Strata(variance)
            offsets = [0, 1, (1 << strata.bits) // 3, (1 << strata.bits) - 1]
            kind = object if strata.bits > 54 else np.int64
            for i in (0, 1, strata.number // 2, strata.number):
                for word in (0, 30_000, 60_000, 65_535):
                    index, words = np.full(4, i), np.full(4, word)
                    kept, possible = strata._decide(words, index, np.array(offsets, dtype=kind))
                    for offset, yes, maybe in zip(offsets, kept, possible, strict=True):
                        low, high = exp_minus(strata._exponent(i, offset), 80)
                        assert not yes or word + 1 << 64 <= low
                        assert maybe or word << 64 >= high


def test_a_word_that_decides_nothing_is_settled_given_the_word() -> None:
    """e^(−1/2)·2^16 = 39749.88…: of the word 39749 the first 0.88… keep."""
    with localcontext(prec=60):
        scaled = power(Fraction(1, 2)) * 2**16
        assert int(scaled) == 39749
        share = int((scaled - 39749) * 2**64)
    for drawn, expected in [(0, True), (share - 2**20, True), (share + 2**20, False), (2**64 - 1, False)]:
        assert _keep(Fraction(1, 2), 39749, Scripted(more(drawn))) is expected
    for drawn in (0, 2**63, 2**64 - 1):
        assert _keep(Fraction(1, 2), 39748, Scripted(more(drawn))) is True
        assert _keep(Fraction(1, 2), 39750, Scripted(more(drawn))) is False
        assert _keep(Fraction(0), 65535, Scripted(more(drawn))) is True


def test_a_word_between_two_strata_is_settled_given_the_word() -> None:
    strata = _Strata(Fraction(100))
    with localcontext(prec=80):
        weights = [power(strata.rate * i**2) for i in range(strata.number)]
        tail = power(strata.rate * strata.number**2) / (1 - power(2 * strata.number * strata.rate))
        total = sum(weights) + tail
        for j in (0, 3, 20):
            place = sum(weights[: j + 1]) / total * 2**32
            word, share = int(place), int((place - int(place)) * 2**64)
            assert strata.low[j] == word
            for drawn, expected in [(0, j), (share - 1, j), (share + 1, j + 1), (2**64 - 1, j + 1)]:
                source = Scripted(word.to_bytes(4, "little"), more(drawn))
                assert strata._draw_strata(1, source).tolist() == [expected]
            assert strata._draw_strata(1, Scripted((word - 1).to_bytes(4, "little"))).tolist() == [j]
            assert strata._draw_strata(1, Scripted((word + 1).to_bytes(4, "little"))).tolist() == [j + 1]


def test_minus_zero_is_thrown_away() -> None:
    strata = _Strata(Fraction(1))
    zero, one = (0).to_bytes(4, "little"), (2**32 * 6 // 10).to_bytes(4, "little")
    assert strata.draw(4, Scripted(zero + zero + one + one, bytes([0b01010000]))).tolist() == [0, 1, -1]


def test_bounds_hold_where_weights_are_not_known_at_all() -> None:
    low, high = _bound_places([(1 << 20, 1 << 20), (0, 1 << 20), (0, 1)])
    assert low.tolist()[0] <= 2**31
    assert high.tolist() == [2**32, 2**32]


# --------------------------------------------------------------------------------------------------- the law of draws


def p_values(sample: NDArray[np.int64], noise: DiscreteGaussian) -> dict[str, float]:
    """Test a sample: body, zeros, both tails, the largest and the lowest bits."""
    n, sigma = len(sample), math.sqrt(noise.variance)
    edges = np.unique([noise.quantile(p) for p in np.linspace(0.02, 0.98, 49)])
    expected = n * np.diff([0, *noise.cdf(edges), 1])
    found = {"body": chi_square(np.bincount(np.searchsorted(edges, sample), minlength=len(expected)), expected)}
    found["zeros"] = stats.binomtest(int((sample == 0).sum()), n, noise.pmf(0)).pvalue
    far = -noise.quantile(100 / n)
    for side, tail in (("lower", sample <= -far), ("upper", sample >= far)):
        found[f"{side} tail"] = stats.binomtest(int(tail.sum()), n, noise.cdf(-far)).pvalue
    found["largest"] = min(1.0, n * 2 * noise.cdf(-int(np.abs(sample).max())))
    if sigma < 1 / 2:
        return found
    if sigma < 1000:
        points = np.arange(-40_000, 40_000)
        shares = np.bincount(points % 8, weights=noise.pmf(points), minlength=8)
    else:  # alike, by Poisson's formula
        shares = np.full(8, 1 / 8)
    found["lowest bits"] = chi_square(np.bincount(sample % 8, minlength=8), n * shares)
    return found


def alarms(sample: NDArray[np.int64], noise: DiscreteGaussian) -> list[str]:
    return [name for name, p in p_values(sample, noise).items() if p < FALSE_ALARM]


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_noise_has_its_distribution(sigma: Fraction) -> None:
    noise = DiscreteGaussian(sigma**2)
    assert alarms(noise.sample(1_000_000), noise) == []


@pytest.mark.statistical
def test_single_draws_and_huge_variances_have_the_distribution() -> None:
    three = DiscreteGaussian(Fraction(3))
    assert alarms(np.array([three.sample() for _ in range(10_000)]), three) == []
    huge = DiscreteGaussian(Fraction(10**60)).sample(20_000)
    assert huge.dtype == object
    assert all(type(value) is int for value in huge[:100])
    coarse = (huge // 10**21).astype(np.int64)  # moves a value by 10^(−9) of σ at most
    assert alarms(coarse, DiscreteGaussian(Fraction(10**18))) == []


@pytest.mark.statistical
def test_the_tail_has_its_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """From half a σ on in place of six, so that most draws pass through it."""
    monkeypatch.setattr(discrete_gaussian, "_OUTER", 0.5)
    for variance in (Fraction(4), Fraction(50**2)):
        noise, strata = DiscreteGaussian(variance), _Strata(variance)
        assert strata.number**2 * 4**strata.bits < variance
        source = SeededSource(2)
        drawn = np.concatenate([strata.draw(5000, source) for _ in range(4)])
        assert len(drawn) > 4000
        assert alarms(drawn, noise) == []


# That the tests have power is shown with seeds: a fault once noticed is noticed in every run.


@pytest.mark.statistical
def test_faults_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = DiscreteGaussian(Fraction(25)), DiscreteGaussian(Fraction(10**18))
    sample = large.sample(1_000_000, SeededSource(1))
    assert alarms(sample, large) == []
    assert "body" in alarms(sample, DiscreteGaussian(Fraction(10**18) * Fraction(102, 100)))
    assert alarms(sample & ~1, large) == ["lowest bits"]
    assert "upper tail" in alarms(np.minimum(sample, 37 * 10**8), large)
    assert "largest" in alarms(np.append(sample, 10**10), large)
    drawn = small.sample(1_000_000, SeededSource(1))
    assert alarms(drawn, small) == []
    assert "zeros" in alarms(np.append(drawn, np.zeros(np.count_nonzero(drawn == 0), dtype=np.int64)), small)

    def keep_all(self: _Strata, words: object, strata: NDArray[np.int64], offsets: object) -> tuple[object, object]:
        return np.ones(len(strata), dtype=np.bool_), np.ones(len(strata), dtype=np.bool_)

    monkeypatch.setattr(_Strata, "_decide", keep_all)
    assert "body" in alarms(large.sample(1_000_000, SeededSource(1)), large)


# -------------------------------------------------------------------------------------------------------- floats


@cache
def exact_masses(sigma: Fraction) -> list[Decimal]:
    """Pr(X = k) for k = 0, 1, …, to 40 digits."""
    with localcontext(prec=50):
        weights = [power(Fraction(k * k) / (2 * sigma**2)) for k in range(math.ceil(30 * sigma) + 30)]
        total = 2 * sum(weights) - 1
        return [weight / total for weight in weights]


@pytest.mark.parametrize("sigma", SIGMAS[:5], ids=str)
def test_masses_and_tails_agree_with_sums(sigma: Fraction) -> None:
    noise, masses = DiscreteGaussian(sigma**2), exact_masses(sigma)
    points = np.arange(len(masses))
    assert noise.pmf(points) == pytest.approx([float(m) for m in masses], rel=1e-12, abs=1e-300)
    tails = np.cumsum([float(m) for m in reversed(masses)])[::-1]
    shown = len(masses) * 9 // 10  # of the last ones a part is missing
    points, tails = points[:shown], tails[:shown]
    assert noise.cdf(-points) == pytest.approx(tails, rel=1e-12, abs=1e-200)
    assert noise.cdf(points) == pytest.approx(1 - np.append(tails[1:], 0), rel=1e-12)
    mean = 2 * sum(k * m for k, m in enumerate(masses))
    assert noise.expected_absolute == pytest.approx(float(mean), rel=1e-13)


def test_the_large_formulas_agree_with_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.array([0, 1, 10, 500, 900, 4000, 9999, 30_000])
    summed = DiscreteGaussian(Fraction(999**2))
    expected = summed.pmf(points), summed.cdf(-points), summed.expected_absolute
    monkeypatch.setattr(discrete_gaussian, "_TABULATED", 0.0)
    other = DiscreteGaussian(Fraction(999**2))
    assert other.pmf(points) == pytest.approx(expected[0], rel=1e-12)
    assert other.cdf(-points) == pytest.approx(expected[1], rel=1e-11)
    assert other.expected_absolute == pytest.approx(expected[2], rel=1e-13)


@pytest.mark.parametrize("sigma", [*SIGMAS, Fraction(10**30)], ids=str)
def test_quantiles_are_the_least_that_reach_p(sigma: Fraction) -> None:
    noise = DiscreteGaussian(sigma**2)
    step = max(1, sigma // 10**12)  # what floats can tell apart
    for p in (1e-200, 1e-12, 1e-4, 0.025, 0.3, 0.4999, 0.51, 0.8, 0.975, 0.9999):
        k = noise.quantile(p)
        assert type(k) is int
        assert noise.cdf(k + step - 1) >= p > noise.cdf(k - step)
    low, high = noise.central_interval(0.9)
    assert low == -high
    assert sigma < 1 or noise.cdf(high + step) - noise.cdf(low - 1 - step) >= 0.9


def test_it_approaches_the_normal_distribution() -> None:
    assert DiscreteGaussian(Fraction(10**12)).quantile(0.975) == pytest.approx(1.959963984540054e6, rel=1e-5)


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(7, 3), Fraction(50)], ids=str)
def test_rho_is_attained_at_whole_orders_and_never_passed(variance: Fraction) -> None:
    noise, points = DiscreteGaussian(variance), range(-160, 161)
    with localcontext(prec=40):
        weights = {k: power(Fraction(k * k) / (2 * variance)) for k in range(-170, 171)}
        total = sum(weights.values())
        for shift in (1, -3, 8):
            for alpha in (Decimal("1.5"), Decimal(2), Decimal("2.25"), Decimal(4)):
                summed = sum(weights[k] ** alpha * weights[k - shift] ** (1 - alpha) for k in points) / total
                rho = Decimal(noise.rho(shift).numerator) / noise.rho(shift).denominator
                share = summed.ln() / (alpha - 1) / (alpha * rho)
                assert share <= 1 + Decimal("1e-30")
                if alpha * shift == int(alpha * shift):
                    assert share >= 1 - Decimal("1e-12")


# ------------------------------------------------------------------------------------------------- sizes and arguments


def test_variance_zero_is_the_constant_zero() -> None:
    noise = DiscreteGaussian(Fraction(0))
    assert noise.pmf(np.array([-1, 0, 1])).tolist() == [0, 1, 0]
    assert noise.cdf(np.array([-1, 0, 1])).tolist() == [0, 1, 1]
    assert (noise.expected_absolute, noise.quantile(0.01), noise.central_interval(0.95)) == (0, 0, (0, 0))
    assert (noise.sample(), noise.sample(3).tolist(), noise.rho(0)) == (0, [0, 0, 0], 0)
    with pytest.raises(InvalidInput, match="shift must be 0 where the variance is 0"):
        noise.rho(1)


def test_variances_that_no_float_can_hold() -> None:
    tiny, huge = DiscreteGaussian(Fraction(1, 10**400)), DiscreteGaussian(Fraction(10**400))
    assert (tiny.pmf(0), tiny.quantile(0.99), tiny.expected_absolute, tiny.sample()) == (1, 0, 0, 0)
    assert not tiny.sample(1000).any()
    assert huge.expected_absolute == pytest.approx(math.sqrt(2 / math.pi) * 1e200)
    assert abs(huge.sample()) > 10**190


def test_sizes_and_types() -> None:
    noise = DiscreteGaussian(Fraction(5))
    assert type(noise.sample()) is int
    for size in (0, 1, 7, 40_000):
        drawn = noise.sample(size)
        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64
    assert DiscreteGaussian(Fraction(10**60)).sample(0).dtype == object
    assert np.array_equal(noise.sample(50, SeededSource(4)), noise.sample(50, SeededSource(4)))
    assert type(noise.pmf(1)) is type(noise.cdf(1)) is float
    assert noise.pmf(0.5) == 0
    assert noise.cdf(-0.5) == noise.cdf(-1)


def test_a_variance_is_kept_as_a_fraction() -> None:
    for variance in (Fraction(1, 10), "0.1", Decimal("0.1"), 0.1):
        assert DiscreteGaussian(variance) == DiscreteGaussian(Fraction(1, 10))  # type: ignore[arg-type]


@pytest.mark.parametrize("variance", [-1, math.nan, math.inf, "wide", None])
def test_illegal_variances_are_refused(variance: object) -> None:
    with pytest.raises(InvalidInput, match="variance must be"):
        DiscreteGaussian(variance)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [-1, 2.5, "many"])
def test_illegal_sizes_and_shifts_are_refused(size: object) -> None:
    noise = DiscreteGaussian(Fraction(1))
    with pytest.raises(InvalidInput, match="size must be"):
        noise.sample(size)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="shift must be a whole number"):
        noise.rho(0.5)  # type: ignore[arg-type]
    for p in (0, 1, math.nan):
        with pytest.raises(InvalidInput, match="p must lie strictly between 0 and 1"):
            noise.quantile(p)


@pytest.mark.parametrize(
    "variance", [Fraction(0), Fraction(1, 50), Fraction(1, 2), Fraction(9), Fraction(10**4)], ids=str
)
def test_expected_distance_is_a_sum(variance: Fraction) -> None:
    noise = DiscreteGaussian(variance)
    points = range(-1000, 1001)
    for shift in (0, 1, -3, 40, 600):
        expected = math.fsum(abs(k + shift) * noise.pmf(k) for k in points)
        assert math.isclose(noise.expected_distance(shift), expected, rel_tol=1e-9, abs_tol=1e-12)
    assert math.isclose(noise.expected_distance(0), noise.expected_absolute, abs_tol=1e-12)


def test_expected_distance_where_the_sum_is_an_integral() -> None:
    """Above σ = 1000, against the sum itself."""
    noise = DiscreteGaussian(Fraction(1001**2))
    points = np.arange(-12_000, 12_001)
    for shift in (0, 7, -1500, 9000):
        expected = math.fsum(np.abs(points + shift) * noise.pmf(points))
        assert math.isclose(noise.expected_distance(shift), expected, rel_tol=1e-9)
    assert noise.expected_distance(10**6) == 10**6
    assert (
        DiscreteGaussian(Fraction(10**40)).expected_distance(0) == DiscreteGaussian(Fraction(10**40)).expected_absolute
    )
