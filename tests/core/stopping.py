"""The law of AboveThreshold in fractions: what the enumerations compare."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from idios.core.distributions.above_threshold import AboveThreshold
from idios.core.domain import Domain
from idios.core.neighbours import Moves
from idios.core.summary import Summary, Window


@cache
def stopping_law(deficits: tuple[int, ...], first: Fraction, second: Fraction) -> tuple[Fraction, ...]:
    """The probability of every threshold, with any rational numbers in place of e^(−e₁/b) and e^(−e₂/b).

    Σ_g (1−a₁)·a₁^g·Π_{j<i}(1 − a₂^(d_j+g))·a₂^(d_i+g): one by one while some d + g ≤ 0; from then on the product is a
    polynomial in a₂^g, and every power of it a geometric series.
    """
    law = [Fraction(0)] * len(deficits)
    beginning = max(0, 1 - min(deficits))
    for g in range(beginning):
        left = (1 - first) * first**g
        for i, deficit in enumerate(deficits):
            stops = second ** max(0, deficit + g) if i < len(deficits) - 1 else Fraction(1)
            law[i] += left * stops
            left *= 1 - stops
    series = [
        (1 - first) * (first * second**k) ** beginning / (1 - first * second**k) for k in range(len(deficits) + 1)
    ]
    product = [Fraction(1)]
    for i, deficit in enumerate(deficits):
        stops = [Fraction(0), *(second**deficit * c for c in product)]
        ends = stops if i < len(deficits) - 1 else product
        law[i] += sum((c * s for c, s in zip(ends, series, strict=False)), Fraction(0))
        product = [a - b for a, b in zip([*product, Fraction(0)], stops, strict=True)]
    return tuple(law)


def list_deficits(mechanism: AboveThreshold) -> tuple[int, ...]:
    return tuple(deficit for length, deficit in mechanism.runs for _ in range(length))


def cut_windows(
    values: Sequence[int], runs: Sequence[tuple[int, int]], moves: Moves, domain: Domain | None = None
) -> Summary:
    """Nothing but the ranks that are read."""
    cuts = [(max(first, 1), min(last, len(values))) for first, last in runs]
    windows = tuple(Window(first, tuple(values[first - 1 : last])) for first, last in cuts if first <= last)
    return Summary(domain or Domain(), moves, windows=windows)
