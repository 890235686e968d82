"""Laplace noise on the reals, the paper's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from idios.core.distributions.discrete_laplace import Reals
from idios.evaluation.symmetric import Symmetric, positive_real


@dataclass(frozen=True)
class Laplace(Symmetric):
    """Density e^(−|x|/scale)/(2·scale): moved by LS it changes by a factor of at most e^(LS/scale).

    So scale = LS/ε gives ε-iDP on the reals (scale 0, "release exactly", is not a density and is refused).

    >>> noise = Laplace(scale=1)
    >>> noise.expected_absolute, noise.cdf(0.0)
    (1.0, 0.5)
    >>> print("95 %% lies in [%.3f, %.3f]" % noise.central_interval(0.95))
    95 % lies in [-2.996, 2.996]
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_real(self.scale, "scale"))

    @property
    def expected_absolute(self) -> float:
        """E|X| = scale."""
        return self.scale

    def _density(self, x: Reals) -> Reals:
        return np.exp(-x / self.scale) / (2 * self.scale)

    def _tail(self, x: Reals) -> Reals:
        return np.exp(-x / self.scale) / 2

    def _tail_point(self, probability: Reals) -> Reals:
        return -self.scale * np.log(2 * probability)
