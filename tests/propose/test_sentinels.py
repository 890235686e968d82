"""Numbers that mean "no answer": found where they stand apart, doubted where they may, never among honest values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

from idios.data.formats.text_proposals import RARE
from idios.propose.column_proposals import Sentinels, find_sentinels

USUAL = 40
TENTHS = [Fraction(number, 10) for number in range(88)]


def find(values: Iterable[int | Fraction], *others: int, times: int = USUAL) -> Sentinels:
    """What is found among values that occur as often as each other, and some that occur ``times``."""
    counts = {Fraction(value): USUAL for value in values} | {Fraction(value): times for value in others}
    return find_sentinels(counts)


@pytest.mark.parametrize("times", [RARE, USUAL, 10 * USUAL])
@pytest.mark.parametrize(
    ("values", "sentinels"),
    [
        ((1, 2), (9,)),
        ((0, 1), (8, 9)),
        ((1, 2), (8, 9)),
        (range(1, 6), (8, 9)),
        (range(1, 5), (7, 8, 9)),
        (range(1, 7), (8, 9)),
        (range(1, 6), (8, 9, 99)),
        (range(11), (77, 88, 99)),
        (range(11), (88, 99)),
        (range(1, 10), (99,)),
        (range(61), (77, 88, 99)),
        (range(61), (66, 77, 88, 99)),
        (range(61), (777, 888, 999)),
        (range(61), (997, 998, 999)),
        (range(16, 95), (97, 98, 99)),
        (range(500, 9000, 7), (77777, 88888, 99999)),
        (range(1, 6), (-9, -8, -2, -1)),
        (range(1, 6), (-9, 99)),
        (range(61), (-99, -88, -77)),
        (range(61), (-9, -8, 99)),
        (range(61), (-1,)),
        (range(61), (-2, -1)),
        (TENTHS[:40], (9,)),
        (TENTHS, (99, 999)),
    ],
)
def test_what_stands_apart_is_certain(values: Iterable[int], sentinels: tuple[int, ...], times: int) -> None:
    assert find(values, *sentinels, times=times) == Sentinels(tuple(sorted(sentinels)))


@pytest.mark.parametrize(
    "values",
    [
        range(100),
        range(16, 100),
        range(1, 10),
        range(1, 8),
        range(10),
        range(7, 10),
        range(13),
        range(-500, 500),
        range(-9, 10),
        range(0, 100, 11),
        range(1, 10, 2),
        [*range(61), 65, 70, 72, 75, 80, 84, 90, 96, 98, 99],
        range(1990, 2030),
        [*range(60, 100)],
        TENTHS,
        [99],
        [7, 8, 9],
        [],
    ],
)
def test_honest_values_are_left_alone(values: Iterable[int]) -> None:
    assert find(values) == Sentinels()


def test_what_may_mean_no_answer_is_doubtful() -> None:
    assert find([1], 9) == Sentinels(doubtful=(9,))
    assert find(range(1, 6), 8) == Sentinels(doubtful=(8,)), "other, or no answer"
    assert find([49, 99, 199, 299, 499], 999) == Sentinels(doubtful=(999,)), "a price, or no answer"
    assert find([49, 99, 199, 299, 499], 999, times=4 * USUAL) == Sentinels((999,))
    assert find(range(18, 91), 99) == Sentinels(doubtful=(99,)), "the oldest, or no answer"
    assert find(range(18, 91), 99, times=USUAL + 1) == Sentinels((99,))
    assert find(range(99), 99, times=21 * USUAL) == Sentinels(doubtful=(99,)), "all above 98, or no answer"
    assert find(range(3), -2, -1) == Sentinels(doubtful=(-2, -1)), "a scale around 0"
    assert find(range(11), -9, -8, -1) == Sentinels((-9, -8), (-1,))


def test_what_piles_up_among_scattered_values_is_certain() -> None:
    incomes = [*range(0, 60_000, 500), 90_000, 400_000, 950_000]
    assert find(incomes, 999_999, times=21 * USUAL) == Sentinels((999_999,))
    assert find(incomes, 999_999, times=20 * USUAL) == Sentinels()


def test_a_rare_value_is_never_named() -> None:
    for values in (range(1, 6), range(61), [1]):
        assert find(values, 99, times=RARE - 1) == Sentinels()
    rare = {Fraction(77): RARE, Fraction(88): RARE - 1, Fraction(99): RARE}
    assert find_sentinels({Fraction(value): USUAL for value in range(61)} | rare) == Sentinels((77, 99))
    honest = {Fraction(value): USUAL for value in range(31)} | {Fraction(-1): RARE, Fraction(-2): RARE - 1}
    assert find_sentinels(honest) == Sentinels(doubtful=(-1,)), "a tail that ends slowly"


def test_samples_of_honest_columns() -> None:
    random = np.random.default_rng(19)
    for _ in range(20):
        ages = np.clip(random.normal(50, 22, 4000), 0, 99).astype(int)
        even = random.integers(0, 100, 4000)
        for values in (ages[ages < 99], even, random.poisson(3, 4000)):
            counts = Counter(Fraction(int(value)) for value in values)
            assert find_sentinels(counts).certain == ()
