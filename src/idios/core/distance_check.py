"""How many records an answer is away from the truth: a second release, about the answer that was given.

The scale of the noise is secret at individual, its shape at differential. How far a given number t lies from the truth,
counted in records, is not: it is the inverse sensitivity u(t), the least number of changed records that could make t
true. With its sign it is

    s(t) = 0 where u = 0, 2u − 1 where t is too high, −(2u − 1) where it is too low,   u at most a public ``reach``

Proposition. Envelopes being nested, s moves by at most 2 between neighbours, whatever the data and whatever t.
Proof. u moves by at most 1: [lo_i(D), hi_i(D)] lies within [lo_{i+1}(D′), hi_{i+1}(D′)], and the same with the tables
exchanged; cutting at ``reach`` keeps that. So s moves by at most 2 where the sign stays, and by 1 to or from u = 0.
Let t be too high at D, t > f(D), and too low at D′. Then f(D) ≥ lo_1(D′) and so t > lo_1(D′): u(D′) = 1, and by
exchanging the tables u(D) = 1. From 1 to −1 is 2. ∎

So discrete Laplace noise of scale 2/ε is ε-private, for selections of secret size, for ties, under both notions and at
every level. In records that is a scale of 1/ε. Gaussian noise of variance Δ₂²/2ρ is ρ-concentrated, Δ₂² = 4 for one
cell and 8 for the two that a replaced record may touch. t was drawn before, so it may be anything; what is stated about
it holds for this table, not for a population.

The rank of t alone would not do: a perfect median of tied values would be called the 40th percentile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from idios.core.concentrated import Rho, pure_rho
from idios.core.distributions import DiscreteGaussian, DiscreteLaplace
from idios.core.distributions.discrete_gaussian import gaussian_variance
from idios.core.distributions.noisy_moments import find_half_width
from idios.core.neighbours import Moves, Neighbours
from idios.core.sampling import RandomSource
from idios.core.statistics.base import Reading, Statistic
from idios.core.summary import Summary

FARTHEST = 1000
"""How many records off are told apart at most, where the mechanism itself does not look farther."""
FARTHEST_SPLITS = 50
"""The same where an envelope takes long far out."""


@dataclass(frozen=True)
class DistanceCheck:
    """What a drawn value is checked with: ε in one cell, or with Gaussian noise ρ over all cells and Δ₂²."""

    epsilon: Fraction
    reach: int
    rho: Fraction | None = None
    squared: int = 4

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """The noise of s."""
        if self.rho is None:
            return DiscreteLaplace(2 / self.epsilon)
        return DiscreteGaussian(gaussian_variance(Fraction(self.squared), self.rho))

    def measure(self, statistic: Statistic, summary: Summary, point: Fraction, fineness: int) -> int:
        """s of a point, given in steps of the answer's grid; it need not lie on it."""
        # with all its values gone, a statistic that needs some is anything in its range; counts and sums never are
        farthest = min(self.reach, summary.size + 1) if statistic.least_size else self.reach
        envelope = statistic.envelope(summary, farthest, fineness)
        too_high = False
        for distance, (low, high) in enumerate(zip(envelope.lows, envelope.highs, strict=True)):
            if low <= point <= high:
                return _sign(distance, too_high)
            too_high = point > high
        return _sign(self.reach, too_high)

    def draw(
        self, statistic: Statistic, summary: Summary, point: Fraction, fineness: int, source: RandomSource | None = None
    ) -> int:
        """s of a point, with noise."""
        return self.measure(statistic, summary, point, fineness) + self.noise.sample(source=source)

    def find_rho(self, neighbours: Neighbours, whole_table: bool) -> Rho:
        """What it loses in one cell; ``neighbours`` is the notion that its envelope is of."""
        entering = pure_rho(self.epsilon) if self.rho is None else 4 * self.rho / self.squared
        fixed = neighbours is Neighbours.REPLACE and whole_table
        changing = entering if neighbours is Neighbours.REPLACE else 4 * entering
        return Rho(Fraction(0) if fixed else entering, changing)

    def bound(self, noisy: int, parts: int = 1) -> tuple[int | None, int | None]:
        """From how many records too low (negative) to how many too high an answer is, given its noisy s.

        This holds with 95 % of ``parts`` such statements together. None is an end beyond the reach: so many records off
        or more.

        >>> check = DistanceCheck(Fraction(1, 2), reach=20)
        >>> check.bound(1), check.bound(25), check.bound(-70), check.bound(25, parts=5)
        ((-6, 7), (7, 19), (None, -20), (4, None))
        """
        half = find_half_width(self.noise, parts)
        least, most = _count_records(noisy - half), -_count_records(-noisy - half)
        if least > most:  # no s lies in between, so what lies on both sides
            least, most = most, least
        return (
            None if least <= -self.reach else min(least, self.reach),
            None if most >= self.reach else max(most, -self.reach),
        )


@dataclass(frozen=True)
class Both(Reading):
    """What a mechanism reads, and what the check of its answer does."""

    first: Reading
    second: Reading

    def ranks(self, moves: Moves, distance: int) -> Iterable[tuple[int, int]]:
        """The runs of ranks of both."""
        return chain(self.first.ranks(moves, distance), self.second.ranks(moves, distance))


def find_reach(statistic: Statistic, epsilon: Fraction, distance: int) -> int:
    """How many records off are told apart: as far as the mechanism looks, else some 50 times the noise of the check."""
    farthest = FARTHEST_SPLITS if statistic.tries_splits else FARTHEST
    return max(distance, min(math.ceil(50 / epsilon), farthest))


def _sign(distance: int, too_high: bool) -> int:
    if distance == 0:
        return 0
    return 2 * distance - 1 if too_high else 1 - 2 * distance


def _count_records(signed: int) -> int:
    """The least number of records too high, negative where too low, whose s is so much or more."""
    if signed > 0:
        return signed // 2 + 1
    return -((1 - signed) // 2)
