"""The statistics: one family a file, each with its value and its envelope.

``STATISTICS`` is the registry, the one place that lists them. SQL, the catalogue, the array functions, the comparison
of levels and the contract tests read it; what they need to know of a statistic stands in its class (``base``).
"""

from idios.core.statistics.averages import Mean, Sum, TrimmedMean, WinsorizedMean
from idios.core.statistics.base import FINE, FINENESS, Parameters, Reading, Spelling, Statistic
from idios.core.statistics.categories import Histogram, Mode
from idios.core.statistics.counts import Count, DistinctCount, RangeCount
from idios.core.statistics.order import (
    DiscreteQuantile,
    KthLargest,
    KthSmallest,
    Maximum,
    Median,
    Minimum,
    Quantile,
)
from idios.core.statistics.spread import InterquartileRange, StandardDeviation, Variance

STATISTICS: tuple[type[Statistic], ...] = (
    Count,
    DistinctCount,
    Sum,
    Mean,
    Median,
    Quantile,
    DiscreteQuantile,
    Minimum,
    Maximum,
    KthLargest,
    KthSmallest,
    InterquartileRange,
    TrimmedMean,
    WinsorizedMean,
    Variance,
    StandardDeviation,
    Mode,
)
"""Every statistic that can be asked for, in the order in which lists show them."""


def find_statistic(function: str) -> type[Statistic]:
    """The statistic that a function of the library computes.

    >>> find_statistic("total")(), find_statistic("kth_largest").make(2)
    (Sum(), KthLargest(k=2))
    """
    return next(statistic for statistic in STATISTICS if statistic.function == function)


__all__ = [
    "FINE",
    "FINENESS",
    "STATISTICS",
    "Count",
    "DiscreteQuantile",
    "DistinctCount",
    "Histogram",
    "InterquartileRange",
    "KthLargest",
    "KthSmallest",
    "Maximum",
    "Mean",
    "Median",
    "Minimum",
    "Mode",
    "Parameters",
    "Quantile",
    "RangeCount",
    "Reading",
    "Spelling",
    "StandardDeviation",
    "Statistic",
    "Sum",
    "TrimmedMean",
    "Variance",
    "WinsorizedMean",
    "find_statistic",
]
