"""Every draw by rings, and the law that it has: π(t)·q^u(t), point by point; privacy is in ``test_privacy``."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest

from idios.core import base_measure
from idios.core.base_measure import BaseMeasure, RoundPoints
from idios.core.distributions import InverseSensitivity, inverse_sensitivity
from idios.core.sampling import SeededSource
from tests.core.test_base_measure import list_weights
from tests.randomness import FALSE_ALARM, chi_square

BALLS: dict[str, tuple[tuple[int, int], ...]] = {
    "no ball": (),
    "one": ((2, 2),),
    "ties": ((2, 2), (2, 2), (2, 4), (1, 4), (1, 4), (-3, 9)),
    "ends beyond the grid": ((0, 0), (-2, 1), (-50, 3), (-60, 80)),
    "all beyond the grid": ((70, 70), (65, 90)),
    "an undefined statistic": ((-5, 5), (-5, 5)),
}
ROUND = (RoundPoints(grid=2, most=9, share=8, end=90), RoundPoints(grid=3, most=4, share=3))
"""0, ±6 and ±12 are in both families, and in the shells."""
MEASURES = [
    BaseMeasure(0, 3),
    BaseMeasure(1, 3, -4, 20),
    BaseMeasure(-2, 4, low=-5),
    BaseMeasure(0, 5, rounds=ROUND),
    BaseMeasure(5, 2, low=-5, high=10, rounds=ROUND),
    BaseMeasure(0, 4, high=9, rounds=ROUND[1:]),
]


def make(name: str, measure: BaseMeasure) -> InverseSensitivity:
    return InverseSensitivity(BALLS[name], Fraction(1, 2), measure, refusal=3)


def find_distance(mechanism: InverseSensitivity, point: int) -> int:
    inside = [j for j, (low, high) in enumerate(mechanism.balls) if low <= point <= high]
    return inside[0] if inside else len(mechanism.balls)


def list_law(mechanism: InverseSensitivity, patch: pytest.MonkeyPatch) -> Counter[tuple[int | None, int]]:
    """How many units of mass lead to each point, and in which ring: every draw that there is."""
    law: Counter[tuple[int | None, int]] = Counter()
    for ring, total in enumerate(mechanism.masses):
        patch.setattr(inverse_sensitivity, "weighted_index", lambda *_, ring=ring: ring)
        uniform = Mock(side_effect=range(total))
        patch.setattr(base_measure, "uniform_below", uniform)
        law.update((mechanism.draw(), ring) for _ in range(total))
        assert all(call.args[0] == total for call in uniform.call_args_list)
    return law


def list_exactly(mechanism: InverseSensitivity) -> Counter[tuple[int, int]]:
    """The mass of each point, and how many changed records reach it, by definition."""
    weights = list_weights(mechanism.measure)
    return Counter({(t, find_distance(mechanism, t)): weight for t, weight in weights.items()})


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("name", BALLS)
def test_every_draw_has_the_law(name: str, measure: BaseMeasure, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = make(name, measure)
    assert list_law(mechanism, monkeypatch) == list_exactly(mechanism)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("name", BALLS)
def test_what_is_told_of_the_law_is_that_of_the_draw(name: str, measure: BaseMeasure) -> None:
    mechanism, q = make(name, measure), math.exp(-0.25)
    weights = {t: mass * q**distance for (t, distance), mass in list_exactly(mechanism).items()}
    refusal = 3 * measure.denominator * q ** (len(mechanism.balls) - 1)
    total = sum(weights.values()) + refusal
    assert mechanism.pmf(None) == pytest.approx(refusal / total)
    for point in range(-100, 101):
        assert mechanism.pmf(point) == pytest.approx(weights.get(point, 0) / total)
    plateaus: Counter[tuple[int, int]] = Counter()
    for p in mechanism.plateaus:
        assert p.points == len(range(p.first, p.last + 1, p.step))
        for t in range(p.first, p.last + 1, p.step):
            plateaus[t, p.distance] += p.weight
    assert plateaus == list_exactly(mechanism)
    for centre in (-7, 0, 1, 40):
        mean = sum(abs(t - centre) * w for t, w in weights.items()) / sum(weights.values())
        assert 0.9 * mean <= mechanism.expected_absolute(centre) <= mean * (1 + 1e-9)


def test_planted_errors_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = make("ties", MEASURES[3])
    with monkeypatch.context() as patch:  # a ring that is off by one
        patch.setattr(InverseSensitivity, "masses", [1, *mechanism.masses[1:]])
        with pytest.raises(AssertionError):
            assert list_law(replace(mechanism), patch) == list_exactly(mechanism)
    with monkeypatch.context() as patch:  # a component chosen as if all had the same mass of the ring
        plain = BaseMeasure._locate
        patch.setattr(BaseMeasure, "_locate", lambda self, rows, mass: plain(self, rows[::-1], mass))
        with pytest.raises((AssertionError, IndexError)):
            assert list_law(replace(mechanism), patch) == list_exactly(mechanism)
    with monkeypatch.context() as patch:  # round points that follow the data
        moved = replace(mechanism, measure=replace(MEASURES[3], rounds=(RoundPoints(grid=5, most=9, share=8),)))
        assert list_law(moved, patch) != list_exactly(mechanism)


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
