"""The base measure: what is summed up in few steps is what the points weigh one by one, and that is what it says."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from idios.core.base_measure import PARTS, BaseMeasure, MixtureComponent, RoundPoints
from idios.errors import InvalidInput

DECIMALS = RoundPoints(grid=2, most=9, share=8, end=90)
DAYS = (RoundPoints(grid=12, most=2, share=9), RoundPoints(grid=3, most=11, share=5))
MEASURES = [
    BaseMeasure(0, 3),
    BaseMeasure(5, 0),
    BaseMeasure(-2, 4, low=-5),
    BaseMeasure(0, 3, high=2),
    BaseMeasure(1, 3, -4, 20),
    BaseMeasure(100, 2, 0, 9),
    BaseMeasure(3, 3, 3, 3),
    BaseMeasure(0, 6, rounds=(DECIMALS,)),
    BaseMeasure(7, 5, low=-31, rounds=(DECIMALS,)),
    BaseMeasure(1, 3, -4, 21, rounds=(DECIMALS,)),
    BaseMeasure(0, 6, rounds=DAYS),
    BaseMeasure(50, 4, 20, 75, rounds=DAYS),
    BaseMeasure(0, 4, 91, 95, rounds=(DECIMALS,)),
]


def list_weights(measure: BaseMeasure) -> dict[int, int]:
    """The mass of each point: of one that is in several components the sum."""
    weights: Counter[int] = Counter()
    for s in measure.stretches:
        for point in range(s.first, s.last + 1, s.step):
            weights[point] += s.weight
    return dict(weights)


def find_shell(measure: BaseMeasure, point: int) -> Fraction:
    """The mass of a point in the dyadic shells, by their definition."""
    k = abs(point - measure.centre).bit_length()
    return Fraction(0) if k > measure.shells else Fraction(1, (measure.shells + 1) * (2 ** max(k, 1) if k else 1))


def count_round(family: RoundPoints, point: int) -> tuple[bool, int]:
    """Whether a point is one of a family, and how many are, one by one."""
    points = {d * family.grid for d in range(-family.most, family.most + 1)}
    times = 10
    while times * family.grid <= family.end:
        multiples = (d * family.grid * times for d in range(-family.most, family.most + 1))
        points |= {t for t in multiples if abs(t) <= family.end}
        times *= 10
    return point in points, len(points)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_each_point_has_the_mass_that_the_definition_gives_it(measure: BaseMeasure) -> None:
    """But for what is rounded down."""
    weights = list_weights(measure)
    both = measure.low is not None and measure.high is not None
    half = Fraction(1, 2) if both else Fraction(1)
    taken = Fraction(sum(family.share for family in measure.rounds), PARTS)
    for point in range(-150, 150):
        inside = (measure.low is None or measure.low <= point) and (measure.high is None or point <= measure.high)
        mass = half * (1 - taken) * find_shell(measure, point)
        for family in measure.rounds:
            found, points = count_round(family, point)
            mass += half * Fraction(family.share, PARTS * points) * found
        if both:
            mass += Fraction(1, 2 * (measure.high - measure.low + 1))  # type: ignore[operator]
        found_mass = Fraction(weights.get(point, 0), measure.denominator)
        assert 0 <= (mass if inside else 0) - found_mass < Fraction(len(measure.rounds) + 1, measure.denominator)
    assert measure.total == sum(weights.values()) <= measure.denominator
    assert measure.least == Fraction(min(s.weight for s in measure.components[0].stretches), measure.denominator)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_stretches_follow_each_other(measure: BaseMeasure) -> None:
    """Those of the shells without a gap, those of round points with less than a step between."""
    for component in measure.components:
        for before, after in zip(component.stretches, component.stretches[1:], strict=False):
            assert 0 < after.first - before.last <= after.step
            assert component != measure.components[0] or before.last + 1 == after.first
        assert all(end % s.step == 0 for s in component.stretches for end in (s.first, s.last))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_sums_are_those_of_the_points(measure: BaseMeasure) -> None:
    weights = list_weights(measure)
    for points in ([*range(-140, 140)], [-40, -40, 0, 0, 0, 3, 119], [119], [-40], []):
        assert measure.sum_below(points) == [sum(w for t, w in weights.items() if t < point) for point in points]


RINGS = [(None, None), ((-3, 9), None), ((-3, 9), (1, 1)), (None, (0, 8)), ((-40, 200), (-40, 30)), (None, (70, 71))]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize(("within", "outside"), RINGS)
def test_every_unit_of_mass_belongs_to_one_point(
    measure: BaseMeasure, within: tuple[int, int] | None, outside: tuple[int, int] | None
) -> None:
    assert lay_out(measure, within, outside) == list_ring(measure, within, outside)


def list_ring(measure: BaseMeasure, within: tuple[int, int] | None, outside: tuple[int, int] | None) -> dict[int, int]:
    def is_in(point: int, ends: tuple[int, int] | None, otherwise: bool) -> bool:
        return otherwise if ends is None else ends[0] <= point <= ends[1]

    weights = list_weights(measure).items()
    return {t: w for t, w in weights if is_in(t, within, True) and not is_in(t, outside, False)}


def lay_out(measure: BaseMeasure, within: tuple[int, int] | None, outside: tuple[int, int] | None) -> dict[int, int]:
    """How many units of the mass of a ring lead to each point."""
    found: Counter[int] = Counter()
    mass, place = sum(list_ring(measure, within, outside).values()), 0

    def is_same(other: int) -> bool:
        return other < mass and measure.locate(other, within, outside) == point

    while place < mass:  # a point's units are next to each other in each component: look for the first of the next
        point, step = measure.locate(place, within, outside), 1
        while is_same(place + step):
            step *= 2
        last = bisect_left(range(place, place + step), True, key=lambda other: not is_same(other))
        found[point] += last
        place += last
    return dict(found)


def test_a_mass_of_more_than_one_is_not_made() -> None:
    families = (RoundPoints(2, 9, PARTS // 2), RoundPoints(3, 9, PARTS // 2))
    with pytest.raises(InvalidInput, match="the shells need some"):
        BaseMeasure(0, 4, rounds=families)


def test_round_points_of_as_many_digits_are_multiples_of_their_steps() -> None:
    """Else sums of masses would jump, and no proof would be left."""
    with pytest.raises(InvalidInput, match="ends in 9, got 3"):
        RoundPoints(grid=5, most=3, share=8, end=300)
    for stretch in RoundPoints(grid=5, most=9, share=8, end=3000).list_stretches(1):
        assert stretch.first % stretch.step == 0 == stretch.last % stretch.step


def test_planted_errors_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = BaseMeasure(0, 6, rounds=(DECIMALS,))
    denominator, single = measure.denominator, measure.components[1]
    with monkeypatch.context() as patch:  # shells keep all of their mass beside that of round points
        patch.setattr(BaseMeasure, "_parts", 8 + PARTS)
        patch.setattr(BaseMeasure, "denominator", denominator)
        with pytest.raises(AssertionError):
            test_each_point_has_the_mass_that_the_definition_gives_it(replace(measure))
    with monkeypatch.context() as patch:  # a point of two components is counted in one
        patch.setattr(MixtureComponent, "total", property(lambda self: 0 if self == single else self._sums[-1]))
        with pytest.raises(AssertionError):
            test_sums_are_those_of_the_points(replace(measure))
    with monkeypatch.context() as patch:  # the first component is left out of what a later one is given
        patch.setattr(BaseMeasure, "_locate", lambda self, rows, mass: self.components[0].locate(rows[0].first + mass))
        with pytest.raises((AssertionError, IndexError)):
            test_every_unit_of_mass_belongs_to_one_point(replace(measure), (-3, 9), None)
