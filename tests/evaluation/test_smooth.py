"""Smooth sensitivity against its definition (all data sets tried) and against the O(n²) formulas."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest

from idios.errors import InvalidInput
from idios.evaluation.smooth import maximum_smooth_sensitivity, median_smooth_sensitivity

LOW, HIGH = 0, 4


def tables(n: int) -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(LOW, HIGH + 1), n))


def distance(a: Sequence[int], b: Sequence[int]) -> int:
    return len(a) - sum((Counter(a) & Counter(b)).values())


@cache
def local_sensitivities(f: Callable[[Sequence[int]], float], n: int) -> dict[tuple[int, ...], float]:
    found = {}
    for table in tables(n):
        neighbours = (sorted((*table[:i], v, *table[i + 1 :])) for i in range(n) for v in range(LOW, HIGH + 1))
        found[table] = max(abs(f(other) - f(table)) for other in neighbours)
    return found


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.5])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize(
    ("f", "smooth"),
    [(statistics.median, median_smooth_sensitivity), (max, maximum_smooth_sensitivity)],
    ids=["median", "maximum"],
)
def test_is_the_definition(f: Callable, smooth: Callable, n: int, beta: float) -> None:
    local = local_sensitivities(f, n)
    for table in tables(n)[:: 1 if n < 5 else 5]:
        expected = max(math.exp(-beta * distance(table, other)) * ls for other, ls in local.items())
        assert smooth(table, LOW, HIGH, beta) == pytest.approx(expected, rel=1e-12)


def by_all_pairs(values: np.ndarray, lower: float, upper: float, beta: float) -> float:
    """The formulas of the module, term by term."""
    n = len(values)
    x = np.concatenate([[lower], np.sort(values), [upper]])
    best = 0.0
    if n % 2:
        m = (n + 1) // 2
        for i in range(m + 1):
            for j in range(m, n + 2):
                if j > i:
                    best = max(best, (x[j] - x[i]) * math.exp(-beta * (j - i - 1)))
        return best
    h = n // 2
    for i in range(h + 1):
        for j in range(h + 1, n + 2):
            if j - i >= 2:
                best = max(best, (x[j] - x[i]) / 2 * math.exp(-beta * (j - i - 2)))
    return best


@pytest.mark.parametrize("n", [1, 2, 7, 50, 101, 200])
def test_windows_lose_nothing(n: int) -> None:
    rng = np.random.default_rng(n)
    for draw in (rng.random(n) * 100, np.floor(rng.random(n) * 5) * 20, 100 * rng.random(n) ** 20):
        for beta in (0.01, 0.05, 0.3, 2.0):
            expected = by_all_pairs(draw, 0.0, 100.0, beta)
            assert median_smooth_sensitivity(draw, 0.0, 100.0, beta) == pytest.approx(expected, rel=1e-12)


def test_refuses_what_has_no_smooth_sensitivity() -> None:
    for arguments in [
        ([], 0, 1, 1),
        ([1.0], 0, math.inf, 1),
        ([1.0], 0, 1, 0),
        ([2.0], 0, 1, 1),
        ([0.5], 1, 0, 1),
    ]:
        with pytest.raises(InvalidInput):
            median_smooth_sensitivity(*arguments)
