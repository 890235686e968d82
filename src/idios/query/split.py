"""How ε is divided among the statistics of one question: evenly, or in the proportions that ``split=`` gives.

A quote shows what results from it (``Quote.split``): the ε of each released cell, by column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from idios.core.exact import positive
from idios.errors import InvalidInput
from idios.query.question import Measure

MAX_BITS = 4_000
"""How long the common denominator of the parts may be: shares are written out, and lengths of fractions add up."""

Split: TypeAlias = Mapping[str, object] | Sequence[object] | None
"""A number for each label, or for each statistic in the order of the SELECT list; None: evenly."""


def read_split(measures: Sequence[Measure], same: Sequence[int], split: Split) -> tuple[Fraction, ...]:
    """The proportion of each different statistic; ``same[i]`` says which of them the i-th measure is.

    A statistic listed twice gets the sum of both.

    >>> from idios.core.statistics import Count, Median
    >>> two = (Measure("n", Count()), Measure("m", Median(), "age"))
    >>> read_split(two, (0, 1), None), read_split(two, (1, 0), {"n": 1, "m": "0.5"})
    ((Fraction(1, 1), Fraction(1, 1)), (Fraction(1, 2), Fraction(1, 1)))
    """
    different = max(same) + 1
    if split is None:
        return (Fraction(1),) * different
    proportions = [Fraction(0)] * different
    together = Fraction(0)
    for measure, index, part in zip(measures, same, _parts(measures, split), strict=True):
        if part is not None:
            proportions[index] += positive(part, f"the part of {measure.label}")
            together += proportions[index]
            if max(together.numerator.bit_length(), together.denominator.bit_length()) > MAX_BITS:
                raise InvalidInput("the parts of split cannot be added up in reasonable length: write short decimals")
    for measure, index in zip(measures, same, strict=True):
        if not proportions[index]:
            raise InvalidInput(f"split gives no part to {measure.label}: {_wanted(measures)}")
    return tuple(proportions)


def _parts(measures: Sequence[Measure], split: Mapping[str, object] | Sequence[object]) -> list[object]:
    """What each measure is given; None for the second of two with one label."""
    labels = [measure.label for measure in measures]
    if isinstance(split, Mapping):
        if unknown := [str(label) for label in split if label not in labels]:
            raise InvalidInput(f"split names {unknown[0]!r}, which is no statistic here: {_wanted(measures)}")
        return [split.get(label) if label not in labels[:i] else None for i, label in enumerate(labels)]
    if isinstance(split, str) or not isinstance(split, Sequence) or len(split) != len(measures):
        raise InvalidInput(f"split does not fit the question: {_wanted(measures)}")
    return list(split)


def _wanted(measures: Sequence[Measure]) -> str:
    labels = ", ".join(dict.fromkeys(measure.label for measure in measures))
    return f"give one number greater than 0 for each of {labels}, by its name"
