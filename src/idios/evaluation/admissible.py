"""The heavy-tailed noise of smooth sensitivity, the baseline that the paper compares with.

Nissim, Raskhodnikova, Smith, *Smooth sensitivity and sampling in private data analysis*, 2007. A value with
β-smooth sensitivity S is released as value + (S/α)·N, where N has the density below with scale 1 and (α, β)
is an admissible pair: moving N by α and stretching it by e^β changes no probability by more than e^ε.

scipy is imported by the two functions that need it, so that a comparison, which needs E|N| alone, runs without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from idios.core.distributions.discrete_laplace import Reals
from idios.errors import InvalidInput
from idios.evaluation.symmetric import Symmetric, positive_real

_FLAT = 1e-17  # 1/(1+t) is 1 for every smaller t, so there the density is flat


@dataclass(frozen=True)
class Admissible(Symmetric):
    """Density ∝ 1/(1+|x/scale|^γ), γ > 1; its integral is 2·scale·(π/γ)/sin(π/γ).

    With t = |x/scale|^γ, Pr(|X| ≤ |x|) = I(1/γ, 1−1/γ; t/(1+t)), I the regularised incomplete beta function.
    For γ = 2 it is the Cauchy distribution.

    >>> print("95 %% lies in [%.2f, %.2f]" % Admissible(gamma=2, scale=8).central_interval(0.95))
    95 % lies in [-101.65, 101.65]
    >>> Admissible(gamma=2).expected_absolute
    inf
    """

    gamma: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _exponent(self.gamma))
        object.__setattr__(self, "scale", positive_real(self.scale, "scale"))

    @property
    def expected_absolute(self) -> float:
        """E|X| = scale/(2·cos(π/γ)) for γ > 2, otherwise infinite."""
        return self.scale / (2 * math.cos(math.pi / self.gamma)) if self.gamma > 2 else math.inf

    @property
    def _peak(self) -> float:
        return math.sin(math.pi / self.gamma) / (2 * math.pi / self.gamma)  # the density at 0 for scale 1

    def _density(self, x: Reals) -> Reals:
        with np.errstate(over="ignore"):  # a power too large for a float is a density of 0
            density: Reals = self._peak / self.scale / (1 + (x / self.scale) ** self.gamma)
        return density

    def _tail(self, x: Reals) -> Reals:
        from scipy import special

        z, inverse = x / self.scale, 1 / self.gamma
        with np.errstate(over="ignore"):
            t = z**self.gamma
        # From 0 to x where t is small, from x on where it is large, so that nothing small is a difference.
        near = np.minimum(t, 1)
        inner = np.where(t < _FLAT, 2 * self._peak * z, special.betainc(inverse, 1 - inverse, near / (1 + near)))
        outer = special.betainc(1 - inverse, inverse, 1 / (1 + t))
        return np.where(t < 1, 1 - inner, outer) / 2

    def _tail_point(self, probability: Reals) -> Reals:
        from scipy import special

        inverse, inner, outer = 1 / self.gamma, 1 - 2 * probability, 2 * probability
        flat = inner / (2 * self._peak)
        near = special.betaincinv(inverse, 1 - inverse, inner)  # t/(1+t)
        far = special.betaincinv(1 - inverse, inverse, outer)  # 1/(1+t)
        with np.errstate(divide="ignore", over="ignore"):  # a point too far for a float is infinite
            t = np.where(near < 0.5, near / (1 - near), (1 - far) / far)
            point: Reals = np.where(flat**self.gamma < _FLAT, flat, t**inverse)
        return self.scale * point


def paper_pair(gamma: float, epsilon: float) -> tuple[float, float]:
    """Give the paper's (α, β) = (ε/4γ, ε/γ), claimed for every γ > 1.

    It is loose, and at ε = 1 fails below γ ≈ 1.18 and above γ ≈ 7.44 (docs/errata.md, 5).

    >>> paper_pair(2, 1)
    (0.125, 0.5)
    """
    exponent, loss = _exponent(gamma), positive_real(epsilon, "epsilon")
    return loss / (4 * exponent), loss / exponent


def tight_pair(gamma: float, epsilon: float) -> tuple[float, float]:
    """Give the fair (α, β): (ε/2, ε/2) for γ = 2 and (0.315·ε, ε/4) for γ = 3.

    A move by α costs at most α·max |(ln f)′| = α·(γ−1)^((γ−1)/γ), a stretch by e^β at most β·(γ−1): about ε/2
    each, and together less than ε, since no point is the worst for both.

    >>> tight_pair(3, 1)
    (0.315, 0.25)
    """
    loss = positive_real(epsilon, "epsilon")
    if gamma == 2:
        return loss / 2, loss / 2
    if gamma == 3:
        return 0.315 * loss, loss / 4
    raise InvalidInput(f"gamma must be 2 or 3 for a tight pair, got {gamma!r}; paper_pair takes any gamma > 1")


def _exponent(gamma: object) -> float:
    number = positive_real(gamma, "gamma")
    if number <= 1:
        raise InvalidInput(f"gamma must be greater than 1, or the density has no integral; got {gamma!r}")
    return number
