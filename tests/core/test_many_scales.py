"""One draw for each of many scales: exact, whatever the scale, and independent."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from idios.core import many_scales
from idios.core.distributions import DiscreteLaplace
from idios.core.many_scales import PLACES, _multiply_down, draw_discrete_laplaces, draw_scaled
from idios.core.sampling import RandomSource, SeededSource, geometric

draw = random.Random(5)
SCALES = [Fraction(1, 3), Fraction(1), Fraction(10, 3), Fraction(10**6 + 1, 7), Fraction(2**70, 3)]


class Silent(RandomSource):
    """Nothing may be drawn."""

    secure = False

    def read(self, size: int) -> bytes:
        raise AssertionError("no more places are needed")


def test_all_numbers_that_begin_with_the_places_drawn_have_the_floor_that_is_told() -> None:
    for _ in range(2000):
        scale, places = draw.choice(SCALES[:4]), draw.getrandbits(draw.randrange(1, 70))
        first = Fraction(places, 1 << PLACES)
        last = Fraction((places + 1 << 40) - 1, 1 << PLACES + 40)
        if math.floor(scale * first) == math.floor(scale * last):
            assert _multiply_down(scale.numerator, scale.denominator << PLACES, places, Silent()) == math.floor(
                scale * first
            )


def test_more_places_are_drawn_where_those_so_far_do_not_settle_it() -> None:
    scale = Fraction(3 << PLACES, 2)
    places = (1 << PLACES) // 3
    for seed in range(50):
        found = _multiply_down(scale.numerator, scale.denominator << PLACES, places, SeededSource(seed))
        least, most = math.floor(scale * Fraction(places, 1 << PLACES)), scale * Fraction(places + 1, 1 << PLACES)
        assert least <= found < most
    assert {
        _multiply_down(scale.numerator, scale.denominator << PLACES, places, SeededSource(seed)) for seed in range(50)
    } == {least, least + 1}


def test_floats_draw_what_whole_numbers_draw_from_the_same_bytes() -> None:
    for seed in range(12):
        top = draw.choice((3, 10**6, 2**45, 2**60, 10**400))
        scales = [Fraction(draw.randrange(top), draw.choice((1, 3, 2**40, 10**400))) for _ in range(20)]
        source = SeededSource(seed)
        places = geometric(Fraction(1, 1 << PLACES), 40, source).tolist()
        floors = [
            _multiply_down(scales[i // 2].numerator, scales[i // 2].denominator << PLACES, drawn, source)
            for i, drawn in enumerate(places)
        ]
        exactly = [first - second for first, second in zip(floors[::2], floors[1::2], strict=True)]
        assert draw_discrete_laplaces(scales, SeededSource(seed)) == exactly


def test_few_draws_are_left_to_whole_numbers() -> None:
    asked: list[int] = []
    draw_scaled(np.full(5000, 1e9), lambda i: asked.append(i) or (10**9, 1), SeededSource(3))
    assert len(asked) < 20


@pytest.mark.statistical
def test_draws_have_the_law_of_their_scale() -> None:
    """χ² over the inner values; seeded, so that it never fails by chance."""
    size = 60_000
    for number, scale in enumerate(SCALES[:3]):
        drawn = np.array(draw_discrete_laplaces([scale] * size, SeededSource(number)))
        assert _statistic(drawn, scale) < 40
        assert _statistic(drawn, scale * Fraction(21, 20)) > 40


def _statistic(drawn: np.ndarray, scale: Fraction) -> float:
    noise, inner = DiscreteLaplace(scale), range(-5, 6)
    expected = np.array([float(noise.pmf(k)) * len(drawn) for k in inner])
    found = np.array([(drawn == k).sum() for k in inner])
    return float(((found - expected)[expected > 5] ** 2 / expected[expected > 5]).sum())


def test_wide_noise_is_as_wide_as_its_scale_and_neighbours_are_independent() -> None:
    scale = SCALES[4]
    drawn = np.array([float(x / scale) for x in draw_discrete_laplaces([scale] * 20_000, SeededSource(2))])
    assert abs(np.abs(drawn).mean() - 1) < 0.05
    assert abs(drawn.mean()) < 0.05
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.05


def test_no_scale_gives_no_noise_and_no_scales_give_nothing() -> None:
    assert draw_discrete_laplaces([Fraction(0)] * 3) == [0, 0, 0]
    assert draw_discrete_laplaces([]) == []
    assert many_scales.PLACES == 64
