"""Durfee's quantile: its exact law between neighbours, the sampler against that law, and known data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from idios.evaluation.thresholds_exceeded import draw_quantiles, draw_stops, make_ladder, scan_upwards

RATES = (0.5, 0.5)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def stopping_law(surplus: list[float], first: float, second: float) -> np.ndarray:
    """Pr(the scan stops at each threshold), by integrating over the noise of the target, kink by kink."""
    kinks = sorted({0.0, *(s for s in surplus if s > 0)})
    edges = [*kinks, *(kinks[-1] + np.array([1, 4, 12, 30, 80, 200]) / min(first, second))]
    found = np.zeros(len(surplus))
    for low, high in itertools.pairwise(edges):
        g = (low + high) / 2 + (high - low) / 2 * NODES
        density = first * np.exp(-first * g) * WEIGHTS * (high - low) / 2
        survived = np.ones_like(g)
        for i, s in enumerate(surplus):
            hazard = np.exp(np.minimum(0.0, -second * (g - s)))
            hazard = np.ones_like(g) if i == len(surplus) - 1 else hazard  # the last threshold answers anyway
            found[i] += density @ (survived * hazard)
            survived *= 1 - hazard
    return found


def worst_loss(first: float, second: float, size: int, target: float) -> float:
    """The greatest |log ratio| over all tables of 0..3 and all replacements of one value."""
    ladder = [0.5, 1.5, 2.5, 3.5]
    law = {
        table: stopping_law([sum(x < t for x in table) - target for t in ladder], first, second)
        for table in itertools.combinations_with_replacement(range(4), size)
    }
    worst = 0.0
    for table in law:
        for i, value in itertools.product(range(size), range(4)):
            other = tuple(sorted((*table[:i], *table[i + 1 :], value)))
            worst = max(worst, float(np.abs(np.log(law[table] / law[other])).max()))
    return worst


@pytest.mark.parametrize(("size", "target"), [(3, 1.5), (4, 2.0), (4, 4.0)])
def test_neighbours_differ_by_epsilon_at_most(size: int, target: float) -> None:
    assert 0.75 < worst_loss(*RATES, size, target) <= 1 + 1e-6


def test_a_target_without_noise_would_be_caught() -> None:
    assert worst_loss(50.0, 1.0, 4, 2.0) > 1.2


def test_the_law_is_one() -> None:
    assert stopping_law([-2, -1, 0, 1, 2], *RATES).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("runs", [[(3, -2.0), (0, -1.0), (4, -0.5), (2, 1.0), (5, 2.0)], [(1, -3.0), (6, -1.0)]])
def test_stops_have_the_law(runs: list[tuple[int, float]]) -> None:
    """Seeded, so the outcome is fixed; the bound is five standard deviations."""
    draws = 200_000
    lengths, surplus = (np.array(part)[:, None] for part in zip(*runs, strict=True))
    stops = draw_stops(lengths, surplus, RATES, draws, np.random.default_rng(7))
    expected = stopping_law([s for length, s in runs for _ in range(length)], *RATES)
    found = np.bincount(stops, minlength=len(expected)) / draws
    assert np.all(np.abs(found - expected) <= 5 * np.sqrt(expected / draws) + 1e-9)


def test_each_column_can_be_a_data_set() -> None:
    lengths = np.array([[5, 1], [5, 9]])
    surplus = np.array([[-1e6, 1e6], [1e6, 1e6]])
    assert draw_stops(lengths, surplus, RATES, 2, np.random.default_rng(1)).tolist() == [5, 0]


def test_the_ladder_begins_at_0() -> None:
    assert make_ladder(2.0, 8.0).tolist() == pytest.approx([0, 1, 3, 7])


@pytest.mark.parametrize("shift", [0.0, -500.5, -2000.0, 1e6])
def test_medians_of_either_sign(shift: float) -> None:
    values = np.arange(1001.0) + shift
    found = draw_quantiles(values, 500.5, 20.0, 500, np.random.default_rng(2))
    assert abs(np.median(found) - (500.5 + shift)) < 2 + 0.001 * abs(shift)


def test_a_lower_bound_saves_the_second_scan() -> None:
    values = np.arange(1001.0)
    free = draw_quantiles(values, 990.5, 1.0, 4000, np.random.default_rng(3))
    told = draw_quantiles(values, 990.5, 1.0, 4000, np.random.default_rng(3), lower=0.0)
    assert np.median(np.abs(told - 990)) < np.median(np.abs(free - 990))


def test_thresholds_that_never_stop_end_at_the_limit() -> None:
    found = scan_upwards(np.zeros(3), 1e9, 1.0, 10, np.random.default_rng(4))
    assert np.all(found >= 2.0**62 - 1)
    assert math.isfinite(float(found[0]))
