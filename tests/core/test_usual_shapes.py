"""Medians of data of usual shapes, without bounds: what is answered, how often nothing is, and what is out of reach.

All of it is computed from the law of the draw; nothing is sampled but the data, by fixed seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from idios.core.calibration import Level, Protection, calibrate, choose
from idios.core.distributions import InverseSensitivity
from idios.core.neighbours import Neighbours
from idios.core.statistics import Median
from idios.data.arrays import read_numbers

YEAR = 365 * 86_400 * 10**6
START = 1_767_225_600 * 10**6
"""2026 in microseconds."""

Generator = np.random.Generator
SHAPES: dict[str, Callable[[Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(50_000, 1_000, n),
    "lognormal": lambda rng, n: rng.lognormal(10, 1, n),
    "Pareto": lambda rng, n: 1_000 * (1 + rng.pareto(1.5, n)),
    "timestamps": lambda rng, n: START + rng.integers(0, YEAR, n),
    "weekly hours": lambda rng, n: np.clip(rng.normal(37, 8, n), 0, 80),
}


def calibrate_median(values: np.ndarray, epsilon: Fraction, whole: bool = True) -> InverseSensitivity:
    """The mechanism of a median at ``differential``, in whole steps of 1."""
    protection, notion = Protection(Level.DIFFERENTIAL), Neighbours.REPLACE
    column = read_numbers(np.round(values).astype(np.int64), nullable=not whole)
    size = len(values) if whole else None
    choice = choose(Median(), column.domain, notion, whole, protection, epsilon, size=size)
    mechanism = calibrate(choice, Median(), column.summarise(Median(), notion, choice.distance), protection)
    assert isinstance(mechanism, InverseSensitivity)
    return mechanism


def find_chance_out_of_reach(mechanism: InverseSensitivity) -> float:
    """It is to the chance of a refusal as π(beyond)·q is to R."""
    beyond = mechanism.masses[-1] / mechanism.measure.denominator
    q = math.exp(-float(mechanism.epsilon) / 2)
    return mechanism.refusal_probability * beyond * q / mechanism.refusal


@pytest.mark.parametrize("whole", [True, False])
def test_of_tied_whole_numbers_nearly_all_answers_are_the_median(whole: bool) -> None:
    others = [*range(20, 37), *range(38, 61)]
    values = np.array([37] * 1_200 + [others[i * len(others) // 3_700] for i in range(3_700)])
    assert np.median(values) == 37
    assert calibrate_median(values, Fraction("0.17"), whole).pmf(2 * 37) >= 0.9


@pytest.mark.parametrize("shape", SHAPES)
def test_from_121_records_on_fewer_than_one_median_in_a_hundred_is_refused(shape: str) -> None:
    for n in (121, 122, 131, 151, 201, 501):
        for seed in range(4):
            mechanism = calibrate_median(SHAPES[shape](np.random.default_rng(seed), n), Fraction(1))
            assert mechanism.refusal_probability < 0.01, (n, seed)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_out_of_reach_has_a_chance_of_q_over_r(shape: str) -> None:
    """Whatever the number of records; of a selection, as few records of a whole table are refused beforehand."""
    greatest = 0.0
    for n in (1, 2, 5, 11, 31, 61, 81, 101, 121, 201):
        mechanism = calibrate_median(SHAPES[shape](np.random.default_rng(n), n), Fraction(1), whole=False)
        chance = find_chance_out_of_reach(mechanism)
        assert chance <= math.exp(-0.5) / mechanism.refusal * (1 + 1e-12), n
        assert mechanism.refusal == 1000
        greatest = max(greatest, chance)
    assert greatest > 0.5 * math.exp(-0.5) / 1000  # and nearly as much on tables that are too small


NEVER = 1 / 1000


@pytest.mark.parametrize(("values", "cells"), [(1, 1), (20, 1), (2, 3), (20, 1000)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_an_answer_of_a_question_that_is_out_of_reach_is_rarer_than_one_in_a_thousand(
    values: int, cells: int, epsilon: Fraction
) -> None:
    """Any of all its values, on the worst tables for each of them: 1 − Π(1 − p)."""
    protection, drawn = Protection(Level.DIFFERENTIAL), values * cells
    one, shared = 0.0, 0.0
    for n in (0, 1, 2, 3, 4, 5, 11):
        for values_of in (lambda n: np.arange(n) * 10**17, lambda n: np.full(n, 5), lambda n: np.arange(n)):
            column = read_numbers(values_of(n), nullable=True)
            found = []
            for count in (drawn, cells):
                choice = choose(Median(), column.domain, Neighbours.REPLACE, False, protection, epsilon, drawn=count)
                mechanism = calibrate(
                    choice, Median(), column.summarise(Median(), Neighbours.REPLACE, choice.distance), protection
                )
                assert isinstance(mechanism, InverseSensitivity)
                assert mechanism.refusal == 1000 * count
                found.append(find_chance_out_of_reach(mechanism))
            one, shared = max(one, found[0]), max(shared, found[1])
    assert 1 - (1 - one) ** drawn < NEVER * math.exp(-float(epsilon) / 2)
    assert 1 - (1 - one) ** drawn > 0.99 * NEVER * math.exp(-float(epsilon) / 2)  # which is nearly reached
    if values > 1 and epsilon < 2:  # as many as there are cells are not enough
        assert 1 - (1 - shared) ** drawn > NEVER
