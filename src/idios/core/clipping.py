"""Sums and averages of a column without bounds: limits are drawn, then it is a question about a bounded column.

In four releases (after Huang, Liang, Yi 2021), each ε_i-differentially private whatever the ones before gave, so that
their ε add up:

1. a centre m, the median by the inverse-sensitivity mechanism; a public point where it refuses, or where it is skipped;
2. a radius C, by AboveThreshold on |x − m|: about T values lie beyond;
3. how many values lie beyond the limits, how many beyond a quarter of C, and how many there are where that is secret:
   counts with noise;
4. the answer from the values clipped to [m − C, m + C], cut to what is declared: noise for the sensitivity within these
   limits, or ``noisy_moments`` where the number of values is secret.

Rules:

1. Everything but what is drawn is public: whether there is a centre, the division of ε, the ladder, T, what is read.
2. #{|x − m| > t} needs only the M least and the M greatest values, where counts are capped at M: if a value between
   lies beyond t, so do M at its end. Capping keeps what AboveThreshold needs (its rule 3), and a count of values beyond
   a distance, each end capped at M, still moves by at most 1 when a record is replaced, enters or leaves.
3. A centre serves means and variances, and the sum of a whole table of public size. Elsewhere an arrival moves a sum by
   all of |x|, so that limits around 0 are the best ones; or from a declared bound on, where all values are of one sign.
4. The noise is that for the drawn limits, wherever they lie. So the choice of m is a matter of accuracy only.
5. *Cells share their limits.* Centre, radius and counts are drawn once, from the records of all cells together, and
   every cell is clipped alike. Proof of ε: a record that moves between cells stays in the union, where at most its
   value changes: one replacement, which costs what an ungrouped question would pay for it, not twice as much. Given the
   limits, cells are disjoint: it leaves one and enters another, at half of the noise's ε each. So with ``parts`` the
   number of cells that a record touches, all cost ε_limits + parts·ε_noise, the ``parts``-fold of ``epsilon``. ∎
6. What clipping takes away is a bias that no noise shows. The interval of an answer is widened by what it takes if the
   clipped values lie, on average, at most twice as far from the centre as the limits (``DrawnLimits.allow``).
7. Whether they do, the second count tells: where values thin out as a power of their distance, t^(−α), there are 4^α
   times as many beyond a quarter of the limits, and those beyond the limits are on average α/(α − 1) times as far out.
   Where it is less than ``STEEP`` times as many as may be clipped, nothing is told of how far off an answer is
   (``crowded``). Where it is no more than that, the limits lie below all values there are, or have found nothing, and
   there is no answer (``collapsed``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from idios.core.centre import Centre, plan_centre
from idios.core.distributions.above_threshold import AboveThreshold, Ladder, find_runs
from idios.core.distributions.discrete_laplace import DiscreteLaplace
from idios.core.distributions.noisy_moments import Beyond, NoisyQuotient, NoisyVariance
from idios.core.domain import LIMIT, Domain
from idios.core.neighbours import Moves, Neighbours
from idios.core.sampling import RandomSource
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
RADIUS = Fraction(3, 10)
"""The radius's share of what a centre leaves, where the number of values is secret."""
LEAST_RADIUS, MOST_RADIUS = Fraction(1, 4), Fraction(2, 5)
"""Where it is public the share is fitted to it: more helps few values, and clips fewer of a heavy tail."""
FOUND = 1_000
"""e₂·n from which on the radius needs no greater share."""
TALLY, SIZE = Fraction(1, 9), Fraction(1, 24)
"""The shares of what a centre leaves for each count of values beyond a distance, and of all, where that is secret."""
SHARED = Fraction(2, 3)
"""What is left of these shares where a record touches two cells: limits are paid for once, noise is in both."""
COLLAPSED, MANY = Fraction(1, 4), Fraction(1, 50)
"""The shares of clipped values from which on limits have found nothing, and an interval would mislead."""
STEEP = 7
"""How many times as many values as may be clipped lie beyond a quarter of the limits where a tail is thin, at least.

Of as many as are clipped it would be 16, for α = 2. About twice as many may be; fitted by simulation.
"""
LIKELY_NOISE = Fraction(3, 2)
"""How many more clipped values are allowed for than counted, in scales of the noise: nearly nine times in ten."""
MEAN_OF_FEW = 4
"""So many more clipped values are allowed for, as the mean of few is easily greater than it is in the long run."""


