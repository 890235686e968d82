"""Ranks near the ends of a column without bounds, by AboveThreshold.

An exponential mechanism cannot find an extreme: every larger value is a few changes away. Counting can
(``idios.core.distributions.above_threshold`` has the mechanism and its proof). Rules:

1. The ladder, the target, the division of ε and how many values are read are public: they follow from the
   statistic, the declared domain, ε and the size where it is public.
2. A high rank is searched upwards: the k-th largest by d_i = #{x > t_i} − T, a quantile of q ≥ ½ by
   d_i = #{x > t_i} − (1−q)·s − T. A low rank is the mirror image: every value and the ladder are negated. So the
   thresholds that are passed before the data is reached have large deficits.
3. Deficits are clamped to ± ``reach`` records, which only the values near the wanted rank can tell apart; with
   reach = (ln N + 30)/e₂ the N thresholds before them stop with a chance of e^(−30) together.
4. T makes up for thresholds being many. Where c values lie beyond, each stops with e^(−e₂(c − T + G_0)), and in a tail
   of index α (the c-th largest value falls like c^(−1/α)) there are 1/(α·c·ln β) thresholds with c values beyond. With
   G_0 at its median ln 2/e₁, half of all draws pass every threshold with k or more values beyond if
       Σ_{c≥k} e^(−e₂(c − T + ln 2/e₁))/(α·c·ln β) = ln 2,
   that is T = ln 2/e₁ + (1/e₂)·ln(α·ln 2·ln β/Σ_{c≥k} e^(−e₂·c)/c). It may be negative. It is a matter of accuracy:
   any public T is as private.
5. A selection too small (``least_size``), an empty one included, is answered near the first threshold tried: the
   lowest of all for a high rank.
6. Where an end is open and no centre is declared, the ladder leads away from a drawn one (``centre``), which is a
   release of its own: values are then counted from there, and the answer is put back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from idios.core.centre import Centre, place_centre, plan_centre
from idios.core.distributions.above_threshold import AboveThreshold, Ladder, find_runs, list_offsets
from idios.core.domain import LIMIT, Domain
from idios.core.neighbours import Moves
from idios.core.sampling import RandomSource
from idios.core.statistics.base import Reading, Statistic
from idios.core.statistics.order import DiscreteQuantile, KthLargest, KthSmallest, Quantile
from idios.core.summary import Summary

RATIO = Fraction(10003, 10000)
"""β of a ladder that leads away from a declared point, which may be far from the data: fine enough from anywhere."""
_FINEST = 4096
_TAIL_INDEX = 5.5
"""α of distances from the centre: between incomes (some 2) and a normal distribution (some 10)."""
ORDER_EPSILON = 10
"""k·ε from which on the k-th value is answered where no bound is declared."""
_ASSUMED = 30
"""The k, in units of 1/ε, that T is fitted to where the number of values is secret; it enters as a logarithm."""


@dataclass(frozen=True)
class RankPlan(Reading):
    """What is public of one search for a rank.

    A threshold may have ``share``·s + ``target`` values beyond it, s the size. Only deficits within ± ``reach`` records
    are told apart. ``unit`` is that of ``AboveThreshold``, negative where the search leads downwards. The ladder leads
    away from a drawn ``centre``, from ``fallback`` where that is refused.
    """

    ladder: Ladder
    share: Fraction
    target: Fraction
    reach: int
    threshold_epsilon: Fraction
    count_epsilon: Fraction
    unit: int = 1
    centre: Centre | None = None
    fallback: int = 0

    @property
    def parts(self) -> int:
        """b of the lattice 1/b."""
        return math.lcm(self.share.denominator, self.target.denominator)

    @property
    def epsilon(self) -> Fraction:
        """What an answer costs."""
        return self.threshold_epsilon + self.count_epsilon + (self.centre.epsilon if self.centre else 0)

    @property
    def least_size(self) -> int:
        """The least number of values with which an answer is from among them nearly always, 19 times in 20."""
        passed = Fraction(math.log(20 * len(self.ladder.thresholds))) / self.count_epsilon
        return max(1, math.ceil((self.target + passed) / (1 - self.share)))

    def ranks(self, moves: Moves, distance: int = 0) -> Sequence[tuple[int, int]]:
        """The runs of ranks that are read; ends beyond the data are cut off."""
        return [self._find_run(moves.size), *(self.centre.ranks(moves) if self.centre else ())]

    def _find_run(self, size: int) -> tuple[int, int]:
        first, last = self._places(size)
        return (first, last) if self.unit < 0 else (size - last + 1, size - first + 1)

    def _places(self, size: int) -> tuple[int, int]:
        """The first and the last that matter, counted from the end that is searched for."""
        allowed = self.share * size + self.target
        return max(1, math.floor(allowed - self.reach) + 1), math.ceil(allowed + self.reach)

    def calibrate(self, summary: Summary) -> AboveThreshold | CentredSearch:
        """The mechanism from the values around the rank, and around the median if a centre is drawn."""
        return self.search(summary, 0) if self.centre is None else CentredSearch(self, summary)

    def search(self, summary: Summary, centre: int) -> AboveThreshold:
        """The search for the rank among the distances from a centre."""
        size, parts = summary.size, self.parts
        first, last = self._find_run(size)
        values = [int(value) - centre for value in summary.run(max(first, 1), min(last, size))]
        if self.unit < 0:
            values = [-value for value in reversed(values)]
        allowed, most = int((self.share * size + self.target) * parts), self.reach * parts
        fewest = min(self._places(size)[0] - 1, size)
        deficits = [
            min(max(parts * beyond - allowed, -most), most) for beyond in range(fewest, fewest + len(values) + 1)
        ]
        return AboveThreshold(
            self.ladder,
            find_runs(self.ladder, values, deficits),
            self.threshold_epsilon / parts,
            self.count_epsilon / parts,
            self.unit,
        )


@dataclass(frozen=True)
class CentredSearch:
    """A centre, and a rank searched for from there."""

    plan: RankPlan
    summary: Summary

    def draw(self, source: RandomSource | None = None) -> int:
        """One exact draw of both."""
        drawn = self.plan.centre.draw(self.summary, source) if self.plan.centre else None
        centre = self.plan.fallback if drawn is None else drawn
        step = abs(self.plan.unit)
        found = self.plan.search(self.summary, centre).draw(source) + step * centre
        return min(max(found, -LIMIT * step), LIMIT * step)

    def expected_absolute(self, value: int, low: int | float = -math.inf, high: int | float = math.inf) -> float:
        """E|answer − value| with the centre where it is drawn most often, the median; clamped to low..high."""
        if self.plan.centre is None or not (balls := self.plan.centre.calibrate(self.summary).balls):
            centre = self.plan.fallback
        else:
            centre = place_centre(balls[0][0])
        origin = abs(self.plan.unit) * centre
        return self.plan.search(self.summary, centre).expected_absolute(value - origin, low - origin, high - origin)


def plan_rank(
    statistic: Statistic,
    domain: Domain,
    epsilon: Fraction,
    *,
    size: int | None = None,
    resolution: int = 1,
) -> RankPlan | None:
    """Plan the search for a k-th value or a quantile; None for other statistics, and for a rank too near an open end.

    ``size`` is the number of values where it is public, ``resolution`` that of the answer's grid.

    >>> plan = plan_rank(KthLargest(10), Domain(), Fraction(1))
    >>> plan.centre.epsilon, plan.threshold_epsilon, plan.target, plan.reach
    (Fraction(1, 4), Fraction(9, 20), Fraction(6, 1), 129)
    >>> plan_rank(KthLargest(9), Domain(lower=0), Fraction(1)) is None
    True
    """
    share = Fraction(0)
    if isinstance(statistic, KthLargest | KthSmallest):
        downwards, order = isinstance(statistic, KthSmallest), statistic.k
    elif isinstance(statistic, Quantile | DiscreteQuantile):
        downwards = statistic.q < Fraction(1, 2)
        if size is None and 0 < statistic.q < 1:
            share, order = min(statistic.q, 1 - statistic.q), math.ceil(_ASSUMED / epsilon)
        else:
            order = _find_order(statistic, size or 1, downwards)
    else:
        return None
    if (domain.lower if downwards else domain.upper) is None and order < _find_least(statistic, epsilon):
        return None
    centre = None if domain.bounded or domain.centre else plan_centre(domain, epsilon, size)
    ladder = (
        Ladder.within(Domain(domain.step), _choose_ratio(order * epsilon)) if centre else Ladder.within(domain, RATIO)
    )
    threshold, count = _divide(epsilon - (centre.epsilon if centre else 0), order)
    allowed = _find_target(order, threshold, count, ladder)
    if share:
        allowed -= order - 1
    return RankPlan(
        ladder.mirrored if downwards else ladder,
        share,
        Fraction(round(allowed * share.denominator), share.denominator),
        math.ceil(Fraction(math.log(len(ladder.thresholds)) + 30) / count),
        threshold,
        count,
        -resolution if downwards else resolution,
        centre,
        domain.clamp(domain.centre) if centre else 0,
    )


def least_order(epsilon: Fraction) -> int:
    """The least k whose k-th largest value can be told apart from the noise where no bound is declared."""
    return math.ceil(ORDER_EPSILON / epsilon)


def find_lacking(statistic: Statistic, epsilon: Fraction) -> Fraction | None:
    """How many times as much ε a k-th value takes where no bound is declared; None of other statistics."""
    if not isinstance(statistic, KthLargest | KthSmallest):
        return None
    return ORDER_EPSILON / (statistic.k * epsilon)


def _find_least(statistic: Statistic, epsilon: Fraction) -> int:
    """The least k that is answered: of a quantile half as many, as its error is one of share and not of value."""
    return least_order(epsilon if isinstance(statistic, KthLargest | KthSmallest) else 2 * epsilon)


def _find_order(statistic: Quantile | DiscreteQuantile, size: int, downwards: bool) -> int:
    """The k of a quantile of a public number of values, counted from the nearer end."""
    numerator, parts = statistic.position(size)
    return numerator // parts if downwards else size + 1 + -numerator // parts


def prepare_ladders() -> None:
    """List the thresholds of all ratios, in a tenth of a second: else how long a plan takes tells which were asked."""
    for ratio in (RATIO, *(1 + Fraction(1, 1 << place) for place in range(_FINEST.bit_length()))):
        list_offsets(ratio)


def _choose_ratio(certainty: Fraction) -> Fraction:
    """β of a ladder that leads away from a drawn centre, from k·ε: 1 + 1/(10·k·ε), or up to twice as coarse.

    The noise is worth some 1/(k·ε) of a distance. Thresholds that lie much closer are many more chances to stop
    early; T makes up for them, at the price of climbing far beyond the last value where it must be negative.
    """
    parts = min(max(math.floor(10 * certainty), 1), _FINEST)
    return 1 + Fraction(1, 1 << parts.bit_length() - 1)


def _divide(epsilon: Fraction, order: int) -> tuple[Fraction, Fraction]:
    """e₁ and e₂: beyond the last values a draw climbs s thresholds too far with a chance of s^(−e₁/e₂).

    How often it gets there follows from k·ε.
    """
    certainty = order * epsilon
    ratio = Fraction(2) if order <= 2 or certainty <= 6 else Fraction(3, 2) if certainty <= 15 else Fraction(1)
    return epsilon * ratio / (1 + ratio), epsilon / (1 + ratio)


def _find_target(order: int, threshold_epsilon: Fraction, count_epsilon: Fraction, ladder: Ladder) -> float:
    """T of rule 4, with 40/N in place of a ln β below it: a short ladder has few thresholds between two values.

    The sum is about E₁(e₂·(k − ½)), E₁(x) between ½·e^(−x)·ln(1 + 2/x) and e^(−x)·ln(1 + 1/x).
    """
    threshold, count = float(threshold_epsilon), float(count_epsilon)
    spacing = max(math.log(ladder.ratio), min(0.5, 40 / len(ladder.thresholds)))
    x = count * (order - 0.5)
    logarithm = -x + (math.log(math.log1p(1 / x)) + math.log(math.log1p(2 / x) / 2)) / 2
    return math.log(2) / threshold + (math.log(_TAIL_INDEX * math.log(2) * spacing) - logarithm) / count
