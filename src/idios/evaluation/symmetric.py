"""What the continuous noises share: a density on the reals that is symmetric about 0.

Everything follows from the upper tail T(x) = Pr(X > x), x ≥ 0, and its inverse. Working with the tail rather
than with the distribution function keeps small probabilities accurate.

These are yardsticks: what is released is always drawn from a discrete distribution on the grid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import overload

import numpy as np

from idios.core.distributions.discrete_laplace import Reals, number_or_array, probabilities
from idios.core.exact import positive
from idios.errors import InvalidInput


def positive_real(value: object, name: str) -> float:
    """Read a number greater than 0 as a float; `name` is what an error message calls it.

    >>> positive_real("1/4", "scale")
    0.25
    """
    try:
        real = float(positive(value, name))
    except OverflowError:
        real = math.inf
    if not 0 < real < math.inf:
        raise InvalidInput(f"{name} must be within the range of floats, got {value!r}")
    return real


class Symmetric(ABC):
    """A continuous distribution, symmetric about 0, given by its density and its upper tail.

    Arguments are numbers or arrays; a number gives a float, an array an array of the same shape.
    """

    @abstractmethod
    def _density(self, x: Reals) -> Reals:
        """Give the density at x ≥ 0."""

    @abstractmethod
    def _tail(self, x: Reals) -> Reals:
        """Give T(x) = Pr(X > x) for x ≥ 0."""

    @abstractmethod
    def _tail_point(self, probability: Reals) -> Reals:
        """Give the x ≥ 0 with T(x) = probability, for probabilities in (0, 1/2]."""

    @property
    @abstractmethod
    def expected_absolute(self) -> float:
        """E|X|, the mean absolute error of a value with this noise."""

    @overload
    def pdf(self, x: float) -> float: ...
    @overload
    def pdf(self, x: Reals) -> Reals: ...
    def pdf(self, x: float | Reals) -> float | Reals:
        """Give the density at x."""
        return number_or_array(self._density(np.abs(np.asarray(x, dtype=np.float64))))

    @overload
    def cdf(self, x: float) -> float: ...
    @overload
    def cdf(self, x: Reals) -> Reals: ...
    def cdf(self, x: float | Reals) -> float | Reals:
        """Give Pr(X ≤ x): T(−x) for x < 0, otherwise 1 − T(x)."""
        point = np.asarray(x, dtype=np.float64)
        tail = self._tail(np.abs(point))
        return number_or_array(np.where(point < 0, tail, 1 - tail))

    @overload
    def quantile(self, p: float) -> float: ...
    @overload
    def quantile(self, p: Reals) -> Reals: ...
    def quantile(self, p: float | Reals) -> float | Reals:
        """Give the x with Pr(X ≤ x) = p, for p strictly between 0 and 1."""
        probability = probabilities(p)
        point = self._tail_point(np.minimum(probability, 1 - probability))
        return number_or_array(np.copysign(point, probability - 0.5))

    def central_interval(self, p: float) -> tuple[float, float]:
        """Give the interval about 0 that holds X with probability p."""
        half = float(self._tail_point((1 - probabilities(p)) / 2))
        return -half, half
