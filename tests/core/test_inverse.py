"""When the inverse-sensitivity mechanism answers: what is told beforehand is what its law says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest

from idios.core import inverse
from idios.core.calibration import Choice, Level, Method, Protection, calibrate, choose
from idios.core.distributions import InverseSensitivity
from idios.core.domain import Domain
from idios.core.inverse import (
    ROUND,
    _is_lost,
    describe_null_risk,
    find_largest_distance,
    find_needed_size,
    list_round_points,
    make_measure,
)
from idios.core.neighbours import Neighbours
from idios.core.statistics import InterquartileRange, KthLargest, KthSmallest, Median, Quantile, Statistic, TrimmedMean
from idios.data.arrays import NumberColumn, read_numbers

STATISTICS = [Median(), Quantile(Fraction(1, 4)), InterquartileRange(), TrimmedMean(Fraction(1, 10))]


def refusal_probability(
    statistic: Statistic, neighbours: Neighbours, size: int, epsilon: Fraction, refusal: int
) -> float:
    values = np.random.default_rng(size).lognormal(10, 1, size).round().tolist()
    column = read_numbers(values, nullable=False, step=1)
    distance = find_largest_distance(make_measure(statistic, Domain(), 10**6), epsilon, refusal)
    choice = Choice(Method.INVERSE, distance, epsilon, refusal=refusal)
    summary = column.summarise(statistic, neighbours, distance)
    mechanism = calibrate(choice, statistic, summary, Protection(Level.DIFFERENTIAL))
    assert isinstance(mechanism, InverseSensitivity)
    return mechanism.refusal_probability


@pytest.mark.parametrize("refusal", [1000, 8000])
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 4)])
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_the_needed_size_is_that_from_which_on_answers_are_nearly_certain(
    statistic: Statistic, neighbours: Neighbours, epsilon: Fraction, refusal: int
) -> None:
    needed = find_needed_size(statistic, epsilon, refusal, neighbours)
    assert refusal_probability(statistic, neighbours, needed, epsilon, refusal) < 0.01
    if not (isinstance(statistic, TrimmedMean) and neighbours is Neighbours.ADD_REMOVE):  # twice what it takes
        assert refusal_probability(statistic, neighbours, 2 * needed // 5, epsilon, refusal) > 0.8


MICROSECONDS = 86_400 * 10**6
HEAPS = {
    "0.05": (Domain(Fraction(1, 10**6)), 50_000),
    "50,000.0": (Domain(Fraction(1, 10**6)), 50_000 * 10**6),
    "-1,250,000 in quarters": (Domain(Fraction(1, 4)), -5_000_000),
    "12.99 between bounds": (Domain(Fraction(1, 10**6), 0, 10**12), 12_990_000),
    "50,000.0 around another centre": (Domain(Fraction(1, 10**6), centre=31_234_567), 50_000 * 10**6),
    "a day": (Domain(day=1), 20_454),
    "midnight": (Domain(day=MICROSECONDS), 20_454 * MICROSECONDS),
    "midnight in seconds": (Domain(Fraction(10**6), day=MICROSECONDS), 20_454 * 86_400),
}


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10)])
@pytest.mark.parametrize("heap", HEAPS)
@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_the_needed_size_is_enough_for_values_that_are_one_round_point(
    statistic: Statistic, heap: str, epsilon: Fraction
) -> None:
    domain, point = HEAPS[heap]
    choice = choose(statistic, domain, Neighbours.REPLACE, True, Protection(Level.DIFFERENTIAL), epsilon)
    needed = find_needed_size(statistic, epsilon, choice.refusal)
    column = NumberColumn(np.full(needed, point), domain, None, on_grid=True)
    summary = column.summarise(statistic, Neighbours.REPLACE, choice.distance)
    mechanism = calibrate(choice, statistic, summary, Protection(Level.DIFFERENTIAL))
    assert isinstance(mechanism, InverseSensitivity)
    assert mechanism.refusal_probability < 0.05
    plain = replace(mechanism, measure=replace(mechanism.measure, rounds=()))
    assert plain.refusal_probability > 0.5 or heap in ("0.05", "a day") or not statistic.equivariant


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (Domain(), [(1, 9999)]),
        (Domain(Fraction(1, 10**6)), [(1, 9999)]),
        (Domain(Fraction(1, 4)), [(4, 9999)]),
        (Domain(Fraction(5)), [(2, 9999)]),
        (Domain(Fraction(7)), [(1, 9999)]),
        (Domain(Fraction(1, 3)), [(3, 9999)]),
        (Domain(Fraction(10**100)), [(1, 9999)]),
        (Domain(day=1), [(1, 65_535)]),
        (Domain(Fraction(7), day=1), [(1, 65_535)]),
        (Domain(Fraction(3600), day=86_400), [(24, 65_535), (1, 24 * 65_536 - 1)]),
    ],
)
def test_what_is_round_follows_from_the_step_and_the_type(domain: Domain, expected: list[tuple[int, int]]) -> None:
    for parts in (1, 2):
        found = list(list_round_points(domain.step, domain.day, parts))
        assert [(family.grid, family.most) for family in found] == [(grid * parts, most) for grid, most in expected]
        assert sum(family.share for family in found) == ROUND


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 4)])
@pytest.mark.parametrize("statistic", STATISTICS, ids=str)
def test_where_null_is_called_likely_it_is(statistic: Statistic, epsilon: Fraction) -> None:
    needed = find_needed_size(statistic, epsilon, 1000)
    said = {
        size: describe_null_risk(statistic, Neighbours.REPLACE, size, True, epsilon, 1000)
        for size in range(needed // 5, needed + 1, max(1, needed // 20))
    }
    likely = [size for size, risk in said.items() if risk.startswith("NULL is likely")]
    assert 0 < len(likely) < len(said)
    for size in (likely[0], likely[-1]):
        assert refusal_probability(statistic, Neighbours.REPLACE, size, epsilon, 1000) >= 0.5


def test_what_is_said_depends_on_what_is_public() -> None:
    def say(size: int | None, whole: bool) -> str:
        return describe_null_risk(Median(), Neighbours.REPLACE, size, whole, Fraction(1), 1000)

    assert say(101, True) == ""
    assert say(100, True).endswith("from about 101 values on, and there are 100")
    assert say(100, False).endswith("from about 101 values on, and there are at most 100")
    assert say(101, False) == say(None, True) == say(None, False)


def test_what_no_table_could_answer_is_found_out_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """An analyst may name any k: how many records it takes is told before anything is paid."""
    for statistic in (KthLargest(10**12), KthSmallest(10**300), TrimmedMean(Fraction(1, 10**300))):
        counted = Mock(side_effect=_is_lost)
        monkeypatch.setattr(inverse, "_is_lost", counted)
        needed = find_needed_size(statistic, Fraction(1), 1001)
        assert 1 < counted.call_count <= 130
        assert needed <= 2**60
        assert (needed == 2**60) == (statistic != KthLargest(10**12))
