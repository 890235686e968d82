"""Discrete Laplace noise, the one that is released: whole steps of a public grid, drawn exactly.

Also called the two-sided geometric distribution (Ghosh, Roughgarden, Sundararajan 2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from idios.core import sampling
from idios.core.exact import exact, whole
from idios.errors import InvalidInput

Reals: TypeAlias = NDArray[np.float64]
Wholes = NDArray[Any]
"""An array of integers: int64, or Python's own."""

_SMALLEST = Fraction(1, 10**300)  # at scales below it X is 0 as far as floats can tell


def probabilities(p: float | Reals) -> Reals:
    """Read probabilities strictly between 0 and 1.

    >>> float(probabilities(0.5))
    0.5
    """
    array = np.asarray(p, dtype=np.float64)
    if not np.all((array > 0) & (array < 1)):
        raise InvalidInput(f"p must lie strictly between 0 and 1, got {p}")
    return array


def number_or_array(values: Reals) -> float | Reals:
    """Give what was computed for a number as a float, and for an array as it is.

    >>> number_or_array(np.array(0.5)), number_or_array(np.array([0.5]))
    (0.5, array([0.5]))
    """
    return float(values) if values.ndim == 0 else values


@dataclass(frozen=True)
class DiscreteLaplace:
    """Pr(X = k) = (1−a)/(1+a)·a^|k| with a = e^(−1/scale); scale 0 is the constant 0.

    Scale and guarantee are exact fractions. Probabilities are floats, for people to read; no draw uses them.

    >>> noise = DiscreteLaplace(Fraction(10))
    >>> noise.log_ratio(5)
    Fraction(1, 2)
    >>> noise.central_interval(0.95)
    (-30, 30)
    >>> print(f"{noise.pmf(0):.6f} {noise.cdf(0):.6f} {noise.expected_absolute:.6f}")
    0.049958 0.524979 9.983353
    >>> noise.sample(3, sampling.SeededSource(1))
    array([ -3,  -4, -15])
    """

    scale: Fraction

    def __post_init__(self) -> None:
        scale = exact(self.scale, "scale")
        if scale < 0:
            raise InvalidInput(f"scale must be at least 0, got {self.scale}")
        object.__setattr__(self, "scale", scale)

    def log_ratio(self, shift: int) -> Fraction:
        """Give the largest |ln Pr(X = k)/Pr(X + shift = k)| over all k, exactly: |shift|/scale.

        It is reached at k = 0, and ||k| − |k − shift|| ≤ |shift| elsewhere. Where the scale is 0 no shift has
        a finite ratio, and none is accepted.
        """
        distance = whole(abs(shift), "shift", least=0)
        if self.scale == 0 and distance:
            raise InvalidInput(f"shift must be 0 where the scale is 0 (no finite ratio), got {shift}")
        return distance / self.scale if distance else Fraction(0)

    @overload
    def sample(self, size: None = None, source: sampling.RandomSource | None = None) -> int: ...
    @overload
    def sample(self, size: int, source: sampling.RandomSource | None = None) -> Wholes: ...
    def sample(self, size: int | None = None, source: sampling.RandomSource | None = None) -> int | Wholes:
        """Draw exactly, one integer or an array of `size`."""
        return sampling.discrete_laplace(self.scale, size, source)

    @property
    def _rate(self) -> float:
        return float(1 / self.scale) if self.scale > _SMALLEST else math.inf

    @property
    def expected_absolute(self) -> float:
        """E|X| = 2a/(1−a²), somewhat less than the scale."""
        return -2 * math.exp(-self._rate) / math.expm1(-2 * self._rate)

    def expected_distance(self, shift: int) -> float:
        """E|X + c| = |c| + 2·E max(0, X − |c|)."""
        return abs(shift) + 2 * self.expected_beyond(abs(shift))

    def expected_beyond(self, distance: int) -> float:
        """E max(0, X − c) = ½·E|X|·e^(−c/scale), for c ≥ 0."""
        return self.expected_absolute / 2 * math.exp(-distance / self.scale) if self.scale else 0.0

    @overload
    def pmf(self, k: float) -> float: ...
    @overload
    def pmf(self, k: Wholes) -> Reals: ...
    def pmf(self, k: float | Wholes) -> float | Reals:
        """Give Pr(X = k), which is 0 where k is no whole number."""
        point = np.asarray(k, dtype=np.float64)
        mass = math.tanh(self._rate / 2) * np.exp(-self._steps(np.abs(point)))
        return number_or_array(np.where(point == np.floor(point), mass, 0.0))

    @overload
    def cdf(self, k: float) -> float: ...
    @overload
    def cdf(self, k: Wholes) -> Reals: ...
    def cdf(self, k: float | Wholes) -> float | Reals:
        """Give Pr(X ≤ k): a^(−k)/(1+a) below 0, otherwise 1 − a^(k+1)/(1+a), k rounded down."""
        point = np.floor(np.asarray(k, dtype=np.float64))
        outside = np.where(point < 0, -point, point + 1)  # the tail from this number of steps on
        tail = np.exp(-self._steps(outside)) / (1 + math.exp(-self._rate))
        return number_or_array(np.where(point < 0, tail, 1 - tail))

    def quantile(self, p: float) -> int:
        """Give the least k with Pr(X ≤ k) ≥ p, for p strictly between 0 and 1, as far as floats can tell."""
        probability = float(probabilities(p))
        if math.isinf(self._rate):
            return 0
        # Solve for the tail below or above; rounding may have missed by one.
        upper = probability > 0.5
        tail = 1 - probability if upper else probability
        distance = -float(self.scale) * (math.log(tail) + math.log1p(math.exp(-self._rate)))
        k = math.ceil(distance - 1) if upper else math.ceil(-distance)
        return next((near for near in (k - 1, k) if self.cdf(near) >= probability), k + 1)

    def central_interval(self, p: float) -> tuple[int, int]:
        """Give the least interval −k..k that holds X with probability p or more."""
        k = -self.quantile((1 - float(probabilities(p))) / 2)
        return -k, k

    def _steps(self, distance: Reals) -> Reals:
        """Give distance/scale; where the scale is 0, that is 0 at distance 0 and infinite elsewhere."""
        if math.isinf(self._rate):
            return np.where(distance == 0, 0.0, math.inf)
        return distance * self._rate
