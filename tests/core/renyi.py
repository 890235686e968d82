"""Rényi divergences from exact laws: what the enumerations of concentrated accounting compare.

What matters of two laws P and P′ is how the *loss* ln P/P′ is distributed under P. The orders are those at which it is
compared; the divergence both ways is that of the losses and of the same with P and P′ exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from idios.core.calibration import Added, ExponentialMechanism, Mechanism, Silent
from idios.core.distributions import DiscreteGaussian, DiscreteLaplace, InverseSensitivity
from idios.core.distributions.noisy_moments import NoisyQuotient, NoisyVariance
from idios.core.enclosures import exp_minus
from tests.losses import list_runs

ORDERS = (1.5, 2.0, 4.0, 16.0, 64.0)
TOLERANCE = 1e-9

Losses = list[tuple[float, float]]
"""Probabilities under P, and ln P/P′; they tell the law of the outcome, or of one of independent parts of it."""

_BITS = 400


def turn(losses: Losses) -> Losses:
    """The same with P and P′ exchanged."""
    return [(p * math.exp(-loss), -loss) for p, loss in losses]


def diverge(losses: Losses, order: float) -> float:
    """D_α(P ‖ P′) = ln Σ P·(P/P′)^(α−1)/(α−1)."""
    terms = (math.exp(math.log(p) + (order - 1) * loss) for p, loss in losses if p)
    return math.log(math.fsum(terms)) / (order - 1)


def find_share(parts: Sequence[Losses], rho: float) -> float:
    """The greatest D_α/(α·ρ) of independent parts, over all orders and both ways round; above 1 it is a breach."""
    divergences = np.zeros((2, len(ORDERS)))
    for losses in parts:
        p, loss = np.array([(p, loss) for p, loss in losses if p]).T
        logarithm = np.log(p)
        divergences += _diverge_all(logarithm, loss), _diverge_all(logarithm - loss, -loss)
    if rho == 0:
        return math.inf if divergences.max() > 1e-13 else 0.0
    return max(0.0, float((divergences / (np.array(ORDERS) * rho)).max()))


def _diverge_all(logarithm: NDArray[np.float64], loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """``diverge`` at all orders, from the logarithms of the probabilities."""
    above = np.array(ORDERS)[:, None] - 1
    return np.log(np.exp(logarithm + above * loss).sum(axis=1)) / above[:, 0]


def lose(p: Sequence[Fraction], other: Sequence[Fraction]) -> Losses:
    """Of two laws in fractions."""
    assert [bool(x) for x in p] == [bool(x) for x in other]
    return [(float(x), math.log(x / y)) for x, y in zip(p, other, strict=True) if x]


@cache
def _lose_shift(distance: int, scale: Fraction) -> Losses:
    noise = DiscreteLaplace(scale)
    ends = noise.cdf(0), noise.cdf(-distance)
    inner = [(noise.pmf(x), float(Fraction(distance - 2 * x) / scale)) for x in range(1, distance)]
    return [(ends[0], float(distance / scale)), *inner, (ends[1], -float(distance / scale))]


def lose_shift(shift: int, scale: Fraction) -> Losses:
    """Of discrete Laplace noise around two values."""
    if shift == 0:
        return [(1.0, 0.0)]
    assert scale > 0
    return _lose_shift(abs(shift), scale)


def diverge_shift(shift: int, scale: Fraction, order: float) -> float:
    """D_α of discrete Laplace noise around two values, however far apart: three geometric series.

    With q = e^(−1/b) and d the distance, P^α·P′^(1−α) is c·q^((1−α)d + |x|) at x ≤ 0, c·q^(αd + x − d) at x ≥ d and
    c·q^((1−α)d + (2α−1)x) between, c = (1−q)/(1+q).
    """
    if shift == 0:
        return 0.0
    rate, away = float(1 / scale), float(abs(shift) / scale)
    inner = math.expm1(-rate) / math.expm1(-(2 * order - 1) * rate) * math.exp(-(2 * order - 1) * rate)
    inner *= -math.expm1(-(2 * order - 1) * (away - rate))
    total = 1 + math.exp(-(2 * order - 1) * away) + inner
    return (math.log(total / (1 + math.exp(-rate))) + (order - 1) * away) / (order - 1)


@cache
def _lose_gaussian(distance: int, noise: DiscreteGaussian) -> Losses:
    """Out to where order 64 has its mass, (α − 1)·distance from the value, and 12σ beyond."""
    most = math.ceil(max(ORDERS)) * distance + 12 * (math.isqrt(math.ceil(noise.variance)) + 1)
    points = range(-most, most + 1)
    return [
        (float(p), float(Fraction(distance * (distance - 2 * x)) / (2 * noise.variance)))
        for x, p in zip(points, noise.pmf(np.array(points)), strict=True)
    ]


def lose_noise(shift: int, noise: DiscreteLaplace | DiscreteGaussian) -> Losses:
    """Of noise around two values."""
    if isinstance(noise, DiscreteLaplace):
        return lose_shift(shift, noise.scale)
    if shift == 0:
        return [(1.0, 0.0)]
    assert noise.variance > 0
    return _lose_gaussian(abs(shift), noise)


@cache
def _power(exponent: Fraction) -> int:
    return exp_minus(exponent, _BITS)[0]


def lose_inverse(one: InverseSensitivity, two: InverseSensitivity) -> Losses:
    """Plateau by plateau, and the refusal; to 100 digits until floats are made of it."""
    assert (one.measure, one.refusal, one.epsilon) == (two.measure, two.refusal, two.epsilon)
    masses: dict[tuple[int, int], int] = {}
    for weight, *distances in _overlap(one, two):
        masses[distances[0], distances[1]] = masses.get((distances[0], distances[1]), 0) + weight
    refusal = one.refusal * one.measure.denominator
    classes = [(refusal, len(one.balls), len(two.balls)), *((w, u + 1, v + 1) for (u, v), w in masses.items())]
    rate = one.epsilon / 2
    powers = {u: _power(rate * u) for _, *both in classes for u in both}
    total, other = (sum(w * powers[both[place]] for w, *both in classes) for place in (0, 1))
    shift = math.log(other / total)
    return [(w * powers[u] / total, shift + float(rate) * (v - u)) for w, u, v in classes]


def _overlap(one: InverseSensitivity, two: InverseSensitivity) -> Iterator[tuple[int, int, int]]:
    """The mass of every run of points on which both distances are constant, and these."""
    here, there = list_runs(one), list_runs(two)
    i = j = 0
    while i < len(here) and j < len(there):
        first, last = max(here[i][0], there[j][0]), min(here[i][1], there[j][1])
        if first <= last:
            least, most = one.measure.sum_below([first, last + 1])
            yield most - least, here[i][3], there[j][3]
        i, j = i + (here[i][1] == last), j + (there[j][1] == last)


def lose_mechanisms(one: Mechanism, two: Mechanism) -> list[Losses]:
    """Of the mechanisms of two neighbours, in independent parts."""
    if isinstance(one, Silent) and isinstance(two, Silent):
        return []
    if isinstance(one, Added) and isinstance(two, Added):
        assert one.noise == two.noise
        return [lose_noise(one.value - two.value, one.noise)]
    if isinstance(one, InverseSensitivity) and isinstance(two, InverseSensitivity):
        return [lose_inverse(one, two)]
    if isinstance(one, ExponentialMechanism) and isinstance(two, ExponentialMechanism):
        points = range(one.first, one.first + len(one.behind))
        return [[(one.pmf(point), math.log(one.pmf(point) / two.pmf(point))) for point in points]]
    if isinstance(one, NoisyQuotient) and isinstance(two, NoisyQuotient):
        return [
            lose_shift(one.deviation - two.deviation, one.sum_noise.scale),
            lose_shift(one.size - two.size, one.count_noise.scale),
        ]
    assert isinstance(one, NoisyVariance)
    assert isinstance(two, NoisyVariance)
    moved = [a - b for a, b in zip(one.deviations, two.deviations, strict=True)]
    return [lose_shift(shift, noise.scale) for shift, noise in zip(moved, one.noises, strict=True)]


def find_key(one: Mechanism, two: Mechanism) -> Hashable:
    """What the losses of two mechanisms depend on, up to their order: for noise around values, how far these are."""
    if isinstance(one, Added) and isinstance(two, Added):
        return abs(one.value - two.value), one.noise, two.noise
    return one, two


@cache
def find_shift_share(shifts: tuple[tuple[int, DiscreteGaussian], ...], rho: Fraction) -> float:
    """``find_share`` of independent noises around values that are so far apart."""
    return find_share([lose_noise(shift, noise) for shift, noise in shifts], float(rho))
