"""Google's bounds and trees: the exact law of the bounds between neighbours, the sampler against it, and known data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from idios.evaluation import rivals
from idios.evaluation.rivals import BINS, draw_bounds, draw_means, draw_quantiles, draw_sums, find_threshold

CERTAIN = 1e6
"""An ε without noise worth the name."""


def exceed(count: float, threshold: float, scale: float) -> float:
    """Pr(count + Laplace noise ≥ threshold)."""
    away = (threshold - count) / scale
    return math.exp(-away) / 2 if away > 0 else 1 - math.exp(away) / 2


def bounds_law(counts: list[int], threshold: float, scale: float) -> dict[tuple[int, int], float]:
    """Pr(the first and the last bin to exceed the threshold)."""
    reach = [exceed(count, threshold, scale) for count in counts]
    law = {(-1, -1): math.prod(1 - p for p in reach)}
    for first, last in itertools.combinations_with_replacement(range(len(counts)), 2):
        quiet = math.prod(1 - p for i, p in enumerate(reach) if i < first or i > last)
        law[first, last] = quiet * (reach[first] if first == last else reach[first] * reach[last])
    return law


def worst_loss(scale: float) -> float:
    tables = [counts for counts in itertools.product(range(5), repeat=3) if sum(counts) == 4]
    worst = 0.0
    for one, other in itertools.permutations(tables, 2):
        if sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 2:
            law, next_law = bounds_law(list(one), 3.0, scale), bounds_law(list(other), 3.0, scale)
            worst = max(worst, *(abs(math.log(law[key] / next_law[key])) for key in law))
    return worst


def test_neighbours_differ_by_epsilon_at_most() -> None:
    """One replacement changes two bins: noise of scale 2/ε."""
    assert worst_loss(2.0) == pytest.approx(1)
    assert worst_loss(1.0) > 1.9, "the noise of add-remove is too little, and that is seen"


def test_empty_bins_stay_below_the_threshold() -> None:
    for failure, scale in itertools.product(rivals.FAILURES, (0.5, 4.0)):
        single = exceed(0, find_threshold(failure, scale), scale)
        assert -math.expm1(2 * BINS * math.log1p(-single)) == pytest.approx(failure)


@pytest.mark.statistical
def test_bounds_have_the_law() -> None:
    values = np.sort(np.concatenate([np.full(60, 3.0), np.full(100, 30.0), np.full(40, 300.0)]))
    draws, scale = 20_000, 2 / 0.7
    low, high = draw_bounds(values, 0.7, draws, np.random.default_rng(5))
    threshold = find_threshold(1e-9, scale)
    reach = [exceed(count, threshold, scale) for count in (60, 100, 40)]
    assert np.mean(low == 2) == pytest.approx(reach[0], abs=5 * math.sqrt(0.25 / draws))
    assert np.mean(high == 512) == pytest.approx(reach[2], abs=5 * math.sqrt(0.25 / draws))


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([5.0, 6.0, 8.0], (4, 8)),
        ([0.0, 0.0], (0, 1)),
        ([1.0], (0, 1)),
        ([2.0], (1, 2)),
        ([-8.0, -5.0], (-8, -4)),
        ([-3.0, 100.0], (-4, 128)),
        ([-1.0], (-1, 0)),
    ],
)
def test_bounds_are_the_outermost_bins(values: list[float], bounds: tuple[int, int]) -> None:
    low, high = draw_bounds(np.array(values), CERTAIN, 3, np.random.default_rng(6))
    assert low.tolist() == [bounds[0]] * 3
    assert high.tolist() == [bounds[1]] * 3


def test_few_values_have_no_bounds() -> None:
    low, high = draw_bounds(np.arange(1.0, 9.0), 0.1, 100, np.random.default_rng(7))
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    assert np.isnan(draw_quantiles(np.arange(1.0, 9.0), 0.5, 0.1, 10, np.random.default_rng(7))).all()
    assert np.isnan(draw_means(np.arange(1.0, 9.0), 0.1, 10, np.random.default_rng(7))).all()


@pytest.mark.parametrize(("share", "allowed"), [(0.01, 100), (0.25, 5), (0.5, 5), (0.75, 5), (0.99, 100)])
def test_a_tree_without_noise_finds_quantiles(share: float, allowed: float) -> None:
    """But for children with too few values, which it forgets: that moves the outer ones inwards."""
    values = np.sort(np.random.default_rng(8).normal(50_000, 1000, 10_001))
    found = draw_quantiles(values, share, CERTAIN, 5, np.random.default_rng(9))
    assert found == pytest.approx(np.full(5, np.quantile(values, share)), abs=allowed)


def test_answers_scatter_around_the_truth() -> None:
    values = np.sort(np.random.default_rng(10).normal(50_000, 1000, 10_000))
    rng = np.random.default_rng(11)
    assert np.mean(draw_means(values, 1.0, 4000, rng)) == pytest.approx(values.mean(), abs=1)
    assert np.mean(draw_sums(values, 1.0, 4000, rng)) == pytest.approx(values.sum(), rel=1e-4)
    assert np.median(draw_quantiles(values, 0.5, 1.0, 4000, rng)) == pytest.approx(np.median(values), abs=20)
