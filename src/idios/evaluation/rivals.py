"""Other people's differentially private answers without bounds, drawn in floats: what Idios has to be better than.

Each has its source and what was taken from it in its own module; all are ε-DP under replace. They answer for columns
of whole numbers, so the unit of a column is its step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from idios.core.statistics import Mean, Statistic, Sum
from idios.core.statistics.order import OrderStatistic
from idios.evaluation import clipped_means, thresholds_exceeded
from idios.evaluation.clipped_means import sum_clipped
from idios.evaluation.smooth import Floats

# Bounds, quantiles, means and sums as Google's libraries find them without declared bounds, in floats.
#
# Google's differential-privacy library (github.com/google/differential-privacy: cc/docs/algorithms/approx-bounds.md and
# common_docs/Differentially_Private_Quantile_Trees.pdf). Half of ε finds bounds, half answers within them.
#
# ``draw_bounds``: a histogram whose bins end at ±1, ±2, ±4, …, with Laplace noise in every bin. The outermost bins that
# exceed a threshold are the bounds. The threshold is such that empty bins all stay below it with probability 1 − 10⁻⁹;
# where no bin exceeds it, 1 − 10⁻⁸ and 1 − 10⁻⁷ are tried, and then there is no answer (NaN).
#
# ``draw_quantiles``: a tree of height 4 with 16 children each over the bounds, with Laplace noise in every node. The
# walk from the root takes the child in which the wanted share lies, and forgets children with less than 0.5 % of their
# family; shares are held within 0.5 % and 99.5 %, and within a leaf, or a family that seems empty, the answer is
# interpolated.
#
# Taken from there: all constants. Theirs is for add-remove; here it is replace, which changes two bins (so twice the
# noise) and makes n public (so no noisy count, and sums of sensitivity U − L: both in its favour).


BINS = 63
"""Bins of either sign: up to the ends of 64-bit integers."""
FAILURES = (1e-9, 1e-8, 1e-7)
HEIGHT, BRANCHES = 4, 16
LEAVES = BRANCHES**HEIGHT
NEGLIGIBLE = 0.005
OUTERMOST = 0.005
TOLERANCE = 1e-6


def draw_bounds(values: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw lower and upper bounds; NaN where no bin has enough values."""
    edges = np.concatenate([-(2.0 ** np.arange(BINS - 1, -1, -1)), [0.0], 2.0 ** np.arange(BINS)])
    # a bin of positive values includes its upper end, one of negative values its lower; 0 belongs to the former
    above = np.searchsorted(edges[BINS:], values, side="left") - 1 + BINS
    below = np.searchsorted(edges[: BINS + 1], values, side="right") - 1
    placed = np.where(values >= 0, np.maximum(above, BINS), below)
    counts = np.bincount(np.clip(placed, 0, 2 * BINS - 1), minlength=2 * BINS)
    scale = 2 / epsilon
    noisy = counts + rng.laplace(scale=scale, size=(draws, 2 * BINS))
    low, high = np.full(draws, math.nan), np.full(draws, math.nan)
    for failure in FAILURES:
        exceeds = noisy >= find_threshold(failure, scale)
        found = exceeds.any(axis=1) & np.isnan(low)
        low = np.where(found, edges[exceeds.argmax(axis=1)], low)
        high = np.where(found, edges[2 * BINS - exceeds[:, ::-1].argmax(axis=1)], high)
    return low, high


def find_threshold(failure: float, scale: float) -> float:
    """What Laplace noise in all the bins exceeds anywhere with probability ``failure``."""
    single = -math.expm1(math.log1p(-failure) / (2 * BINS))
    return -scale * math.log(2 * single)


