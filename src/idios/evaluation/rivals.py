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
from idios.evaluation import above_threshold, approx_bounds, clipping
from idios.evaluation.smooth import Floats

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
            Rival(DURFEE, "durfee", lambda x, e, m, rng: clipping.draw_scanned_sums(x, e, m, rng) / len(x)),
            Rival(GOOGLE, "google", approx_bounds.draw_means),
            Rival(HUANG, "huang", clipping.draw_shifted_means),
        )
    if isinstance(statistic, Sum):
        return (
            Rival(DURFEE, "durfee", clipping.draw_scanned_sums),
            Rival(GOOGLE, "google", approx_bounds.draw_sums),
            Rival(HUANG, "huang", lambda x, e, m, rng: clipping.draw_shifted_means(x, e, m, rng) * len(x)),
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
        return above_threshold.draw_quantiles(x, find_target(len(x)), epsilon, draws, rng)

    def positive(x: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
        return above_threshold.draw_quantiles(x, find_target(len(x)), epsilon, draws, rng, lower=0.0)

    def tree(x: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
        return approx_bounds.draw_quantiles(x, find_target(len(x)) / len(x), epsilon, draws, rng)

    return Rival(DURFEE, "durfee", unbounded), Rival(POSITIVE, "positive", positive), Rival(GOOGLE, "google", tree)
