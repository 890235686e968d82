"""The names by which a comparison is asked for statistics: the functions of the library, and their parameter."""

from __future__ import annotations

from idios.core import statistics
from idios.core.statistics import Statistic
from idios.errors import InvalidInput

DEFAULT = ("median", "kth_largest 2", "trimmed_mean 0.05", "iqr", "mean", "maximum")


def parse_statistic(written: str) -> Statistic:
    """Read a statistic as it is written: a name, and its parameter if it has one.

    >>> parse_statistic("median").name, parse_statistic("kth_largest 2"), parse_statistic("trimmed_mean 0.05").p
    ('median', KthLargest(k=2), Fraction(1, 20))
    """
    # Counts and categories are left out: every level protects them with the same noise.
    offered = {s.function: s for s in statistics.STATISTICS if s.function and s.degree and not s.selects}
    name, *arguments = written.replace(":", " ").split() or [""]
    statistic = offered.get(name)
    if statistic is not None and len(arguments) == (statistic.parameter is not None):
        return statistic.make(*arguments)
    plain = [name for name, kind in offered.items() if kind.parameter is None]
    with_parameter = [f"{name} NUMBER" for name, kind in offered.items() if kind.parameter is not None]
    raise InvalidInput(f"a statistic is one of {', '.join([*plain, *with_parameter])}; got {written!r}")
