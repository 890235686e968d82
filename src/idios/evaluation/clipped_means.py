"""Means without bounds by clipping at a private radius, in floats: Huang, Liang and Yi's, and one after Durfee.

Z. Huang, Y. Liang, K. Yi, "Instance-optimal Mean Estimation Under Differential Privacy", NeurIPS 2021 (arXiv
2106.00463): move the data by a private median, find a radius beyond which few values lie, clip to it, and add noise in
proportion to it. Median and radius come from a binary search over a public range, with a noisy count at each of its
steps. Theirs is for vectors under concentrated DP, with a random rotation. What it is for numbers under pure DP, with
ε/4 for the median, ε/4 for the radius and ε₃ = ε/2 for the sum:

    median     s = 33 steps over ±2³² (their example of a generous range), noise of scale 4s/ε in each count
    radius     over the powers of two up to 2³³, which takes 6 steps only, and a factor of two is enough for clipping
    answer     m + mean(clip(x − m, ±C)) with noise of scale 2C/(n·ε₃)

The radius is sought at the rank n − max(2/ε₃, τ), at least n/2. At 2/ε₃ clipping and noise weigh the same; τ is what
the counts of a search may err by, scale·ln(10⁶·steps), since one search that goes astray in the far outside costs more
than all the others. By the same rule the data is moved only if n/2 exceeds the τ of the median; n is public.

Durfee 2023 (``thresholds_exceeded``) finds the radius of |x| by one scan of thresholds, without moving the data.

All are for replace.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from idios.evaluation.smooth import Floats
from idios.evaluation.thresholds_exceeded import scan_upwards

BITS = 32
COARSE = 1.01
"""β for a radius: clipping needs no fine threshold, and fewer of them err less often."""


def sum_clipped(values: Floats, low: Floats, high: Floats) -> Floats:
    """Σ min(max(x, low), high) over the sorted values, for each pair of limits.

    >>> sum_clipped(np.array([1.0, 5.0, 9.0]), np.array([2.0, 0.0]), np.array([6.0, 10.0]))
    array([13., 15.])
    """
    first, last = np.searchsorted(values, low, side="left"), np.searchsorted(values, high, side="right")
    until = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(first * low + (until[last] - until[first]) + (len(values) - last) * high)


def draw_shifted_means(values: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
    """Draw Huang, Liang and Yi's mean of sorted values."""
    n, each = len(values), epsilon / 4
    steps = BITS + 1

    def count_below(point: Floats) -> Floats:
        return np.asarray(np.searchsorted(values, point, side="right"), dtype=np.float64)

    middle = np.zeros(draws)
    if n / 2 > find_margin(steps, each):
        ends = np.full(draws, -(2.0**BITS)), np.full(draws, 2.0**BITS)
        middle = _search(count_below, n / 2, ends, steps, each, rng)

    def count_near(power: Floats) -> Floats:
        radius = 2.0 ** np.floor(power)
        inside = np.searchsorted(values, middle + radius, side="right")
        return np.asarray(inside - np.searchsorted(values, middle - radius, side="left"), dtype=np.float64)

    halvings = math.ceil(math.log2(BITS + 1))
    rank = max(n - max(2 / (epsilon / 2), find_margin(halvings, each)), n / 2)
    powers = _search(count_near, rank, (np.zeros(draws), np.full(draws, 2.0**halvings)), halvings, each, rng)
    radius = 2.0 ** np.minimum(np.ceil(powers), BITS + 1)
    exact = sum_clipped(values, middle - radius, middle + radius) / n
    return np.asarray(exact + rng.laplace(size=draws) * 2 * radius / (n * epsilon / 2))


def find_margin(steps: int, epsilon: float) -> float:
    """What no count of a search errs by, in all but one of a million searches."""
    return steps / epsilon * math.log(1e6 * steps)


def _search(
    count: Callable[[Floats], Floats],
    rank: float,
    ends: tuple[Floats, Floats],
    steps: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Floats:
    """Halve the range, to the side where the noisy count says that the rank is."""
    low, high = ends
    for _ in range(steps):
        middle = (low + high) / 2
        beyond = count(middle) + rng.laplace(scale=steps / epsilon, size=len(middle)) < rank
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return high


def draw_scanned_sums(values: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
    """Draw sums of sorted values clipped to ±C, with C by one scan of |x|: half of ε for each."""
    n, half = len(values), epsilon / 2
    radius = scan_upwards(np.sort(np.abs(values)), max(n - 4 / half, n / 2), half, draws, rng, COARSE)
    return np.asarray(sum_clipped(values, -radius, radius) + rng.laplace(size=draws) * 2 * radius / half)