class DrawnLimits(NamedTuple):
    """The limits that values are clipped to, in steps of the column, and noisy counts.

    Those are of ``clipped`` values, of values ``beyond_quarter`` of the way to the limits, and of all. ``spread`` is
    how many more clipped values are allowed for than counted, which is public.

    >>> drawn = DrawnLimits(0, 500, clipped=12, beyond_quarter=300, size=4000, spread=10)
    >>> drawn.collapsed, drawn.crowded, drawn.allow(Domain(lower=0))
    (False, False, Beyond(many=26, below=0, above=500))
    >>> drawn._replace(clipped=100).crowded, drawn._replace(clipped=1000).collapsed
    (True, True)
    >>> drawn._replace(beyond_quarter=60).crowded, drawn._replace(beyond_quarter=20).collapsed
    (True, True)
    """

    low: int
    high: int
    clipped: int
    beyond_quarter: int
    size: int
    spread: int

    @property
    def tallies(self) -> tuple[int, int, int]:
        """The noisy counts."""
        return self.clipped, self.beyond_quarter, self.size

    @property
    def most_clipped(self) -> int:
        """How many values may be clipped, as far as their noisy count tells."""
        return max(self.clipped, 0) + self.spread

    @property
    def collapsed(self) -> bool:
        """Whether the limits have found too little to answer within them."""
        found = self.low < self.high and self.beyond_quarter > self.most_clipped
        return not found or self.clipped > COLLAPSED * self.size

    @property
    def many(self) -> bool:
        """Whether many values are clipped."""
        return self.clipped > MANY * self.size

    @property
    def crowded(self) -> bool:
        """Whether so many values are clipped, or may lie so far out, that no interval allows for it."""
        return self.many or self.beyond_quarter < STEEP * self.most_clipped

    def allow(self, domain: Domain) -> Beyond:
        """How many values may lie beyond the limits, and how far on average: nothing beyond a declared bound."""
        below, above = self.low != domain.low, self.high != domain.high
        reach = self.high - self.low if not (below and above) else -((self.low - self.high) // 2)
        return Beyond(self.most_clipped + MEAN_OF_FEW, below * reach, above * reach)


@dataclass(frozen=True)
class ClippingPlan(Reading):
    """What is public of drawing limits: ``fallback`` is m where none is drawn.

    ``target`` is T, ``reach`` the M of rule 2, enough for the counts to tell a thin tail whatever ε is;
    ``noise_epsilon`` is what each cell gets. ``parts`` is how many cells a record touches, ``pooled`` says that limits
    are drawn from several cells together (rule 5). ``size`` is the number of values that they are drawn from, where it
    is public.
    """

    domain: Domain
    fallback: int
    centre: Centre | None
    ladder: Ladder
    target: int
    reach: int
    threshold_epsilon: Fraction
    count_epsilon: Fraction
    tally_epsilon: Fraction
    size_epsilon: Fraction
    noise_epsilon: Fraction
    size: int | None = None
    parts: int = 1
    pooled: bool = False

    @property
    def counts_epsilon(self) -> tuple[Fraction, Fraction, Fraction]:
        """The ε of each count: of clipped values, of values beyond a quarter of the limits, and of all."""
        return self.tally_epsilon, self.tally_epsilon, self.size_epsilon

    @property
    def limits_epsilon(self) -> Fraction:
        """What limits and counts cost, once for all cells."""
        centre = self.centre.epsilon if self.centre else Fraction(0)
        return centre + self.threshold_epsilon + self.count_epsilon + sum(self.counts_epsilon)

    @property
    def epsilon(self) -> Fraction:
        """What each cell costs, with its part of the limits."""
        return self.limits_epsilon / self.parts + self.noise_epsilon

    @property
    def least_size(self) -> int:
        """The least number of values with which a radius is not too small nearly always, 19 times in 20."""
        return self.target + math.ceil(Fraction(math.log(20 * len(self.ladder.thresholds))) / self.count_epsilon)

    @property
    def spread(self) -> int:
        """How many more clipped values are allowed for than counted."""
        return math.ceil(LIKELY_NOISE / self.tally_epsilon)

    def ranks(self, moves: Moves, distance: int = 0) -> Iterable[tuple[int, int]]:
        """The run around the median, the M least and the M greatest; nothing of a cell whose limits are shared."""
        if self.pooled:
            return
        if self.centre:
            yield from self.centre.ranks(moves)
        yield 1, self.reach
        yield moves.size - self.reach + 1, moves.size

    def draw_limits(self, summary: Summary, source: RandomSource | None = None) -> DrawnLimits:
        """Draw the centre, the radius and the counts from the values of all cells."""
        middle = self.find_middle(self.centre.draw(summary, source) if self.centre else None)
        radius = self.calibrate_radius(summary, middle).draw(source)
        tally, size = DiscreteLaplace(1 / self.tally_epsilon), self.size
        pairs = self.list_counted(middle, radius)
        clipped, beyond_quarter = (self.count_beyond(summary, *pair) + tally.sample(source=source) for pair in pairs)
        if size is None:
            size = summary.size + DiscreteLaplace(1 / self.size_epsilon).sample(source=source)
        return DrawnLimits(*self.find_limits(middle, radius), clipped, beyond_quarter, size, self.spread)

    def list_counted(self, middle: int, radius: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Beyond what values are counted: the limits, and a quarter of the radius."""
        return self.find_limits(middle, radius), (middle - radius // 4, middle + radius // 4)

    def find_middle(self, drawn: int | None) -> int:
        """m: the drawn centre, or the public point where there is none."""
        return self.fallback if drawn is None else self.domain.clamp(drawn)

    def calibrate_radius(self, summary: Summary, middle: int) -> AboveThreshold:
        """The search for C from the values at both ends."""
        away = sorted(abs(int(value) - middle) for value in self._list_ends(summary))[-self.reach :]
        deficits = [beyond - self.target for beyond in range(len(away) + 1)]
        return AboveThreshold(
            self.ladder, find_runs(self.ladder, away, deficits), self.threshold_epsilon, self.count_epsilon
        )

    def _list_ends(self, summary: Summary) -> list[int]:
        size = summary.size
        start = max(size - self.reach, min(self.reach, size))  # what both runs hold is counted once
        return [int(value) for value in (*summary.run(1, min(self.reach, size)), *summary.run(start + 1, size))]

    def find_limits(self, middle: int, radius: int) -> tuple[int, int]:
        """[m − C, m + C], cut to the declared bounds."""
        return self.domain.clamp(middle - radius), self.domain.clamp(middle + radius)

    def count_beyond(self, summary: Summary, low: int, high: int) -> int:
        """How many values lie beyond two points, each end capped at M."""
        ends = self._list_ends(summary)
        below, above = sum(value < low for value in ends), sum(value > high for value in ends)
        return min(below, self.reach) + min(above, self.reach)


def plan_clipping(
    statistic: Statistic,
    domain: Domain,
    neighbours: Neighbours,
    whole: bool,
    epsilon: Fraction,
    size: int | None = None,
    *,
    parts: int = 1,
    pooled: bool = False,
) -> ClippingPlan | None:
    """Plan the limits of a sum, a mean or a variance of a column without both bounds; None for anything else.

    ``whole`` says that the selection is the whole table by declaration, ``size`` how many values limits are drawn from
    if that is public, which it can be under replace only. ``epsilon`` is that of each cell.

    >>> plan = plan_clipping(Mean(), Domain(), Neighbours.REPLACE, True, Fraction(1), size=1000)
    >>> plan.centre.epsilon, plan.threshold_epsilon, plan.count_epsilon, plan.tally_epsilon, plan.noise_epsilon
    (Fraction(3, 25), Fraction(44, 175), Fraction(88, 875), Fraction(22, 225), Fraction(374, 1125))
    >>> cell = plan_clipping(Mean(), Domain(), Neighbours.ADD_REMOVE, False, Fraction(1, 2), parts=2, pooled=True)
    >>> cell.epsilon, cell.limits_epsilon + 2 * cell.noise_epsilon
    (Fraction(1, 2), Fraction(1, 1))
    """
    if domain.bounded or not isinstance(statistic, Mean | Sum | Variance):
        return None
    adds_up = isinstance(statistic, Sum)
    served = not adds_up or (whole and size is not None and domain.low < 0 < domain.high)
    centre = plan_centre(domain, parts * epsilon, size) if served else None
    rest = parts * epsilon - (centre.epsilon if centre else 0)
    share = RADIUS
    if size is not None:
        share = min(max(FOUND * (1 + OVERSHOOT) / (rest * max(size, 1)), LEAST_RADIUS), MOST_RADIUS)
    limits = rest * (SHARED if parts > 1 else 1)
    radius, tally, sizes = limits * share, limits * TALLY, limits * SIZE * (size is None)
    noise = (rest - radius - 2 * tally - sizes) / parts
    ladder = Ladder(0, LIMIT, 0, RATIO)
    count = radius / (1 + OVERSHOOT)
    target = math.ceil((2 if neighbours is Neighbours.REPLACE else 1) / noise)
    return ClippingPlan(
        domain,
        domain.clamp(0 if adds_up else domain.centre),
        centre,
        ladder,
        target,
        max(
            target + math.ceil(Fraction(math.log(len(ladder.thresholds)) + 30) / count),
            2 * STEEP * (target + math.ceil(LIKELY_NOISE / tally)),
        ),
        radius - count,
        count,
        tally,
        sizes,
        noise,
        size,
        parts,
        pooled,
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
