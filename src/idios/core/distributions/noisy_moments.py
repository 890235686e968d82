"""A mean or a variance of values within limits, of which the number is secret too: noisy sums over a noisy count.

The limits lo ≤ hi are public (declared, or drawn before: ``idios.core.clipping``). With m the grid point in their
middle, C = hi − m (so that m − lo ≤ C) and y = x − m, every |y| ≤ C. With discrete Laplace noise are released

    for a mean       S = Σy, scale 2C/ε,                                        N = the count, scale 2/ε
    for a variance   S = Σy, scale 4C/ε,   Z = Σ(2y² − C²), scale 4C²/ε,        N = the count, scale 2/ε

and what is answered follows from these by post-processing, on the answer's grid and within its limits: m + S/N, or
(Z/N + C²)/2 − (S/N)², or its root; NULL where N < 1.

Theorem. Each is ε-differentially private, under replace and under add-remove.
Proof. |y| ≤ C and |2y² − C²| ≤ C². An arrival or a departure moves Σy by at most C, Σ(2y² − C²) by at most C² and the
count by 1: it costs ε/2 + ε/2, or ε/4 + ε/4 + ε/2. A replacement moves the sums by twice as much at most and the count
not at all: it costs ε, or ε/2 + ε/2. So under replace the count is free. (Where C = 0 all sums are 0.) ∎

Intervals. S, Z and N are private releases by the theorem, and the scales of their noises are public. So they may be
kept beside the answer, and what they tell of the truth is post-processing, and free, at any confidence and whenever it
is asked for. Of d of them each noise is within its own k with 1 − 0.05/d, so all are with 95 %; for an answer that is
one of p numbers whose intervals are to hold with 95 % all together, with 1 − 0.05/dp. Then the true sums lie in S ± k
and Z ± k, the true number of values n in N ± k, and n ≥ 1 where there is a mean at all: the interval is from the least
to the greatest answer that these allow, of the statistic on the answer's grid.

- A quotient D/n is least at the least D, over the greatest n where that D is positive and over the least n otherwise;
  the greatest one is its mirror image.
- With u = 1/n the variance is C²/2 + (Z/2)·u − D²·u². This falls in D² and rises in Z, and is concave in u: its least
  value is at an end of u, its greatest at an end or at u = Z/4D².

Where the limits were drawn, values may lie beyond them. ``Beyond`` says of how many that is allowed for, and how far: S
may then be less by k·b and greater by k·a, and Z greater by k·2((C + max(a, b))² − C²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from idios.core.distributions.discrete_gaussian import DiscreteGaussian
from idios.core.distributions.discrete_laplace import DiscreteLaplace
from idios.core.question_memory import remembered
from idios.core.sampling import RandomSource
from idios.core.statistics.base import FINENESS
from idios.core.statistics.spread import Variance
from idios.errors import InvalidInput

Reals = NDArray[np.float64]
Interval: TypeAlias = tuple[int, int]

CONFIDENCE = 0.95


@remembered(256)
def find_half_width(noise: DiscreteLaplace | DiscreteGaussian, parts: int = 1) -> int:
    """The least k that noise stays within, with so much probability that ``parts`` noises all do with 95 %.

    It is remembered for the next cell, which mostly has the same noise. Scales are public here, so times may follow.

    >>> find_half_width(DiscreteLaplace(Fraction(10))), find_half_width(DiscreteLaplace(Fraction(10)), parts=2)
    (30, 37)
    """
    return noise.central_interval(1 - (1 - CONFIDENCE) / parts)[1]


class Beyond(NamedTuple):
    """So many values may lie beyond the limits, on average so far ``below`` the lower and ``above`` the upper one."""

    many: int
    below: int
    above: int

    @property
    def lost(self) -> tuple[int, int]:
        """What a sum may have lost by clipping, below and above."""
        return self.many * self.below, self.many * self.above


NOTHING = Beyond(0, 0, 0)
"""Nothing was clipped, or an interval of the clipped values alone is asked for."""


class _Limited:
    """Values within the limits low..high."""

    low: int
    high: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.low > self.high or self.epsilon <= 0:
            raise InvalidInput("noisy sums need limits (low, high) with low ≤ high, and an epsilon above 0")

    @property
    def centre(self) -> int:
        """m, rounded down, so that C = hi − m is at least m − lo."""
        return (self.low + self.high) // 2

    @property
    def radius(self) -> int:
        """C."""
        return self.high - self.centre

    @property
    def count_noise(self) -> DiscreteLaplace:
        """The noise of the count."""
        return DiscreteLaplace(2 / self.epsilon)

    def counts_nothing(self, count: int) -> bool:
        """Whether a noisy count is no more than its noise, so that there may be next to no value."""
        return count <= find_half_width(self.count_noise)


@dataclass(frozen=True)
class NoisyQuotient(_Limited):
    """The mean of ``size`` values within the limits that add up to ``total``, all in steps of the column.

    ``resolution`` is how many steps of the answer's grid make one of the column.

    >>> mean = NoisyQuotient(0, 9, size=1000, total=4200, epsilon=Fraction(1), resolution=100)
    >>> mean.centre, mean.sum_noise.scale, mean.count_noise.scale
    (4, Fraction(10, 1), Fraction(2, 1))
    >>> mean.place(200, 1000), mean.place(200, 0), mean.place(10**6, 1000)
    (420, None, 900)
    """

    low: int
    high: int
    size: int
    total: int
    epsilon: Fraction
    resolution: int = 1

    @property
    def sum_noise(self) -> DiscreteLaplace:
        """The noise of the sum."""
        return DiscreteLaplace(2 * self.radius / self.epsilon)

    @property
    def deviation(self) -> int:
        """Σy."""
        return self.total - self.size * self.centre

    def place(self, deviation: int, count: int) -> int | None:
        """The answer to a noisy sum and a noisy count."""
        return None if count < 1 else self._round(deviation, count)

    def _round(self, deviation: int, count: int) -> int:
        point = (2 * self.resolution * (deviation + count * self.centre) + count) // (2 * count)
        return min(max(point, self.low * self.resolution), self.high * self.resolution)

    def draw(self, source: RandomSource | None = None) -> int | None:
        """One exact draw; None where the noisy count is below 1."""
        return self.place(*self.draw_sums(source))

    def draw_sums(self, source: RandomSource | None = None) -> tuple[int, int]:
        """The noisy sum and count that a draw follows from."""
        deviation = self.deviation + self.sum_noise.sample(source=source)
        return deviation, self.size + self.count_noise.sample(source=source)

    def find_interval(self, deviation: int, count: int, *, parts: int = 1, beyond: Beyond = NOTHING) -> Interval | None:
        """Where the true mean lies with 1 − 0.05/parts, given a noisy sum and count; nothing where there is no answer.

        It needs nothing of the data: neither ``size`` nor ``total``.

        >>> mean = NoisyQuotient(0, 9, size=1000, total=4200, epsilon=Fraction(1), resolution=100)
        >>> mean.find_interval(200, 1000), mean.find_interval(-200, 1000), mean.find_interval(0, 3)
        ((416, 424), (376, 384), (0, 900))
        >>> mean.find_interval(200, 1000, parts=20)
        (413, 427)
        """
        if count < 1:
            return None
        far, few = find_half_width(self.sum_noise, 2 * parts), find_half_width(self.count_noise, 2 * parts)
        least, most = max(1, count - few), count + few
        low, high = deviation - far - beyond.lost[0], deviation + far + beyond.lost[1]
        return self._round(low, most if low > 0 else least), self._round(high, least if high > 0 else most)

    def pmf(self, point: int | None) -> float:
        """The probability of an answer, as far as floats can tell.

        Given a count c, an answer p strictly inside stands for the sums with c·(2p − 1) ≤ 2·r·(S + c·m) < c·(2p + 1).
        """
        if point is None:
            return float(self.count_noise.cdf(-self.size))
        low, high = self.low * self.resolution, self.high * self.resolution
        if not low <= point <= high:
            return 0.0
        likely = math.ceil(40 * self.count_noise.scale)
        probability = 0.0
        for count in range(max(1, self.size - likely), self.size + likely + 1):
            shift = count * self.centre + self.deviation
            first = -(-count * (2 * point - 1) // (2 * self.resolution)) - shift
            following = -(-count * (2 * point + 1) // (2 * self.resolution)) - shift
            below = 0.0 if point == low else float(self.sum_noise.cdf(first - 1))
            upto = 1.0 if point == high else float(self.sum_noise.cdf(following - 1))
            probability += float(self.count_noise.pmf(count - self.size)) * max(0.0, upto - below)
        return probability

    def expected_absolute(self, value: int, low: int | float = -math.inf, high: int | float = math.inf) -> float:
        """E|answer − value|, given that there is an answer, clamped to low..high."""
        sums = float(self.deviation) + _list_strata(self.sum_noise, 201)
        counts = np.maximum(float(self.size) + _list_strata(self.count_noise, 201), 1)
        answers = self.centre + sums / counts[:, None]
        answers = np.clip(answers, self.low, self.high) * self.resolution
        return float(np.abs(np.clip(answers, float(low), float(high)) - value).mean())


@dataclass(frozen=True)
class NoisyVariance(_Limited):
    """The variance, or the standard deviation, of ``size`` values within the limits; ``squares`` is the sum of theirs.

    ``statistic`` places a variance on the answer's grid, ``fineness`` is that of the grid.

    >>> spread = NoisyVariance(Variance(), -5, 5, size=100, total=50, squares=400, epsilon=Fraction(1), fineness=10)
    >>> spread.deviations, [float(noise.scale) for noise in spread.noises]
    ((50, -1700, 100), [20.0, 100.0, 2.0])
    >>> spread.place(50, -1700, 100), spread.place(50, -10**6, 100), spread.place(0, 0, 0)  # 4 − ¼
    (38, 0, None)
    """

    statistic: Variance
    low: int
    high: int
    size: int
    total: int
    squares: int
    epsilon: Fraction
    fineness: int = FINENESS

    @property
    def noises(self) -> tuple[DiscreteLaplace, DiscreteLaplace, DiscreteLaplace]:
        """Those of S, Z and N."""
        scales = 4 * self.radius / self.epsilon, 4 * self.radius**2 / self.epsilon, 2 / self.epsilon
        return DiscreteLaplace(scales[0]), DiscreteLaplace(scales[1]), DiscreteLaplace(scales[2])

    @property
    def deviations(self) -> tuple[int, int, int]:
        """Σy, Σ(2y² − C²) and the count."""
        squares = self.squares - 2 * self.centre * self.total + self.size * self.centre**2
        return self.total - self.size * self.centre, 2 * squares - self.size * self.radius**2, self.size

    def place(self, deviation: int, squares: int, count: int) -> int | None:
        """The answer to noisy S, Z and N."""
        return None if count < 1 else self._round(deviation**2, squares, Fraction(1, count))

    def _round(self, squared_deviation: int, squares: int, share: Fraction) -> int:
        """C²/2 + (Z/2)·u − D²·u² within its limits, on the answer's grid; monotone in the first."""
        most = Fraction(self.radius**2)
        variance = (squares * share + most) / 2 - squared_deviation * share**2
        return int(self.statistic.place(min(max(variance, Fraction(0)), most), self.fineness))

    def draw(self, source: RandomSource | None = None) -> int | None:
        """One exact draw; None where the noisy count is below 1."""
        return self.place(*self.draw_sums(source))

    def draw_sums(self, source: RandomSource | None = None) -> tuple[int, int, int]:
        """The noisy S, Z and N that a draw follows from."""
        (total, squares, size), noises = self.deviations, self.noises
        deviation, squares = total + noises[0].sample(source=source), squares + noises[1].sample(source=source)
        return deviation, squares, size + noises[2].sample(source=source)

    def find_interval(
        self, deviation: int, squares: int, count: int, *, parts: int = 1, beyond: Beyond = NOTHING
    ) -> Interval | None:
        """Where the true statistic lies with 1 − 0.05/parts, given noisy S, Z and N; nothing where there is no answer.

        It needs nothing of the data: none of ``size``, ``total`` and ``squares``.

        >>> spread = NoisyVariance(Variance(), -5, 5, size=9000, total=0, squares=9 * 9000, epsilon=Fraction(1))
        >>> [round(end / FINENESS, 2) for end in spread.find_interval(*spread.deviations)]
        [8.97, 9.03]
        """
        if count < 1:
            return None
        far, farther, few = (find_half_width(noise, 3 * parts) for noise in self.noises)
        far, reach = far + max(beyond.lost), max(beyond.below, beyond.above)
        most = squares + farther + beyond.many * 2 * ((self.radius + reach) ** 2 - self.radius**2)
        shares = [Fraction(1, max(1, count - few)), Fraction(1, count + few)]
        nearest = max(0, abs(deviation) - far) ** 2
        vertex = Fraction(most, 4 * nearest) if nearest else shares[0]
        return (
            min(self._round((abs(deviation) + far) ** 2, squares - farther, share) for share in shares),
            max(self._round(nearest, most, share) for share in (*shares, min(max(vertex, shares[1]), shares[0]))),
        )

    def expected_absolute(self, value: int, low: int | float = -math.inf, high: int | float = math.inf) -> float:
        """E|answer − value|, given that there is an answer, clamped to low..high."""
        sums, squares, counts = (
            float(exact) + _list_strata(noise, 31) for exact, noise in zip(self.deviations, self.noises, strict=True)
        )
        counts = np.maximum(counts, 1)[:, None, None]
        most = float(self.radius) ** 2
        variances = np.clip((squares[:, None] / counts + most) / 2 - (sums / counts) ** 2, 0, most)
        answers = (variances if self.statistic.degree == 2 else np.sqrt(variances)) * self.fineness
        return float(np.abs(np.clip(answers, float(low), float(high)) - value).mean())


def _list_strata(noise: DiscreteLaplace, count: int) -> Reals:
    """The middle quantiles of equally likely strata, of a continuous noise of the same scale."""
    upper = (np.arange(count) + 0.5) / count
    return float(noise.scale) * np.where(upper < 0.5, np.log(2 * upper), -np.log(2 - 2 * upper))
