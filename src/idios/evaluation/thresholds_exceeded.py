"""Durfee's unbounded quantile, in floats: a rival, and the yardstick for extremes without bounds.

D. Durfee, "Unbounded Differentially Private Quantile and Maximum Estimation", NeurIPS 2023 (arXiv 2305.01177). With a
lower bound ℓ, the thresholds ℓ + β^i − 1 for i = 0, 1, … are compared, one after the other, with how many of the n
values lie below them; the first whose noisy count reaches q·n, noisy too, is the answer (AboveThreshold):

    #{x < t_i} + G_i ≥ q·n + G_0,    G_0 exponential with rate ε₁, all G_i with rate ε₂

One replaced value moves all counts the same way by 0 or 1, so this is (ε₁ + ε₂)-DP. Taken from there: the ladder,
exponential noise, and two scans where nothing is known. β = 1.001 and ε₁ = ε₂ are as we understand it, not compared
with its text. The first has ℓ = 0, and if it stops at its
first threshold, the quantile is not above 0 and the second looks for it among −x, with 1 − q. Each gets half of ε.

Noise is not drawn for each threshold. Given G_0 = g, a threshold whose count exceeds the target by s stops the scan
with probability e^(−ε₂·(g − s)), or 1 if g ≤ s; so what survives is known for every run of thresholds with the same
count, and one uniform number finds the stop.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from idios.evaluation.smooth import Floats

RATIO = 1.001
"""β for quantiles."""
LIMIT = 2.0**62
"""Where every ladder ends: the last threshold is the answer if none stopped the scan."""

Whole = NDArray[np.int64]


def draw_quantiles(
    values: Floats,
    target: float,
    epsilon: float,
    draws: int,
    rng: np.random.Generator,
    *,
    lower: float | None = None,
    ratio: float = RATIO,
) -> Floats:
    """Draw answers for the value that about ``target`` of the sorted values lie below.

    Without a lower bound two scans share ε.

    >>> rng = np.random.default_rng(1)
    >>> found = draw_quantiles(np.arange(1001.0), 500.5, 1.0, 1000, rng, lower=0.0)
    >>> bool(495 < np.median(found) < 507)
    True
    """
    if lower is not None:
        return lower + scan_upwards(values - lower, target, epsilon, draws, rng, ratio)
    upwards = scan_upwards(values, target, epsilon / 2, draws, rng, ratio)
    downwards = -scan_upwards(-values[::-1], len(values) - target, epsilon / 2, draws, rng, ratio)
    return np.where(upwards > 0, upwards, downwards)


def scan_upwards(
    values: Floats, target: float, epsilon: float, draws: int, rng: np.random.Generator, ratio: float = RATIO
) -> Floats:
    """Draw where a scan of the thresholds β^i − 1 stops, for sorted values."""
    ladder = make_ladder(ratio)
    below = np.searchsorted(values, ladder, side="left")
    counts, lengths = np.unique(below, return_counts=True)
    surplus = np.asarray(counts[:, None] - target, dtype=np.float64)
    stops = draw_stops(lengths[:, None], surplus, (epsilon / 2, epsilon / 2), draws, rng)
    return ladder[stops]


def make_ladder(ratio: float = RATIO, limit: float = LIMIT) -> Floats:
    """The thresholds β^i − 1, from 0 to the limit."""
    return np.asarray(np.expm1(math.log(ratio) * np.arange(math.ceil(math.log(limit) / math.log(ratio)) + 1)))


def draw_stops(
    lengths: Whole, surplus: Floats, rates: tuple[float, float], draws: int, rng: np.random.Generator
) -> Whole:
    """Draw at which threshold each of ``draws`` scans stops.

    Row j is a run of ``lengths[j]`` thresholds whose counts exceed the target by ``surplus[j]`` (or fall short of it);
    a column is a data set, and one column serves all draws.
    """
    first, second = rates
    barrier = rng.exponential(1 / first, draws)
    hazard = np.exp(np.minimum(0.0, -second * (barrier - surplus)))
    with np.errstate(divide="ignore"):  # certain to stop: the logarithm is −∞
        decay = np.log1p(-hazard)
    survived = np.cumsum(np.where(lengths > 0, decay * np.maximum(lengths, 1), 0.0), axis=0)
    depth = -rng.standard_exponential(draws)  # the logarithm of a uniform number
    passed = (survived > depth).sum(axis=0)
    ended = np.minimum(passed, len(survived) - 1)
    columns = np.arange(draws)
    before = np.where(ended > 0, survived[ended - 1, columns], 0.0)
    spread = np.broadcast_to(lengths, survived.shape)
    with np.errstate(divide="ignore", invalid="ignore"):  # where no threshold stops, the last one answers
        within = np.floor((depth - before) / decay[ended, columns])  # −∞ gives 0: the first of the run
    last = spread[ended, columns] - 1
    inside = np.where(passed < len(survived), np.clip(within, 0, last), last).astype(np.int64)
    start = np.broadcast_to(np.cumsum(lengths, axis=0) - lengths, survived.shape)[ended, columns]
    return np.asarray(start + inside)
