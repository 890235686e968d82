"""The laws that the enumerations compare, held against others."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from idios.core.base_measure import BaseMeasure
from idios.core.distributions import AboveThreshold, InverseSensitivity
from idios.core.distributions.above_threshold import Ladder, Run
from tests.core.stopping import list_deficits, stopping_law
from tests.losses import find_loss, find_loss_at, list_places, stopping_logarithms

LADDER = Ladder(0, 5, 0, Fraction(6, 5))


@pytest.mark.parametrize("rates", [(Fraction(1, 3), Fraction(1, 6)), (Fraction(2), Fraction(1, 40))])
@pytest.mark.parametrize("runs", [((3, 4), (2, 1), (1, -2)), ((6, 0),), ((1, -3), (4, 2), (1, 7)), ((6, -5),)])
def test_the_law_of_a_search_is_that_in_fractions(
    runs: tuple[tuple[int, int], ...], rates: tuple[Fraction, Fraction]
) -> None:
    search = AboveThreshold(LADDER, tuple(Run(*run) for run in runs), *rates)
    exact = stopping_law(list_deficits(search), *(Fraction(math.exp(-rate)) for rate in rates))
    for found, chance in zip(stopping_logarithms(search, range(6)), exact, strict=True):
        assert math.isclose(found, math.log(chance), rel_tol=1e-11, abs_tol=1e-11)
    assert list_places(search) == [0, 1, 2, 3, 4, 5]


def test_a_loss_is_that_of_some_answer() -> None:
    measure = BaseMeasure(0, 3)
    one = InverseSensitivity(((0, 0), (-1, 2)), Fraction(1), measure, refusal=2)
    two = InverseSensitivity(((1, 1),), Fraction(1), measure, refusal=2)
    points = [None, *range(-7, 8)]
    for here, there in ((one, two), (two, one)):
        ratios = [math.log(here.pmf(point) / there.pmf(point)) for point in points]
        assert math.isclose(find_loss(here, there), max(ratios))
        assert all(math.isclose(find_loss_at(here, there, p), r) for p, r in zip(points, ratios, strict=True))
    assert find_loss_at(one, two, 8) == -math.inf
