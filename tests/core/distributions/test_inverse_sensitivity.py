"""The draw by rings has the law of the plateaus, point by point; its privacy is enumerated in ``test_privacy``."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from idios.core.base_measure import BaseMeasure
from idios.core.distributions import InverseSensitivity
from idios.core.distributions.inverse_sensitivity import Rings
from idios.core.sampling import SeededSource
from tests.randomness import FALSE_ALARM, chi_square

BALLS: dict[str, tuple[tuple[int, int], ...]] = {
    "no ball": (),
    "one": ((2, 2),),
    "ties": ((2, 2), (2, 2), (2, 4), (1, 4), (1, 4), (-3, 9)),
    "ends beyond the grid": ((0, 0), (-2, 1), (-50, 3), (-60, 80)),
    "all beyond the grid": ((70, 70), (65, 90)),
    "an undefined statistic": ((-5, 5), (-5, 5)),
}
MEASURES = [BaseMeasure(0, 3), BaseMeasure(1, 3, -4, 20), BaseMeasure(-2, 4, low=-5)]


def make(name: str, measure: BaseMeasure) -> InverseSensitivity:
    return InverseSensitivity(BALLS[name], Fraction(1, 2), measure, refusal=3)


def list_law(mechanism: InverseSensitivity, rings: Rings) -> Counter[tuple[int, int]]:
    """How many units of mass lead to each point, and in which ring: every draw that there is."""
    return Counter(
        (mechanism.measure.locate(rings.find(ring, mass)), ring)
        for ring, total in enumerate(rings.masses)
        for mass in range(total)
    )


def list_plateaus(mechanism: InverseSensitivity) -> Counter[tuple[int, int]]:
    points = ((p, t) for p in mechanism.plateaus for t in range(p.first, p.last + 1))
    return Counter({(t, p.distance): p.weight for p, t in points})


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("name", BALLS)
def test_rings_have_the_law_of_the_plateaus(name: str, measure: BaseMeasure) -> None:
    mechanism = make(name, measure)
    assert list_law(mechanism, mechanism.rings) == list_plateaus(mechanism)
    weights = {t: w for (t, _), w in list_plateaus(mechanism).items()}
    assert weights == {t: s.weight for s in measure.stretches for t in range(s.first, s.last + 1)}
    for t, distance in list_plateaus(mechanism):
        inside = [j for j, (low, high) in enumerate(BALLS[name]) if low <= t <= high]
        assert distance == (inside[0] if inside else len(BALLS[name]))


def test_a_ring_that_is_off_by_one_is_noticed() -> None:
    mechanism = make("ties", MEASURES[0])
    below, upto = mechanism.rings
    wrong = Rings([below[0], *(mass + 1 for mass in below[1:-1]), below[-1]], upto)
    assert list_law(mechanism, wrong) != list_plateaus(mechanism)


@pytest.mark.statistical
@pytest.mark.parametrize("name", BALLS)
def test_draws_have_the_law(name: str) -> None:
    mechanism = make(name, MEASURES[1])
    source = SeededSource(4)
    drawn = Counter(mechanism.draw(source) for _ in range(5000))
    points = [*range(-4, 21), None]
    assert sum(drawn[point] for point in points) == 5000
    expected = 5000 * np.array([mechanism.pmf(point) for point in points])
    assert expected.sum() == pytest.approx(5000)
    assert chi_square(np.array([drawn[point] for point in points]), expected) > FALSE_ALARM
