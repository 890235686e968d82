"""Staircase noise: the least E|X| that ε allows on the reals.

Geng and Viswanath, *The optimal noise-adding mechanism in differential privacy*, 2016. The density is
constant on stairs: with Δ the sensitivity and γ = 1/(1+e^(ε/2)),

    f(x) = a               for 0 ≤ x < γΔ
    f(x) = a·e^(−ε)        for γΔ ≤ x < Δ
    f(x) = e^(−ε)·f(x−Δ)   for x ≥ Δ,            f(−x) = f(x).

Normalised, a·Δ = (1−e^(−ε))/(2·(γ + e^(−ε)·(1−γ))); for this γ the bracket is e^(−ε/2), so a·Δ = sinh(ε/2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from idios.core.distributions.discrete_laplace import Reals
from idios.errors import InvalidInput
from idios.evaluation.symmetric import Symmetric, positive_real

_LARGEST_EPSILON = 700  # e^ε must be a float


@dataclass(frozen=True)
class Staircase(Symmetric):
    """The optimal noise for one sensitivity and ε; valid for iDP too, with the local sensitivity.

    >>> noise = Staircase(sensitivity=1, epsilon=2)
    >>> print(f"{noise.expected_absolute:.4f}, Laplace {1 / 2}")
    0.4255, Laplace 0.5
    >>> print(f"{noise.pdf(0.0) / noise.pdf(1.0):.6f} = e^2 = {math.e**2:.6f}")
    7.389056 = e^2 = 7.389056
    """

    sensitivity: float
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", positive_real(self.sensitivity, "sensitivity"))
        object.__setattr__(self, "epsilon", positive_real(self.epsilon, "epsilon"))
        if self.epsilon > _LARGEST_EPSILON:
            raise InvalidInput(f"epsilon must be at most {_LARGEST_EPSILON}, got {self.epsilon}")

    @property
    def gamma(self) -> float:
        """γ* = 1/(1+e^(ε/2)), the share of a stair's upper part that makes E|X| least."""
        return 1 / (1 + math.exp(self.epsilon / 2))

    @property
    def expected_absolute(self) -> float:
        """E|X| = Δ·e^(ε/2)/(e^ε − 1), less than Laplace's Δ/ε."""
        return self.sensitivity / (2 * math.sinh(self.epsilon / 2))

    @property
    def _height(self) -> float:
        return math.sinh(self.epsilon / 2)  # a·Δ

    @property
    def _weights(self) -> tuple[float, float, float]:
        """What lies beyond the first stair, on its upper and on its lower part: 1/2 in all."""
        decay = math.exp(-self.epsilon)
        return decay / 2, self._height * self.gamma, self._height * decay * (1 - self.gamma)

    def _stairs(self, x: Reals) -> tuple[Reals, Reals]:
        """Split x/Δ into whole stairs and a part of the next; infinity counts as a very high stair."""
        return np.divmod(np.minimum(x / self.sensitivity, 1e300), 1.0)

    def _density(self, x: Reals) -> Reals:
        stair, part = self._stairs(x)
        return self._height / self.sensitivity * np.exp(-self.epsilon * (stair + (part >= self.gamma)))

    def _tail(self, x: Reals) -> Reals:
        stair, part = self._stairs(x)
        beyond, upper, lower = self._weights
        left_upper = upper * np.maximum(1 - part / self.gamma, 0)
        left_lower = lower * np.minimum((1 - part) / (1 - self.gamma), 1)
        return np.exp(-self.epsilon * stair) * (beyond + left_lower + left_upper)

    def _tail_point(self, probability: Reals) -> Reals:
        stair = np.floor(-np.log(2 * probability) / self.epsilon)
        beyond, upper, lower = self._weights
        left = probability * np.exp(self.epsilon * stair) - beyond  # of this stair
        in_upper: Reals = self.gamma * (1 - (left - lower) / upper)
        in_lower: Reals = 1 - (1 - self.gamma) * left / lower
        # Rounding may put a probability at a stair's edge a hair outside the stair.
        part: Reals = np.clip(np.where(left > lower, in_upper, in_lower), 0, 1)
        return self.sensitivity * (stair + part)
