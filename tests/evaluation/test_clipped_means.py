"""Clipped means: sums against plain ones, the binary search's exact law between neighbours, and known data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from idios.evaluation.clipped_means import _search, draw_scanned_sums, draw_shifted_means, sum_clipped

STEPS, EPSILON = 3, 1.0


def test_sums_are_those_of_clipped_values() -> None:
    rng = np.random.default_rng(1)
    values = np.sort(rng.integers(-20, 20, 50)).astype(float)
    low = rng.integers(-25, 10, 30).astype(float)
    high = low + rng.integers(0, 30, 30)
    plain = [np.clip(values, a, b).sum() for a, b in zip(low, high, strict=True)]
    assert sum_clipped(values, low, high) == pytest.approx(plain)


def search_law(table: tuple[int, ...], rank: float, epsilon: float) -> dict[float, float]:
    """Pr(where the search of 0..8 ends), step by step."""
    law = {}
    for path in itertools.product((False, True), repeat=STEPS):
        low, high, chance = 0.0, 8.0, 1.0
        for beyond in path:
            middle = (low + high) / 2
            away = (rank - sum(x <= middle for x in table)) * epsilon / STEPS
            below = 1 - math.exp(-away) / 2 if away > 0 else math.exp(away) / 2
            chance *= below if beyond else 1 - below
            low, high = (middle, high) if beyond else (low, middle)
        law[high] = chance
    return law


def test_neighbours_differ_by_epsilon_at_most() -> None:
    worst = 0.0
    tables = list(itertools.combinations_with_replacement(range(9), 3))
    for table in tables:
        law = search_law(table, 1.5, EPSILON)
        for i, value in itertools.product(range(3), range(9)):
            other = search_law((*table[:i], *table[i + 1 :], value), 1.5, EPSILON)
            worst = max(worst, *(abs(math.log(law[end] / other[end])) for end in law))
    assert worst == pytest.approx(EPSILON), "attained, and not exceeded"


@pytest.mark.statistical
def test_searches_have_the_law() -> None:
    table, draws = np.array([2.0, 3.0, 7.0]), 100_000
    ends = np.zeros(draws), np.full(draws, 8.0)
    found = _search(
        lambda at: np.searchsorted(table, at, side="right").astype(float),
        1.5,
        ends,
        STEPS,
        EPSILON,
        np.random.default_rng(2),
    )
    for end, chance in search_law((2, 3, 7), 1.5, EPSILON).items():
        assert np.mean(found == end) == pytest.approx(chance, abs=5 * math.sqrt(chance / draws))


@pytest.mark.parametrize("shift", [0.0, 50_000.0, -1e6])
def test_a_shifted_mean_scatters_around_the_truth(shift: float) -> None:
    values = np.sort(np.rint(np.random.default_rng(3).normal(0, 1000, 20_000))) + shift
    found = draw_shifted_means(values, 1.0, 2000, np.random.default_rng(4))
    assert np.median(found) == pytest.approx(values.mean(), abs=2)
    assert np.median(np.abs(found - values.mean())) < 5, "the noise follows the spread, not the distance from 0"


def test_a_scanned_sum_scatters_around_the_truth() -> None:
    values = np.sort(np.rint(np.random.default_rng(5).normal(0, 1000, 20_000)))
    found = draw_scanned_sums(values, 1.0, 2000, np.random.default_rng(6))
    assert np.median(np.abs(found - values.sum())) < 20 * np.abs(values).max()
