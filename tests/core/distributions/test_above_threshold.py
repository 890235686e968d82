"""AboveThreshold: its ladder, its runs, and draws that follow its law."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from idios.core.distributions.above_threshold import AboveThreshold, Ladder, Run, find_runs
from idios.core.domain import LIMIT, Domain
from idios.core.sampling import SeededSource
from idios.errors import InvalidInput
from tests.core.stopping import list_deficits, stopping_law
from tests.randomness import FALSE_ALARM, chi_square

FINE = Fraction(10003, 10000)
SMALL = Ladder(-8, 20, centre=0, ratio=Fraction(3, 2))


# ------------------------------------------------------------------------------------------------ the ladder


@pytest.mark.parametrize("centre", [0, 5, -(10**6), LIMIT, -LIMIT])
@pytest.mark.parametrize("ends", [(-LIMIT, LIMIT), (0, LIMIT), (-7, 100), (3, 3)])
def test_a_ladder_leads_from_end_to_end_in_small_steps(ends: tuple[int, int], centre: int) -> None:
    ratio = Fraction(101, 100)
    ladder = Ladder(*ends, centre=centre, ratio=ratio)
    thresholds = ladder.thresholds.tolist()
    assert (thresholds[0], thresholds[-1]) == ends
    assert ladder.mirrored.thresholds.tolist() == [-t for t in reversed(thresholds)]
    near = [t for t in range(centre - 90, centre + 91) if ends[0] <= t <= ends[1]]
    assert set(near) <= set(thresholds)
    for below, above in pairwise(thresholds):
        assert 0 < above - below <= 1 + (ratio - 1) * max(abs(below - centre), abs(above - centre))


def test_bounds_are_the_ends_of_the_ladder() -> None:
    assert Ladder.within(Domain(lower=-3, upper=9), FINE).thresholds.tolist() == list(range(-3, 10))
    one_sided = Ladder.within(Domain(lower=-3), FINE)
    assert (one_sided.low, one_sided.high) == (-3, LIMIT)
    beyond = Ladder.within(Domain(lower=-(10**30), upper=10**30, centre=10**30), FINE)
    assert (beyond.low, beyond.high, beyond.centre) == (-LIMIT, LIMIT, LIMIT)


@pytest.mark.parametrize("centre", [-LIMIT, -1, 0, 10**6, LIMIT])
@pytest.mark.parametrize("ends", [(-LIMIT, LIMIT), (LIMIT - 1, LIMIT), (7, 7), (LIMIT - 1, LIMIT - 1), (-5, 10**9)])
def test_thresholds_ascend_from_end_to_end_wherever_the_centre_is(ends: tuple[int, int], centre: int) -> None:
    """In whole numbers of 64 bits: a float would round the ends."""
    thresholds = Ladder(*ends, centre, Fraction(11, 10)).thresholds
    assert thresholds.dtype == np.int64
    assert (int(thresholds[0]), int(thresholds[-1])) == ends
    assert all(below < above for below, above in pairwise(thresholds.tolist()))
    assert centre in thresholds or not ends[0] <= centre <= ends[1]


@pytest.mark.parametrize("wrong", [(1, 0, 0, FINE), (-2 * LIMIT, 0, 0, FINE), (0, 1, 2 * LIMIT, FINE), (0, 1, 0, 1)])
def test_an_illegal_ladder_is_refused(wrong: tuple[int, int, int, Fraction]) -> None:
    with pytest.raises(InvalidInput, match="a ladder leads from low up to high"):
        Ladder(*wrong)


# -------------------------------------------------------------------------------------------------- the runs


def test_runs_count_the_values_beyond_each_threshold() -> None:
    for values in [(), (0,), (-100, -8, -8, 3), (5, 5, 5), (-(10**30), 4, 20, 21, 10**30), tuple(range(-10, 25))]:
        deficits = [3 * j - 4 for j in range(len(values) + 1)]
        runs = find_runs(SMALL, values, deficits)
        expanded = [deficit for length, deficit in runs for _ in range(length)]
        clamped = [min(max(v, -LIMIT), LIMIT) for v in values]
        assert expanded == [3 * sum(v > t for v in clamped) - 4 for t in SMALL.thresholds.tolist()]
        assert all(a.deficit != b.deficit for a, b in pairwise(runs))


def test_every_threshold_belongs_to_one_run() -> None:
    with pytest.raises(InvalidInput, match="belongs to one run"):
        AboveThreshold(SMALL, (Run(3, 1),), Fraction(1), Fraction(1))


# --------------------------------------------------------------------------------------------------- the law

MECHANISMS = {
    "falling": ((Run(3, 9), Run(4, 5), Run(5, 1), Run(4, -2)), Fraction(1, 2), Fraction(1, 3)),
    "one run": ((Run(16, 2),), Fraction(2, 5), Fraction(3, 5)),
    "surely the first": ((Run(16, -40),), Fraction(1), Fraction(1)),
    "never before the last": ((Run(16, 90),), Fraction(1), Fraction(1)),
    "the last by itself": ((Run(15, 4), Run(1, 7)), Fraction(1), Fraction(1, 4)),
    "fine lattice": ((Run(5, 700), Run(5, 300), Run(6, -150)), Fraction(1, 200), Fraction(1, 100)),
    "not monotone": ((Run(5, 2), Run(5, 6), Run(6, 1)), Fraction(1, 2), Fraction(1, 2)),
}


def named(name: str) -> AboveThreshold:
    return AboveThreshold(SMALL, *MECHANISMS[name])


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "fine lattice"])
def test_probabilities_are_those_of_the_definition(name: str) -> None:
    mechanism = named(name)
    rates = [Fraction(math.exp(-rate)) for rate in (mechanism.first_rate, mechanism.second_rate)]
    exact = stopping_law(list_deficits(mechanism), *rates)
    assert sum(exact) == 1
    for threshold, probability in zip(SMALL.thresholds.tolist(), exact, strict=True):
        assert mechanism.pmf(threshold) == pytest.approx(float(probability), abs=1e-12)


def test_a_fine_lattice_is_summed_in_strata() -> None:
    mechanism = named("fine lattice")
    first, second = (math.exp(-rate) for rate in (mechanism.first_rate, mechanism.second_rate))
    law = np.zeros(len(SMALL.thresholds))
    for g in range(12_000):
        left = (1 - first) * first**g
        for i, deficit in enumerate(list_deficits(mechanism)):
            stops = 1.0 if i == len(law) - 1 else min(1.0, second ** max(0, deficit + g))
            law[i] += left * stops
            left *= 1 - stops
    assert [mechanism.pmf(t) for t in SMALL.thresholds.tolist()] == pytest.approx(law.tolist(), abs=1e-3)


def test_answers_are_multiples_of_the_unit() -> None:
    for unit in (1, 10, -1, -10):
        mechanism = AboveThreshold(SMALL, *MECHANISMS["falling"], unit=unit)
        answers = [unit * t for t in SMALL.thresholds.tolist()]
        assert sum(map(mechanism.pmf, answers)) == pytest.approx(1)
        assert mechanism.pmf(None) == mechanism.pmf(7 * unit) == mechanism.pmf(50 * unit) == 0
        assert mechanism.draw(SeededSource(1)) in answers
    assert AboveThreshold(SMALL, *MECHANISMS["falling"], unit=10).pmf(45) == 0


@pytest.mark.statistical
@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_follow_the_law(name: str) -> None:
    mechanism = named(name)
    drawn = Counter(mechanism.draw() for _ in range(4_000))
    points = SMALL.thresholds.tolist()
    assert set(drawn) <= set(points)
    observed = [drawn[t] for t in points]
    expected = 4_000 * np.array([mechanism.pmf(t) for t in points])
    assert max(expected) > 3_999 or chi_square(observed, expected) > FALSE_ALARM


@pytest.mark.statistical
def test_a_wrong_rate_is_noticed() -> None:
    runs, first, second = MECHANISMS["falling"]
    wrong = AboveThreshold(SMALL, runs, first, second * Fraction(6, 5))
    mechanism, source = named("falling"), SeededSource(1)
    drawn = Counter(mechanism.draw(source) for _ in range(10_000))
    points = SMALL.thresholds.tolist()
    assert chi_square([drawn[t] for t in points], [10_000 * wrong.pmf(t) for t in points]) < FALSE_ALARM


@pytest.mark.statistical
def test_a_place_in_a_long_run_is_found_by_halving() -> None:
    ladder = Ladder(-LIMIT, LIMIT, centre=0, ratio=FINE)
    size = len(ladder.thresholds)
    mechanism = AboveThreshold(ladder, (Run(size // 2, 30), Run(size - size // 2, 5)), Fraction(10), Fraction(1))
    places = [int(np.searchsorted(ladder.thresholds, mechanism.draw())) for _ in range(1_000)]
    # from the middle on each stops with e^(−5), as G_0 is 0 nearly always; before it none does
    beyond = np.array(places) - size // 2
    assert beyond.min() >= 0
    chances = 1 - (1 - math.exp(-5)) ** np.diff([0, 40, 100, 200, 400, 10**9])
    expected, left = [], 1.0
    for chance in chances:
        expected.append(1_000 * left * chance)
        left *= 1 - chance
    observed = np.histogram(beyond, [0, 40, 100, 200, 400, 10**9])[0]
    assert chi_square(observed, expected) > FALSE_ALARM


def test_an_expected_error_leaves_the_farthest_out() -> None:
    surely = named("surely the first")
    assert surely.expected_absolute(-8) == pytest.approx(0, abs=1e-9)
    assert surely.expected_absolute(2) == pytest.approx(10)
    halves = AboveThreshold(Ladder(0, 1, 0, Fraction(2)), (Run(2, 1),), Fraction(50), Fraction(math.log(2)))
    assert halves.pmf(0) == pytest.approx(0.5)
    assert halves.expected_absolute(0) == pytest.approx(0.499 / 0.999)
