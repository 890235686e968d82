"""What may be asked of a column: the public parameter sets, and what to ask instead of the unanswerable.

A rank, an order or a share that an analyst can choose freely is a knob to aim an answer at a single record (an attack
in the literature walks a quantile along a threshold). The sets are declared beforehand; MEDIAN, MIN, MAX and AVG name
no parameter and are always in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from idios.core.exact import text
from idios.core.statistics import (
    DiscreteQuantile,
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Mean,
    Median,
    Mode,
    Quantile,
    StandardDeviation,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from idios.errors import Unanswerable
from idios.query.schema import Parameters

HALF = Fraction(1, 2)


def objection(statistic: Statistic | Mode, parameters: Parameters) -> str | None:
    """Why a parameter is not one of those declared; None if it is.

    >>> objection(Quantile(Fraction("0.333")), Parameters())
    'q = 0.333 is not offered: q is a multiple of 0.05 between 0 and 1'
    """
    if isinstance(statistic, (Quantile, DiscreteQuantile)):
        return _quantile(statistic, parameters.quantile)
    if isinstance(statistic, (KthLargest, KthSmallest)):
        if statistic.k == 1 or parameters.k is None or statistic.k in parameters.k:
            return None
        return f"k = {statistic.k} is not offered: k is one of {', '.join(map(str, sorted(parameters.k)))}"
    if isinstance(statistic, (TrimmedMean, WinsorizedMean)):
        step = parameters.trim
        if step is None or not statistic.p % step:
            return None
        return f"p = {text(statistic.p)} is not offered: p is a multiple of {text(step)} below 0.5"
    return None


def _quantile(statistic: Quantile | DiscreteQuantile, step: Fraction | None) -> str | None:
    if statistic.q in (0, 1):
        end, kth = ("MIN", "KTH_SMALLEST") if statistic.q == 0 else ("MAX", "KTH_LARGEST")
        return f"q lies strictly between 0 and 1: ask for {end}(column) or {kth}(column, k)"
    if step is None or not statistic.q % step or (statistic.q == HALF and isinstance(statistic, Quantile)):
        return None
    return f"q = {text(statistic.q)} is not offered: q is a multiple of {text(step)} between 0 and 1"


def alternatives(
    statistic: Statistic, column: str, parameters: Parameters, answerable: Callable[[Statistic], object]
) -> str:
    """What can be asked of a column instead, in SQL; ``answerable`` raises Unanswerable for what cannot."""
    found: list[str] = []
    shown = column if re.fullmatch(r"[A-Za-z_]\w*", column) else f'"{column}"'
    for candidate, written in _candidates(statistic, parameters):
        try:
            answerable(candidate)
        except Unanswerable:
            continue
        found.append(written.format(shown))
        if len(found) == 2:
            break
    narrowed = f"a narrower question: WHERE {shown} BETWEEN … AND …"
    return f"In SQL: {', '.join(found)}, or {narrowed}" if found else f"In SQL: {narrowed}"


def _candidates(statistic: Statistic, parameters: Parameters) -> Iterator[tuple[Statistic, str]]:
    orders = sorted(parameters.k) if parameters.k is not None else list(range(2, 21))
    share = parameters.trim or Fraction(1, 20)
    if isinstance(statistic, (KthLargest, KthSmallest)):
        for k in orders:
            if k > statistic.k:
                kind = KthLargest if isinstance(statistic, KthLargest) else KthSmallest
                yield kind(k), f"{'KTH_LARGEST' if kind is KthLargest else 'KTH_SMALLEST'}({{}}, {k})"
    elif isinstance(statistic, (Variance, StandardDeviation)):
        yield InterquartileRange(), "IQR({})"
    elif isinstance(statistic, (Mean, Sum)) and share < HALF:
        yield TrimmedMean(share), f"TRIMMED_MEAN({{}}, {text(share)})"
        yield WinsorizedMean(share), f"WINSORIZED_MEAN({{}}, {text(share)})"
    yield Median(), "MEDIAN({})"
