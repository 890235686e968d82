"""The noise sampler: digit by digit where the proof makes a claim, and in distribution.

The statistical tests share a false-alarm rate of 10^(−6); each is shown to have power by a sampler that is
wrong on purpose.
"""

import math
from decimal import MAX_EMAX, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from idios.core import sampling
from idios.core.sampling import RandomSource, SeededSource, discrete_laplace, geometric
from idios.errors import InvalidInput
from tests.randomness import FALSE_ALARM, Scripted, chi_square, more, words

SCALES = [Fraction(1, 7), Fraction(1), Fraction(10), Fraction(1000), Fraction(10**9)]
EXTREMES = [Fraction(10**30), Fraction(3, 10**6), Fraction(22, 7)]


def probability(scale: Fraction, j: int, flag: bool) -> Decimal:
    """Compute the probability of coin j in the current decimal context, on a way of its own."""
    grown = (Decimal(2**j * scale.denominator) / Decimal(scale.numerator)).exp()
    return 1 / grown if flag else 1 / (1 + grown)


# ------------------------------------------------------------------------------------------------- thresholds


@pytest.mark.parametrize("scale", SCALES + EXTREMES, ids=str)
def test_thresholds_are_the_digits_of_the_probabilities(scale: Fraction) -> None:
    digits = sampling._Digits(scale)
    assert digits.width % 8 == 0
    assert 2**digits.rest >= 12 * scale
    with localcontext(Context(prec=250, Emax=MAX_EMAX)):
        for j, coin in enumerate(digits.coins):
            expected = int(probability(scale, j, flag=j == digits.rest) * 2**80)
            assert (coin.head, coin._next) == divmod(expected, 2**64)
            assert digits.heads[j] == coin.head


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(1), Fraction(22, 7)], ids=str)
def test_the_coins_multiply_to_the_geometric_distribution(scale: Fraction) -> None:
    digits = sampling._Digits(scale)
    with localcontext(prec=80):
        a = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        ones = [probability(scale, j, flag=False) for j in range(digits.rest)]
        flag = probability(scale, digits.rest, flag=True)
        assert abs(ones[0] - a / (1 + a)) < Decimal("1e-75")  # the sign's coin: Pr(X > 0)
        for g in range(5 * 2**digits.rest):
            rest, low = divmod(g, 2**digits.rest)
            mass = flag**rest * (1 - flag)
            for j, one in enumerate(ones):
                mass *= one if low >> j & 1 else 1 - one
            assert abs(mass / ((1 - a) * a**g) - 1) < Decimal("1e-70")


# ------------------------------------------------------------------------- the construction, driven by hand


def row(digits: "sampling._Digits", g: int) -> list[int]:
    """Give words that put the digits of g, the last as the flag, just on the right side of the thresholds."""
    return [coin.head - 1 if g >> j & 1 else coin.head + 1 for j, coin in enumerate(digits.coins)]


def test_every_pattern_of_words_is_the_number_it_spells() -> None:
    digits = sampling._Digits(Fraction(10))
    numbers = range(2**digits.rest)
    data = words(word for g in numbers for word in row(digits, g))
    drawn = digits.magnitudes(len(numbers), Scripted(data))
    assert drawn.tolist() == [g + 1 for g in numbers]


@pytest.mark.parametrize("scale", [Fraction(1000), Fraction(10**9), Fraction(10**30)], ids=str)
def test_wide_patterns_are_the_numbers_they_spell(scale: Fraction) -> None:
    digits = sampling._Digits(scale)
    usable = int((digits.heads > 0).sum())  # digits that a word can set without a tie
    numbers = [0, 1, 5, 2**usable - 1, 2 ** (usable - 1) + 3]
    data = words(word for g in numbers for word in row(digits, g))
    drawn = digits.magnitudes(len(numbers), Scripted(data))
    assert drawn.dtype == (object if scale > 2**55 / 12 else np.int64)
    assert drawn.tolist() == [g + 1 for g in numbers]


def test_ties_are_settled_by_further_digits_in_every_place() -> None:
    digits = sampling._Digits(Fraction(10))
    for j in range(digits.rest):
        coin = digits.coins[j]
        third = third_block(Fraction(10), j, flag=False)
        for following, bit in [
            ([coin._next - 1], 1),
            ([coin._next + 1], 0),
            ([coin._next, third - 1], 1),
            ([coin._next, third + 1], 0),
        ]:
            tie = row(digits, 0)
            tie[j] = coin.head
            source = Scripted(words(tie), *map(more, following))
            assert digits.magnitudes(1, source).tolist() == [1 + bit * 2**j]
            assert source.reads == []


def third_block(scale: Fraction, j: int, flag: bool) -> int:
    """Give binary digits 80..143 of a coin's probability."""
    with localcontext(prec=120):
        return int(probability(scale, j, flag) * 2**144) % 2**64


