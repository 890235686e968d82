"""How ε is divided among the statistics of one question: evenly, or by the weights that come with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from idios.core.exact import positive
from idios.errors import InvalidInput
from idios.query.question import Measure

MAX_BITS = 4_000
"""How long the common denominator of weights may be: shares are written out, and lengths of fractions add up."""

Split = Mapping[str, object] | Sequence[object] | None
"""A number for each label, or for each statistic in the order of the SELECT list."""


def read_split(measures: Sequence[Measure], same: Sequence[int], weights: Split) -> tuple[Fraction, ...]:
    """The weight of each different statistic; ``same[i]`` says which of them the i-th measure is.

    A statistic listed twice has the weights of both.

    >>> from idios.core.statistics import Count, Median
    >>> two = (Measure("n", Count()), Measure("m", Median(), "age"))
    >>> read_split(two, (0, 1), None), read_split(two, (1, 0), {"n": 1, "m": "0.5"})
    ((Fraction(1, 1), Fraction(1, 1)), (Fraction(1, 2), Fraction(1, 1)))
    """
    different = max(same) + 1
    if weights is None:
        return (Fraction(1),) * different
    total = [Fraction(0)] * different
    together = Fraction(0)
    for measure, index, weight in zip(measures, same, _listed(measures, weights), strict=True):
        if weight is not None:
            total[index] += positive(weight, f"the weight of {measure.label}")
            together += total[index]
            if max(together.numerator.bit_length(), together.denominator.bit_length()) > MAX_BITS:
                raise InvalidInput("the weights cannot be added up in reasonable length: write them as short decimals")
    for measure, index in zip(measures, same, strict=True):
        if not total[index]:
            raise InvalidInput(f"weights name no weight for {measure.label}: {_wanted(measures)}")
    return tuple(total)


def _listed(measures: Sequence[Measure], weights: Mapping[str, object] | Sequence[object]) -> list[object]:
    labels = [measure.label for measure in measures]
    if isinstance(weights, Mapping):
        if unknown := [str(label) for label in weights if label not in labels]:
            raise InvalidInput(f"weights name {unknown[0]!r}, which is no statistic here: {_wanted(measures)}")
        # one label shown twice is one weight
        return [weights.get(label) if label not in labels[:i] else None for i, label in enumerate(labels)]
    if isinstance(weights, str) or not isinstance(weights, Sequence) or len(weights) != len(measures):
        raise InvalidInput(f"weights do not fit the question: {_wanted(measures)}")
    return list(weights)


def _wanted(measures: Sequence[Measure]) -> str:
    labels = ", ".join(dict.fromkeys(measure.label for measure in measures))
    return f"give one number greater than 0 for each of {labels}, by its name"
