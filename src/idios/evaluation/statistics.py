"""The names by which a comparison is asked for statistics: the functions of the library, and their parameter."""

from __future__ import annotations

from collections.abc import Callable

from idios.core.exact import exact, whole
from idios.core.statistics import (
    InterquartileRange,
    KthLargest,
    KthSmallest,
    Maximum,
    Mean,
    Median,
    Minimum,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from idios.errors import InvalidInput

DEFAULT = ("median", "kth_largest 2", "trimmed_mean 0.05", "iqr", "mean", "maximum")

_PLAIN: dict[str, Callable[[], Statistic]] = {
    "median": Median,
    "iqr": InterquartileRange,
    "mean": Mean,
    "total": Sum,
    "maximum": Maximum,
    "minimum": Minimum,
    "variance": Variance,
}
_WITH_PARAMETER: dict[str, Callable[[str], Statistic]] = {
    "kth_largest": lambda k: KthLargest(whole(k, "k")),
    "kth_smallest": lambda k: KthSmallest(whole(k, "k")),
    "quantile": lambda q: Quantile(exact(q, "q")),
    "trimmed_mean": lambda p: TrimmedMean(exact(p, "p")),
    "winsorized_mean": lambda p: WinsorizedMean(exact(p, "p")),
}


def named(text: str) -> Statistic:
    """Read a statistic as it is written: a name, and its parameter if it has one.

    >>> named("median").name, named("kth_largest 2"), named("trimmed_mean 0.05").p
    ('median', KthLargest(k=2), Fraction(1, 20))
    """
    name, *parameters = text.replace(":", " ").split() or [""]
    if name in _PLAIN and not parameters:
        return _PLAIN[name]()
    if name in _WITH_PARAMETER and len(parameters) == 1:
        return _WITH_PARAMETER[name](parameters[0])
    offered = ", ".join([*_PLAIN, *(f"{one} NUMBER" for one in _WITH_PARAMETER)])
    raise InvalidInput(f"a statistic is one of {offered}; got {text!r}")