def test_the_sign_is_mirrored_and_its_ties_too() -> None:
    digits = sampling._Digits(Fraction(1))
    coin = digits.coins[0]
    top = 2**16 - 1
    plain = [0, coin.head - 1, coin.head + 1, top - coin.head - 1, top - coin.head + 1, top]
    assert digits.signs(6, Scripted(words(plain))).tolist() == [1, 1, 0, 0, -1, -1]
    for word, following, sign in [
        (coin.head, coin._next - 1, 1),
        (coin.head, coin._next + 1, 0),
        (top - coin.head, coin._next - 1, -1),
        (top - coin.head, coin._next + 1, 0),
    ]:
        assert digits.signs(1, Scripted(words([word]), more(following))).tolist() == [sign]


def test_a_rest_is_counted_up_coin_by_coin() -> None:
    digits = sampling._Digits(Fraction(10))
    flag = digits.coins[digits.rest]
    assert flag.head == 0
    flagged = row(digits, 5)
    flagged[digits.rest] = 0  # a tie, as the flag's probability is below 2^(−16)
    yes, no = (words([0]), more(flag._next - 1)), (words([0]), more(flag._next + 1))
    source = Scripted(words(flagged), yes[1], *yes, *yes, *no)
    assert digits.magnitudes(1, source).tolist() == [1 + 5 + 3 * 2**digits.rest]
    source = Scripted(words(flagged), yes[1], words([1]))
    assert digits.magnitudes(1, source).tolist() == [1 + 5 + 2**digits.rest]


def test_what_no_int64_can_hold_is_still_returned() -> None:
    scale = Fraction(2**55, 12)
    digits = sampling._Digits(scale)
    assert digits.rest == 55
    flagged = row(digits, 0)
    flagged[-1] = 0
    yes = (words([0]), more(0))
    source = Scripted(words(flagged), more(0), *yes * 300, words([9]), words([0]))
    drawn = discrete_laplace(scale, 1, source)
    assert drawn.dtype == object
    assert drawn.tolist() == [1 + 301 * 2**55]


def test_a_probability_far_below_a_word_is_not_rounded_away() -> None:
    scale = Fraction(1, 50)  # Pr(X > 0) is 1.9·10^(−22), less than 2^(−72)
    digits = sampling._Digits(scale)
    magnitude = words(row(digits, 0))
    with localcontext(prec=100):
        block = int(probability(scale, 0, flag=False) * 2**80)
    assert 0 < block < 2**9
    for following, value in [(block - 1, 1), (block + 1, 0)]:
        assert discrete_laplace(scale, source=Scripted(magnitude, words([0]), more(following))) == value


# ------------------------------------------------------------------------------- distribution of the noise


def mass_below(k: float, scale: float) -> float:
    """Pr(X ≤ k) for whole k."""
    a = math.exp(-1 / scale)
    return math.exp(k / scale) / (1 + a) if k < 0 else 1 - math.exp(-(k + 1) / scale) / (1 + a)


def p_values(sample: NDArray[np.int64], scale: float) -> dict[str, float]:
    """Test a sample against the discrete Laplace distribution: body, zeros, tails and lowest bits."""
    n = len(sample)
    found = {}

    lower = np.ceil(scale * np.log(2 * np.linspace(0.02, 0.48, 24)))  # whole edges, shares near 1/50
    edges = np.unique([*lower, 0, *(-lower - 1)])
    expected = n * np.diff([0, *(mass_below(edge, scale) for edge in edges), 1])
    found["body"] = chi_square(np.bincount(np.searchsorted(edges, sample), minlength=len(expected)), expected)

    found["zeros"] = stats.binomtest(int((sample == 0).sum()), n, math.tanh(0.5 / scale)).pvalue

    far = math.ceil(scale * math.log(n / 100))
    for side, tail in (("lower", sample <= -far), ("upper", sample >= far)):
        found[f"{side} tail"] = stats.binomtest(int(tail.sum()), n, mass_below(-far, scale)).pvalue
    found["largest"] = min(1.0, n * 2 * mass_below(-float(np.abs(sample).max()), scale))

    r, a = np.arange(8), math.exp(-1 / scale)  # Pr(X mod 8 = r), both sides summed as geometric series
    both = np.exp(-r / scale) + np.where(r == 0, np.exp(-8 / scale), np.exp(-(8 - r) / scale))
    expected = n * both * math.expm1(-1 / scale) / math.expm1(-8 / scale) / (1 + a)
    found["lowest bits"] = chi_square(np.bincount(sample % 8, minlength=8), expected)
    return found


def alarms(sample: NDArray[np.int64], scale: Fraction) -> list[str]:
    return [name for name, p in p_values(sample, float(scale)).items() if p < FALSE_ALARM]


