"""Continuous noises on the reals, symmetric about 0: Laplace, staircase and the admissible noise of smooth sensitivity.

1. These are yardsticks. What is released is always drawn from a discrete distribution on the grid.
2. Everything follows from the upper tail T(x) = Pr(X > x), x ≥ 0, and its inverse: a tail keeps small probabilities
   accurate, a distribution function does not.
3. scipy is imported only inside the functions that need it, so that a comparison, which needs E|X| alone, runs without
   the extra ``evaluation``.

Laplace, the paper's own noise, has the density e^(−|x|/scale)/(2·scale).

Staircase noise (Geng and Viswanath, *The optimal noise-adding mechanism in differential privacy*, 2016) has the least
E|X| that ε allows. Its density is constant on stairs: with Δ the sensitivity and γ = 1/(1+e^(ε/2)),

    f(x) = a               for 0 ≤ x < γΔ
    f(x) = a·e^(−ε)        for γΔ ≤ x < Δ
    f(x) = e^(−ε)·f(x−Δ)   for x ≥ Δ,            f(−x) = f(x).

Normalised, a·Δ = (1−e^(−ε))/(2·(γ + e^(−ε)·(1−γ))); for this γ the bracket is e^(−ε/2), so a·Δ = sinh(ε/2).

Admissible noise (Nissim, Raskhodnikova, Smith, *Smooth sensitivity and sampling in private data analysis*, 2007) has
heavy tails; the paper compares with it. A value with β-smooth sensitivity S is released as value + (S/α)·N, where N has
the density ∝ 1/(1+|x|^γ) and (α, β) is an admissible pair: moving N by α and stretching it by e^β changes no
probability by more than a factor e^ε.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import overload

import numpy as np

from idios.core.distributions.discrete_laplace import Reals, number_or_array, probabilities
from idios.core.exact import positive
from idios.errors import InvalidInput

_LARGEST_EPSILON = 700  # e^ε must be a float
_FLAT = 1e-17  # 1/(1+t) is 1 for every smaller t, so there the density is flat


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
        """Give the probability beyond the first stair, on its upper and on its lower part: 1/2 in all."""
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
