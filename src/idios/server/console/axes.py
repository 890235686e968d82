"""Scales and ticks of a chart's axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

LOG_FROM = 50
"""The ratio of the largest to the smallest value from which a scale of powers of ten is clearer."""


@dataclass(frozen=True)
class Axis:
    """Places values between two ends of a drawing."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Where a value is drawn, in the drawing's units, to a hundredth.

        >>> Axis(0, 10, 100, 300).at(5), Axis(1, 100, 0, 200, logarithmic=True).at(10)
        (200.0, 100.0)
        """
        low, high, one = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, one = math.log10(low), math.log10(high), math.log10(one)
        share = (one - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self, about: int = 4) -> list[float]:
        """Round values along the axis.

        >>> Axis(0, 10, 0, 1).ticks(), Axis(1, 1000, 0, 1, logarithmic=True).ticks()
        ([0.0, 5.0, 10.0], [1.0, 10.0, 100.0, 1000.0])
        """
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max(1, math.ceil((last - first) / about))
            return [10.0**power for power in range(first, last + 1, every)]
        step = _step((self.high - self.low) / about)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def linear(values: list[float], start: float, end: float) -> Axis:
    """An axis from 0, or from below it, that holds all values."""
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    return Axis(low, high if high > low else low + 1, start, end)


def fitted(values: list[float], start: float, end: float) -> Axis:
    """An axis for amounts above 0: of powers of ten where they differ much."""
    above = [value for value in values if value > 0]
    if len(above) < len(values) or not above or max(above) / min(above) < LOG_FROM:
        return linear(values, start, end)
    return Axis(10.0 ** math.floor(math.log10(min(above))), 10.0 ** math.ceil(math.log10(max(above))), start, end, True)


def _step(wanted: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(wanted))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= wanted * 0.999), 10 * power)
