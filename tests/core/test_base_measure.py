"""The base measure: what is summed up in few steps is what the points weigh one by one."""

from __future__ import annotations

import pytest

from idios.core.base_measure import BaseMeasure

MEASURES = [
    BaseMeasure(0, 3),
    BaseMeasure(5, 0),
    BaseMeasure(-2, 4, low=-5),
    BaseMeasure(0, 3, high=2),
    BaseMeasure(1, 3, -4, 20),
    BaseMeasure(100, 2, 0, 9),
    BaseMeasure(3, 3, 3, 3),
]


def list_weights(measure: BaseMeasure) -> dict[int, int]:
    return {point: s.weight for s in measure.stretches for point in range(s.first, s.last + 1)}


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_stretches_follow_each_other_without_a_gap(measure: BaseMeasure) -> None:
    for before, after in zip(measure.stretches, measure.stretches[1:], strict=False):
        assert before.last + 1 == after.first
    assert measure.total == sum(list_weights(measure).values()) <= measure.denominator


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_sums_are_those_of_the_points(measure: BaseMeasure) -> None:
    weights = list_weights(measure)
    for points in ([*range(-40, 120)], [-40, -40, 0, 0, 0, 3, 119], [119], [-40], []):
        assert measure.sum_below(points) == [sum(w for t, w in weights.items() if t < point) for point in points]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_every_unit_of_mass_belongs_to_one_point(measure: BaseMeasure) -> None:
    located = [measure.locate(mass) for mass in range(measure.total)]
    assert located == [point for point, weight in list_weights(measure).items() for _ in range(weight)]
