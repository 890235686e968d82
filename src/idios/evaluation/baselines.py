"""The standard-DP mechanisms that a comparison sets beside Idios' own levels: expected errors, in floats.

All are for replace, a column with bounds [L, U] and a public number of records n.

    Laplace at the global sensitivity   k-th, IQR, sum: U − L            quantile between two ranks, at r: max(r, 1 − r)
                                        trimmed mean: (U − L)/(n − 2k)   of that, so (U − L)/2 for the median of even n
                                        variance: (U − L)²·(n − 1)/n²    winsorized mean: (k + 1)·(U − L)/n
    smooth sensitivity, γ = 3           median, maximum
    exponential mechanism               median
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from idios.core.statistics import (
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Median,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from idios.evaluation.noises import Admissible, paper_pair, tight_pair
from idios.evaluation.smooth import Floats, maximum_smooth_sensitivity, median_smooth_sensitivity


@dataclass(frozen=True)
class Baseline:
    """One mechanism: what it is called, and E|error| for values, bounds and ε."""

    name: str
    style: str
    error: Callable[[Floats, float, float, float], float]


def list_baselines(statistic: Statistic) -> tuple[Baseline, ...]:
    """List the mechanisms that exist for a statistic; none for counts, whose levels all are the DP mechanism."""
    baselines = []
    if _global_sensitivity(statistic, 100, 1.0) is not None:

        def laplace(values: Floats, lower: float, upper: float, epsilon: float) -> float:
            return (_global_sensitivity(statistic, len(values), upper - lower) or 0.0) / epsilon

        baselines.append(Baseline("DP, Laplace at the global sensitivity", "global", laplace))
    smooth = {Median: median_smooth_sensitivity, Maximum: maximum_smooth_sensitivity}.get(type(statistic))
    if smooth is not None:
        for words, style, pair in (("the paper's", "smooth", paper_pair), ("tight", "tight", tight_pair)):

            def heavy(
                values: Floats,
                lower: float,
                upper: float,
                epsilon: float,
                pair: Callable[[float, float], tuple[float, float]] = pair,
            ) -> float:
                alpha, beta = pair(3, epsilon)
                return smooth(values, lower, upper, beta) / alpha * Admissible(3).expected_absolute

            baselines.append(Baseline(f"DP, smooth sensitivity γ = 3 ({words} pair)", style, heavy))
    if isinstance(statistic, Median):
        baselines.append(Baseline("DP, exponential mechanism", "exponential", exponential_median_error))
    return tuple(baselines)


def exponential_median_error(values: Floats, lower: float, upper: float, epsilon: float) -> float:
    """E|t − median| for t drawn from [L, U] with density ∝ e^(−(ε/2)·|rank(t) − n/2|).

    >>> round(exponential_median_error(np.array([0.0, 1.0]), 0.0, 1.0, epsilon=1.0), 3)  # uniform between the two
    0.25
    """
    knots = np.concatenate([[lower], np.sort(values), [upper]])
    middle = float(np.median(values))
    low, high = knots[:-1], knots[1:]
    weights = np.exp(-epsilon / 2 * np.abs(np.arange(len(low)) - len(values) / 2))
    inside = (low < middle) & (middle < high)
    apart = np.where(inside, (middle - low) ** 2 + (high - middle) ** 2, (high - low) * np.abs(low + high - 2 * middle))
    total = float(weights @ (high - low))
    # where all values are the bound there is no interval to draw from, and nothing else to answer
    return float(weights @ apart) / 2 / total if total else 0.0


def _global_sensitivity(statistic: Statistic, n: int, width: float) -> float | None:
    """The greatest change by one replaced record over all data sets of n records; None where none is listed."""
    if isinstance(statistic, KthLargest | KthSmallest | InterquartileRange | Sum):
        return width
    if isinstance(statistic, Quantile):
        # (1−r)·x_k + r·x_{k+1} moves by (1−r)·(x_{k+1} − x_k) + r·(x_{k+2} − x_{k+1}) at most
        numerator, parts = statistic.position(n)
        rest = numerator % parts / parts
        return width * max(rest, 1 - rest)
    if isinstance(statistic, TrimmedMean):
        return width / (n - 2 * math.floor(statistic.p * n))
    if isinstance(statistic, WinsorizedMean):
        return width * (math.floor(statistic.p * n) + 1) / n
    if isinstance(statistic, Variance):
        return width**2 * (n - 1) / n**2
    return None
