"""The statistics: one family a file, each with its value and its envelope."""

from idios.core.statistics.averages import Mean, TrimmedMean, WinsorizedMean
from idios.core.statistics.base import FINENESS, Statistic
from idios.core.statistics.categories import Histogram, Mode
from idios.core.statistics.counts import Count, DistinctCount, RangeCount
from idios.core.statistics.moments import StandardDeviation, Variance
from idios.core.statistics.order import (
    DiscreteQuantile,
    KthLargest,
    KthSmallest,
    Maximum,
    Median,
    Minimum,
    Quantile,
)
from idios.core.statistics.spread import InterquartileRange
from idios.core.statistics.totals import Sum

__all__ = [
    "FINENESS",
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
    "Quantile",
    "RangeCount",
    "StandardDeviation",
    "Statistic",
    "Sum",
    "TrimmedMean",
    "Variance",
    "WinsorizedMean",
]
