"""The statistics that a question can name, and the columns each can be asked of.

Different spellings of one statistic are the same statistic (``normal``): MEDIAN is the quantile of ½, MIN the first
smallest, MAX the first largest, and AVG what is left of a trimmed mean that trims nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from idios.core.domain import Kind
from idios.core.statistics import (
    Count,
    DiscreteQuantile,
    DistinctCount,
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Mean,
    Median,
    Minimum,
    Mode,
    Quantile,
    StandardDeviation,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)

NUMERIC = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL})
ORDERED = NUMERIC | {Kind.DATE, Kind.TIMESTAMP}
ANY_KIND = frozenset(Kind)


@dataclass(frozen=True)
class Function:
    """One name: how its statistic is made, of which columns, and what its second argument is called."""

    make: Callable[..., Statistic | Mode]
    kinds: frozenset[Kind]
    parameter: str | None = None
    within_group: bool = False

    def signature(self, name: str) -> str:
        """How a call is written.

        >>> FUNCTIONS["KTH_LARGEST"].signature("KTH_LARGEST")
        'KTH_LARGEST(column, k)'
        """
        plain = f"{name}(column, {self.parameter})" if self.parameter else f"{name}(column)"
        return plain if not self.within_group else f"{plain} or {name}(q) WITHIN GROUP (ORDER BY column)"


FUNCTIONS = {
    "COUNT": Function(Count, ANY_KIND),
    "SUM": Function(Sum, NUMERIC),
    "AVG": Function(Mean, NUMERIC),
    "MEDIAN": Function(Median, ORDERED),
    "PERCENTILE_CONT": Function(Quantile, ORDERED, "q", within_group=True),
    "PERCENTILE_DISC": Function(DiscreteQuantile, ORDERED, "q", within_group=True),
    "QUANTILE": Function(Quantile, ORDERED, "q"),
    "MIN": Function(Minimum, ORDERED),
    "MAX": Function(Maximum, ORDERED),
    "KTH_LARGEST": Function(KthLargest, ORDERED, "k"),
    "KTH_SMALLEST": Function(KthSmallest, ORDERED, "k"),
    "IQR": Function(InterquartileRange, NUMERIC),
    "TRIMMED_MEAN": Function(TrimmedMean, NUMERIC, "p"),
    "WINSORIZED_MEAN": Function(WinsorizedMean, NUMERIC, "p"),
    "VARIANCE": Function(Variance, NUMERIC),
    "VAR_POP": Function(Variance, NUMERIC),
    "STDDEV": Function(StandardDeviation, NUMERIC),
    "STDDEV_POP": Function(StandardDeviation, NUMERIC),
    "MODE": Function(Mode, frozenset({Kind.CATEGORY})),
}
"""COUNT(*) and COUNT(DISTINCT column) are forms of their own, which the reader knows."""

DISTINCT_COUNT = Function(DistinctCount, ANY_KIND)

ADVICE = {
    "VAR_SAMP": "VARIANCE(column), which divides by n, is offered",
    "STDDEV_SAMP": "STDDEV(column), which divides by n, is offered",
    "MEAN": "AVG(column) is offered",
    "QUANTILE_CONT": "PERCENTILE_CONT(column, q) is offered",
    "QUANTILE_DISC": "PERCENTILE_DISC(column, q) is offered",
}


def normal(statistic: Statistic | Mode) -> Statistic | Mode:
    """The one way to say a statistic, for all ways to spell it.

    >>> normal(Quantile(Fraction(1, 2))), normal(KthLargest(1)), normal(WinsorizedMean(Fraction(0)))
    (Median(q=Fraction(1, 2)), Maximum(k=1), Mean(p=Fraction(0, 1)))
    """
    if isinstance(statistic, Quantile):
        return Median() if statistic.q == Fraction(1, 2) else Quantile(statistic.q)
    if isinstance(statistic, KthLargest):
        return Maximum() if statistic.k == 1 else KthLargest(statistic.k)
    if isinstance(statistic, KthSmallest):
        return Minimum() if statistic.k == 1 else KthSmallest(statistic.k)
    if isinstance(statistic, (TrimmedMean, WinsorizedMean)) and not statistic.p:
        return Mean()
    return statistic
