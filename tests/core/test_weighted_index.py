"""Drawing an index: uniformly, and with weights that no float can hold."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from idios.core.sampling import RandomSource, SeededSource, uniform_below
from idios.core.weighted_index import _locate, weighted_index
from idios.errors import InvalidInput
from tests.randomness import FALSE_ALARM, Scripted, chi_square, more

# ------------------------------------------------------------------------------------------- uniform numbers


def test_uniform_numbers_are_uniform_and_below() -> None:
    counts = np.bincount([uniform_below(6) for _ in range(12_000)], minlength=6)
    assert chi_square(counts, [2000] * 6) > FALSE_ALARM
    big = 10**40 + 1
    drawn = [uniform_below(big) for _ in range(2000)]
    assert max(drawn) < big
    tenths = np.bincount([number * 10 // big for number in drawn], minlength=10)
    assert chi_square(tenths, [200] * 10) > FALSE_ALARM


def test_uniform_numbers_reject_what_is_too_large() -> None:
    # Five values need three bits, the top ones of a byte.
    source = Scripted(*(bytes([top << 5]) for top in (7, 5, 6, 4)))
    assert uniform_below(5, source) == 4
    assert [uniform_below(8, Scripted(bytes([top << 5]))) for top in range(8)] == list(range(8))
    assert uniform_below(1) == 0


@pytest.mark.parametrize("n", [0, -3, 1.5, None])
def test_illegal_ranges_are_refused(n: object) -> None:
    with pytest.raises(InvalidInput, match="n must be"):
        uniform_below(n)  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------- weighted index


def shares(counts: list[int], exponents: list[int], rate: Fraction) -> list[float]:
    with localcontext(prec=60):
        step = Decimal(rate.numerator) / Decimal(rate.denominator)
        weights = [Decimal(c) * (-step * e).exp() for c, e in zip(counts, exponents, strict=True)]
        return [float(weight / sum(weights)) for weight in weights]


WEIGHTS = {
    "ball": ([1, *(2 for _ in range(30))], list(range(31)), Fraction(1, 3)),
    "unsorted, repeated, empty": ([3, 0, 10**30, 5, 7, 10**26], [2, 0, 140, 1, 2, 120], Fraction(1, 2)),
    "far from zero": ([4, 10, 40, 90, 160], [5000, 5001, 5002, 5003, 5004], Fraction(9, 10)),
    "no rate": ([1, 2, 3, 4], [9, 0, 7, 3], Fraction(0)),
}


def drawn(name: str, n: int, source: RandomSource | None = None) -> NDArray[np.int64]:
    counts, exponents, rate = WEIGHTS[name]
    indices = [weighted_index(counts, exponents, rate, source) for _ in range(n)]
    return np.bincount(indices, minlength=len(counts))


@pytest.mark.statistical
@pytest.mark.parametrize("name", WEIGHTS)
def test_indices_have_their_distribution(name: str) -> None:
    counts, exponents, rate = WEIGHTS[name]
    found = drawn(name, 20_000)
    assert not found[np.array(counts) == 0].any()
    assert chi_square(found, 20_000 * np.array(shares(counts, exponents, rate))) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["ball", "unsorted, repeated, empty", "far from zero"])
def test_a_wrong_rate_is_noticed(name: str) -> None:
    counts, exponents, rate = WEIGHTS[name]
    wrong = shares(counts, exponents, rate * Fraction(115, 100))
    assert chi_square(drawn(name, 10_000, SeededSource(1)), 10_000 * np.array(wrong)) < FALSE_ALARM


def test_exact_weights_divide_the_unit_interval() -> None:
    enclosures = [(1, 1), (0, 0), (2, 2), (5, 5)]
    assert [_locate(u, 3, enclosures) for u in range(8)] == [0, 2, 2, 3, 3, 3, 3, 3]
    assert _locate(0, 0, enclosures) is None  # no bit is known yet


def test_an_index_is_located_only_if_every_weight_agrees() -> None:
    wide = [(3, 5), (4, 4), (3, 5)]
    for u in range(256):
        certain = {
            next(j for j in range(3) if Fraction(x, 256) < Fraction(sum(w[: j + 1]), sum(w)))
            for w in product((3, 4, 5), (4,), (3, 4, 5))
            for x in (Fraction(u), u + 1 - Fraction(1, 1000))
        }
        located = _locate(u, 8, wide)
        assert located is None or certain == {located}
    assert _locate(10, 8, wide) == 0
    assert _locate(128, 8, wide) == 1
    assert _locate(85, 8, wide) is None


def test_a_draw_on_a_boundary_is_refined_until_it_is_certain() -> None:
    with localcontext(prec=120):
        boundary = 1 / (1 + Decimal(-1).exp())  # of weights 1 and 1/e
        blocks = [int(boundary * 2 ** (64 * i)) % 2**64 for i in (1, 2, 3)]
    for following, index in [
        ([blocks[0] - 1], 0),
        ([blocks[0] + 1], 1),
        ([blocks[0], 0], 0),
        ([blocks[0], 2**64 - 1], 1),
        ([blocks[0], blocks[1], blocks[2] - 1], 0),
        ([blocks[0], blocks[1], blocks[2] + 1], 1),
    ]:
        source = Scripted(*map(more, following))
        assert weighted_index([1, 1], [0, 1], Fraction(1), source) == index
        assert source.reads == []


def test_a_rational_boundary_is_refined_too() -> None:
    third = (2**64 - 1) // 3  # 1/3 is 0.0101… for ever
    for following, index in [
        ([third, 0], 0),
        ([third, third, third + 1], 1),
        ([third - 1], 0),
        ([third + 1], 1),
    ]:
        assert weighted_index([1, 2], [4, 4], Fraction(1, 2), Scripted(*map(more, following))) == index


def test_one_level_and_thousands() -> None:
    assert weighted_index([0, 7, 0], [0, 3, 1], Fraction(1)) == 1
    counts, exponents = [10**30 + i for i in range(3000)], [(i * 7919) % 3000 for i in range(3000)]
    drawn = weighted_index(counts, exponents, Fraction(1, 1000))
    assert 0 <= drawn < 3000
    # At a steep rate nothing but the least exponent is ever drawn.
    assert weighted_index(counts, exponents, Fraction(1000)) == exponents.index(0)


def test_numpy_integers_do_not_overflow() -> None:
    counts = np.array([2**62, 2**62, 2**62])
    assert weighted_index(counts, np.array([0, 1, 5000]), Fraction(1)) in {0, 1}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("counts", "exponents", "rate", "message"),
    [
        ([1], [1, 2], Fraction(1), "same length"),
        ([], [], Fraction(1), "at least one"),
        ([0, 0], [1, 2], Fraction(1), "at least one"),
        ([1, -1], [1, 2], Fraction(1), "whole numbers of at least 0"),
        ([1, 1], [-1, 2], Fraction(1), "whole numbers of at least 0"),
        ([1.5, 1], [1, 2], Fraction(1), "whole numbers of at least 0"),
        ([1], [1], Fraction(-1), "rate must be at least 0"),
    ],
)
def test_illegal_weights_are_refused(counts: list[int], exponents: list[int], rate: Fraction, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        weighted_index(counts, exponents, rate)


def test_messages_do_not_repeat_private_weights() -> None:
    with pytest.raises(InvalidInput) as refused:
        weighted_index([-1234567], [1], Fraction(1))
    assert "1234567" not in str(refused.value)
