"""The least summary a statistic asks for, cut from a full list of values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

from idios.core.domain import Domain
from idios.core.neighbours import Moves
from idios.core.statistics import Reading
from idios.core.summary import Summary, Window


def summarise(values: Sequence[int], reading: Reading, domain: Domain, moves: Moves, distance: int) -> Summary:
    """Nothing but what a statistic or a mechanism says it reads, so that reading more is an error."""
    assert moves.size == len(values)
    windows = []
    for first, last in reading.ranks(moves, distance):
        first, last = max(first, 1), min(last, len(values))
        if first <= last:
            below = sum(values[: first - 1]) if reading.needs_sums else 0
            windows.append(Window(first, tuple(values[first - 1 : last]), below))
    total = sum(values) if reading.needs_sums else None
    beside = {}
    for point in reading.thresholds(moves, domain, total or 0):
        left, right = bisect_right(values, point), bisect_left(values, point)
        beside[point] = (*values[max(left - 1, 0) : left], *values[right : right + 1])
    multiplicities = sorted(Counter(values).values())
    return Summary(
        domain,
        moves,
        windows=tuple(windows),
        total=total,
        squares=sum(v * v for v in values) if reading.needs_squares else None,
        beside=beside,
        distinct=len(multiplicities) if reading.needs_distinct else None,
        rarest=tuple(multiplicities[:distance]) if reading.needs_distinct else (),
        counts=_counts(values, domain) if reading.needs_counts else None,
    )


def _counts(values: Sequence[int], domain: Domain) -> tuple[int, ...]:
    assert domain.lower is not None
    assert domain.upper is not None
    times = Counter(values)
    return tuple(times[point] for point in range(domain.lower, domain.upper + 1))
