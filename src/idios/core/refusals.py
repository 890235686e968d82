"""What is refused, and what is said of it, where public facts alone make an answer useless or impossible."""

from __future__ import annotations

import math
from fractions import Fraction

from idios.core.neighbours import Counted, Neighbours
from idios.core.statistics.base import Statistic
from idios.core.statistics.spread import InterquartileRange
from idios.errors import Unanswerable

FARTHEST_SPLIT = 10_000
"""How far out an envelope is computed where all splits of changes are tried at every distance: some 20 seconds."""


def refuse_too_long(statistic: Statistic, neighbours: Neighbours, distance: int) -> None:
    """Refuse an envelope that would take minutes, as with little ε, or where one person has many records."""
    replaced = neighbours is Neighbours.REPLACE
    slow = isinstance(statistic, InterquartileRange) if replaced else statistic.tries_splits
    if slow and distance > FARTHEST_SPLIT:
        times = math.ceil(Fraction(10 * distance, FARTHEST_SPLIT)) / 10
        raise Unanswerable(f"it would take too long with so little epsilon: ask with {times} times as much")


def refuse_undefined(statistic: Statistic, size: int | None, counted: Counted) -> None:
    """Refuse the k-th of fewer records, where their number is public: a selection has no more of them."""
    if size is not None and 0 < size < statistic.least_size:
        raise Unanswerable(f"it takes at least {statistic.least_size:,} values, and there are {counted.write(size)}")


def refuse_too_few(statistic: Statistic, size: int | None, least: int, counted: Counted) -> None:
    """Refuse what would be far off nearly always, where the number of records is public."""
    if size is not None and size < least:
        raise Unanswerable(
            f"{statistic.name} of {counted.write(size)} would be far off with this epsilon: ask about at least "
            f"{counted.write(least)}, or with a greater epsilon"
        )


def explain_missing(statistic: Statistic, missing: str, distance: int, factor: Fraction | None = None) -> str:
    """Say what is missing and what would do without it; ``distance`` is how many changes must be survived.

    With so many times as much ε as ``factor`` says, it would be answered, but for its check, which takes a share.
    """
    more = "" if factor is None else f", or with about {math.ceil(10 * factor) / 10:,g} times as much epsilon"
    return (
        f"{statistic.name} needs {missing}, and the column declares none: a few records could move it without limit. "
        f"Declare bounds, or ask for {statistic.advise(distance)}{more}"
    )
