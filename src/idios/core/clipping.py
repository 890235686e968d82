"""Sums and averages of a column without bounds: limits are drawn, then it is a question about a bounded column.

In three releases (after Huang, Liang, Yi 2021), each ε_i-differentially private whatever the ones before gave, so that
their ε add up:

1. a centre m, the median by the inverse-sensitivity mechanism; a public point where it refuses, or where it is skipped;
2. a radius C, by AboveThreshold on |x − m|: about T values lie beyond;
3. the answer from the values clipped to [m − C, m + C], cut to what is declared: noise for the sensitivity within these
   limits, or ``noisy_moments`` where the number of values is secret.

Rules:

1. Everything but m and C is public: whether there is a centre, the division of ε, the ladder, T, what is read.
2. #{|x − m| > t} needs only the M least and the M greatest values, where counts are capped at M: if a value between
   lies beyond t, so do M at its end. Capping keeps what AboveThreshold needs (its rule 3).
3. A centre serves means and variances, and the sum of a whole table of public size. Elsewhere an arrival moves a sum by
   all of |x|, so that limits around 0 are the best ones; or from a declared bound on, where all values are of one sign.
4. The noise is that for the drawn limits, wherever they lie. So the choice of m is a matter of accuracy only.
5. On too few values (``least_size``) C comes out near 0 and the answer near m.

Clipping is a bias that the noise does not show, so the limits are told with the answer: they are a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from idios.core.centre import Centre, plan_centre
from idios.core.distributions.above_threshold import AboveThreshold, Ladder, find_runs
from idios.core.distributions.noisy_moments import NoisyQuotient, NoisyVariance
from idios.core.domain import LIMIT, Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.sampling import Source
from idios.core.statistics.averages import Mean, Sum
from idios.core.statistics.base import FINENESS, Reading, Statistic
from idios.core.statistics.spread import Variance
from idios.core.summary import Summary
from idios.errors import InvalidInput

RATIO = Fraction(11, 10)
"""β of the radius: clipping needs no fine threshold."""
OVERSHOOT = Fraction(5, 2)
"""e₁/e₂ of the radius: a radius 1.1^s times too large has a chance of about s to the minus this.

More of it takes accuracy from heavy tails, less of it makes one answer in a thousand useless.
"""
RADIUS = Fraction(2, 5)
"""The radius's share of what a centre leaves: heavy tails would like more of it, light ones less."""


@dataclass(frozen=True)
class ClippingPlan(Reading):
    """What is public of drawing limits: ``fallback`` is m where none is drawn.

    ``target`` is T, ``reach`` the M of rule 2, ``noise_epsilon`` what is left for the answer.
    """

    domain: Domain
    fallback: int
    centre: Centre | None
    ladder: Ladder
    target: int
    reach: int
    threshold_epsilon: Fraction
    count_epsilon: Fraction
    noise_epsilon: Fraction

    @property
    def epsilon(self) -> Fraction:
        """What limits and answer cost together."""
        centre = self.centre.epsilon if self.centre else Fraction(0)
        return centre + self.threshold_epsilon + self.count_epsilon + self.noise_epsilon

    @property
    def least_size(self) -> int:
        """The least number of values with which a radius is not too small nearly always, 19 times in 20."""
        return self.target + math.ceil(Fraction(math.log(20 * len(self.ladder.thresholds))) / self.count_epsilon)

    def ranks(self, moves: Moves, distance: int = 0) -> Iterable[tuple[int, int]]:
        """The run around the median, the M least and the M greatest."""
        if self.centre:
            yield from self.centre.ranks(moves)
        yield 1, self.reach
        yield moves.size - self.reach + 1, moves.size

    def draw_limits(self, summary: Summary, source: Source | None = None) -> tuple[int, int]:
        """Draw the centre and the radius: the least and the greatest grid point to clip to."""
        middle = self.find_middle(self.centre.draw(summary, source) if self.centre else None)
        return self.find_limits(middle, self.calibrate_radius(summary, middle).draw(source))

    def find_middle(self, drawn: int | None) -> int:
        """m: the drawn centre, or the public point where there is none."""
        return self.fallback if drawn is None else self.domain.clamp(drawn)

    def calibrate_radius(self, summary: Summary, middle: int) -> AboveThreshold:
        """The search for C from the values at both ends."""
        size = summary.size
        start = max(size - self.reach, min(self.reach, size))  # what both runs hold is counted once
        values = summary.run(1, min(self.reach, size)) + summary.run(start + 1, size)
        away = sorted(abs(int(value) - middle) for value in values)[-self.reach :]
        deficits = [beyond - self.target for beyond in range(len(away) + 1)]
        return AboveThreshold(
            self.ladder, find_runs(self.ladder, away, deficits), self.threshold_epsilon, self.count_epsilon
        )

    def find_limits(self, middle: int, radius: int) -> tuple[int, int]:
        """[m − C, m + C], cut to the declared bounds."""
        return self.domain.clamp(middle - radius), self.domain.clamp(middle + radius)


def plan_clipping(
    statistic: Statistic,
    domain: Domain,
    neighbours: Neighbours,
    whole: bool,
    epsilon: Fraction,
    size: int | None = None,
) -> ClippingPlan | None:
    """Plan the limits of a sum, a mean or a variance of a column without both bounds; None for anything else.

    ``whole`` says that the selection is the whole table by declaration, ``size`` how many values that has if it is
    public, which it can be under replace only.

    >>> plan = plan_clipping(Mean(), Domain(), Neighbours.REPLACE, True, Fraction(1), size=1000)
    >>> plan.centre.epsilon, plan.threshold_epsilon, plan.count_epsilon, plan.noise_epsilon
    (Fraction(3, 25), Fraction(44, 175), Fraction(88, 875), Fraction(66, 125))
    """
    if domain.bounded or not isinstance(statistic, Mean | Sum | Variance):
        return None
    adds_up = isinstance(statistic, Sum)
    served = not adds_up or (whole and size is not None and domain.low < 0 < domain.high)
    centre = plan_centre(domain, epsilon, size) if served else None
    rest = epsilon - (centre.epsilon if centre else 0)
    radius, noise = rest * RADIUS, rest * (1 - RADIUS)
    ladder = Ladder(0, LIMIT, 0, RATIO)
    count = radius / (1 + OVERSHOOT)
    target = math.ceil((2 if neighbours is Neighbours.REPLACE else 1) / noise)
    return ClippingPlan(
        domain,
        domain.clamp(0 if adds_up else domain.centre),
        centre,
        ladder,
        target,
        target + math.ceil(Fraction(math.log(len(ladder.thresholds)) + 30) / count),
        radius - count,
        count,
        noise,
    )


def calibrate_clipped(
    statistic: Statistic, summary: Summary, epsilon: Fraction, fineness: int = FINENESS
) -> NoisyQuotient | NoisyVariance | None:
    """The mechanism of values clipped to the bounds of ``summary``; None where their sensitivity is known and used."""
    domain, moves = summary.domain, summary.moves
    if domain.lower is None or domain.upper is None:
        raise InvalidInput("values are clipped to two limits")
    if isinstance(statistic, Variance):
        sums = summary.size, summary.known_total(), summary.known_squares()
        return NoisyVariance(statistic, domain.lower, domain.upper, *sums, epsilon, fineness)
    if isinstance(statistic, Mean) and not moves.whole:
        resolution = statistic.resolution(fineness)
        return NoisyQuotient(domain.lower, domain.upper, summary.size, summary.known_total(), epsilon, resolution)
    return None