def zero_twice(scale: Fraction, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw a sign and a geometric number: +0 and −0 are both 0, the classical mistake."""
    signs = np.frombuffer(source.read(size), dtype=np.uint8) % 2
    return (sampling._Digits(scale).magnitudes(size, source) - 1) * np.where(signs == 1, 1, -1)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_noise_has_its_distribution(scale: Fraction) -> None:
    assert alarms(discrete_laplace(scale, 1_000_000), scale) == []


# That the tests have power is shown with seeds: a fault once noticed is noticed in every run.


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_scale_off_by_three_percent_is_noticed(scale: Fraction) -> None:
    for wrong in (scale * Fraction(103, 100), scale * Fraction(97, 100)):
        assert alarms(discrete_laplace(wrong, 1_000_000, SeededSource(1)), scale) != []


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES[:4], ids=str)
def test_zero_counted_twice_is_noticed(scale: Fraction) -> None:
    assert "zeros" in alarms(zero_twice(scale, 1_000_000, SeededSource(1)), scale)


@pytest.mark.statistical
def test_faults_in_one_place_only_are_noticed() -> None:
    scale = Fraction(10**9)
    sample = discrete_laplace(scale, 1_000_000, SeededSource(1))
    assert alarms(sample, scale) == []
    assert alarms(sample & ~1, scale) == ["lowest bits"]
    assert "upper tail" in alarms(np.minimum(sample, 9 * 10**9), scale)
    assert alarms(np.abs(sample), scale) != []
    assert "largest" in alarms(np.append(sample, 40 * 10**9), scale)


@pytest.mark.statistical
def test_single_draws_and_huge_scales_have_the_distribution() -> None:
    singles = np.array([discrete_laplace(3) for _ in range(20_000)])
    assert alarms(singles, Fraction(3)) == []
    huge = discrete_laplace(10**30, 100_000)
    assert huge.dtype == object
    assert all(type(value) is int for value in huge[:100])
    coarse = (huge // 10**21).astype(np.int64)  # moves a value by 10^(−9) of the scale at most
    assert alarms(coarse, Fraction(10**9)) == []


def test_a_tiny_scale_is_almost_surely_zero() -> None:
    assert not discrete_laplace(Fraction(3, 10**6), 100_000).any()


# -------------------------------------------------------------------------------------- sizes and arguments


def test_sizes_and_types() -> None:
    single = discrete_laplace(5)
    assert type(single) is int
    for size in (0, 1, 7, 40_000):
        drawn = discrete_laplace(5, size)
        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64
    assert discrete_laplace(10**30, 0).dtype == object
    assert abs(discrete_laplace(10**30)) > 10**20
    assert discrete_laplace(0) == 0
    assert discrete_laplace(0, 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("scale", [Fraction(1, 10), "1/10", "0.1", Decimal("0.1"), 0.1, np.float64(0.1)])
def test_every_way_to_write_a_scale_is_the_same_scale(scale: object) -> None:
    expected = discrete_laplace(Fraction(1, 10), 1000, SeededSource(5))
    assert np.array_equal(discrete_laplace(scale, 1000, SeededSource(5)), expected)  # type: ignore[call-overload]


@pytest.mark.parametrize("scale", [-1, "-1/2", math.nan, math.inf, "wide", None, Decimal("Infinity"), "1/0"])
def test_illegal_scales_are_refused(scale: object) -> None:
    with pytest.raises(InvalidInput, match="scale must be"):
        discrete_laplace(scale)  # type: ignore[call-overload]


@pytest.mark.parametrize("size", [-1, 2.5, "many"])
def test_illegal_sizes_are_refused(size: object) -> None:
    with pytest.raises(InvalidInput, match="size must be"):
        discrete_laplace(1, size)  # type: ignore[call-overload]


# ------------------------------------------------------------------------------------------------- geometric


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 2), Fraction(3)], ids=str)
def test_geometric_noise_has_its_distribution(rate: Fraction) -> None:
    a, n = math.exp(-rate), 50_000
    drawn = geometric(rate, n)
    cells = math.ceil(10 / rate)
    observed = np.bincount(np.minimum(drawn, cells), minlength=cells + 1)
    expected = n * np.append((1 - a) * a ** np.arange(cells), a**cells)
    assert chi_square(observed, expected) > FALSE_ALARM
    assert chi_square(np.roll(observed, 1), expected) < FALSE_ALARM


def test_one_geometric_number_or_many() -> None:
    assert geometric("1/3", source=SeededSource(4)) == geometric(Fraction(1, 3), 1, SeededSource(4))[0]
    assert len(geometric(1, 0)) == 0
    assert geometric(10**6) == 0
    assert geometric(Fraction(1, 10**40), source=SeededSource(1)) > 10**30
    for rate in (0, -1, "wide", math.inf):
        with pytest.raises(InvalidInput, match="rate must be"):
            geometric(rate)