def draw_quantiles(values: Floats, share: float, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
    """Draw answers for the value that a share of the sorted values lies below; NaN where no bounds were found."""
    lows, highs = draw_bounds(values, epsilon / 2, draws, rng)
    answers = np.full(draws, math.nan)
    for low, high in {(low, high) for low, high in zip(lows, highs, strict=True) if not math.isnan(low)}:
        asked = (lows == low) & (highs == high)
        answers[asked] = _walk_tree(values, low, high, share, epsilon / 2, int(asked.sum()), rng)
    return answers


def _walk_tree(
    values: Floats, low: float, high: float, share: float, epsilon: float, draws: int, rng: np.random.Generator
) -> Floats:
    places = (np.clip(values, low, high) - low) / (high - low) * (LEAVES - 1)
    level = np.bincount(places.astype(np.int64), minlength=LEAVES)
    families = [level.reshape(-1, BRANCHES)]
    for _ in range(HEIGHT - 1):
        families.insert(0, families[0].sum(axis=1).reshape(-1, BRANCHES))
    wanted = np.full(draws, min(max(share, OUTERMOST), 1 - OUTERMOST))
    node, width, walking = np.zeros(draws, dtype=np.int64), np.ones(draws), np.ones(draws, dtype=bool)
    start = np.zeros(draws)  # where the node begins, as a share of the range
    for family in families:
        noisy = family[node] + rng.laplace(scale=2 * HEIGHT / epsilon, size=(draws, BRANCHES))
        total = noisy.sum(axis=1)
        kept = np.where(noisy >= total[:, None] * NEGLIGIBLE, noisy, 0.0)
        sums = np.cumsum(kept, axis=1)
        walking &= (total > 0) & (sums[:, -1] > 0)
        whole = np.where(walking, sums[:, -1], 1.0)
        child = np.where(walking, (sums / whole[:, None] >= wanted[:, None] - TOLERANCE).argmax(axis=1), 0)
        rows = np.arange(draws)
        mass = np.where(walking, kept[rows, child], 1.0)
        mass = np.where(mass > 0, mass, 1.0)
        inner = np.clip((wanted * whole - (sums[rows, child] - kept[rows, child])) / mass, 0.0, 1.0)
        wanted = np.where(walking, inner, wanted)
        width = np.where(walking, width / BRANCHES, width)
        start = np.where(walking, start + child * width, start)
        node = np.where(walking, node * BRANCHES + child, 0)
    return np.asarray(low + (high - low) * (start + wanted * width))


def draw_sums(values: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
    """Draw sums of the sorted values, clipped to the bounds; NaN where none were found."""
    low, high = draw_bounds(values, epsilon / 2, draws, rng)
    return np.asarray(sum_clipped(values, low, high) + rng.laplace(size=draws) * (high - low) / (epsilon / 2))


def draw_means(values: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
    """Draw means, which are sums over a public n."""
    return draw_sums(values, epsilon, draws, rng) / len(values)


Draw = Callable[[Floats, float, int, np.random.Generator], Floats]

DURFEE = "Durfee 2023"
POSITIVE = "Durfee 2023, told x ≥ 0"
GOOGLE = "ApproxBounds"
HUANG = "Huang, Liang, Yi 2021"


@dataclass(frozen=True)
class Rival:
    """One mechanism: ``draw`` takes sorted values, ε, a number of draws and a generator; NaN is no answer."""

    name: str
    style: str
    draw: Draw


def list_rivals(statistic: Statistic) -> tuple[Rival, ...]:
    """List who answers a statistic without bounds.

    >>> from idios.core.statistics import Median
    >>> [rival.name for rival in list_rivals(Median())]
    ['Durfee 2023', 'Durfee 2023, told x ≥ 0', 'ApproxBounds']
    """
    if isinstance(statistic, OrderStatistic):
        return _list_for_ranks(statistic)
    if isinstance(statistic, Mean):
        return (
            Rival(DURFEE, "durfee", lambda x, e, m, rng: clipped_means.draw_scanned_sums(x, e, m, rng) / len(x)),
            Rival(GOOGLE, "google", draw_means),
            Rival(HUANG, "huang", clipped_means.draw_shifted_means),
        )
    if isinstance(statistic, Sum):
        return (
            Rival(DURFEE, "durfee", clipped_means.draw_scanned_sums),
            Rival(GOOGLE, "google", draw_sums),
            Rival(HUANG, "huang", lambda x, e, m, rng: clipped_means.draw_shifted_means(x, e, m, rng) * len(x)),
        )
    return ()


def measure_answers(answers: Floats, truth: float, values: Floats) -> tuple[float, float]:
    """The mean absolute error of those that are given, and the share of those that are not (NaN).

    No error counts for more than the truth, or the largest of the values, itself: such an answer is worthless, and how
    far beyond all measure it lies would be all that the mean tells.

    >>> measure_answers(np.array([9.0, 13.0, 1e18, np.nan]), 10.0, np.array([8.0, 10.0, 20.0]))
    (8.0, 0.25)
    """
    given = answers[~np.isnan(answers)]
    refused = 1 - len(given) / len(answers)
    if not len(given):
        return math.nan, refused
    worthless = max(abs(truth), float(np.abs(values).max()))
    return float(np.minimum(np.abs(given - truth), worthless).mean()), refused


def _list_for_ranks(statistic: OrderStatistic) -> tuple[Rival, ...]:
    def find_target(size: int) -> float:
        """How many values lie below, those of half a rank included: q·n for a median, whatever n."""
        numerator, parts = statistic.position(size)
        return numerator / parts - 0.5

    def unbounded(x: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
        return thresholds_exceeded.draw_quantiles(x, find_target(len(x)), epsilon, draws, rng)

    def positive(x: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
        return thresholds_exceeded.draw_quantiles(x, find_target(len(x)), epsilon, draws, rng, lower=0.0)

    def tree(x: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
        return draw_quantiles(x, find_target(len(x)) / len(x), epsilon, draws, rng)

    return Rival(DURFEE, "durfee", unbounded), Rival(POSITIVE, "positive", positive), Rival(GOOGLE, "google", tree)
