"""What an answer tells of the data: the greatest log ratio between the laws of two mechanisms, one way round.

Independent draws add up: the loss of a whole answer is the sum of the losses of what it draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, pairwise

import numpy as np

from idios.core.calibration import Added, ExponentialMechanism, Mechanism, Silent
from idios.core.centre import place_centre
from idios.core.distributions import AboveThreshold, DiscreteGaussian, DiscreteLaplace, InverseSensitivity
from idios.core.distributions.above_threshold import Reals
from idios.core.distributions.noisy_moments import NoisyQuotient, NoisyVariance
from idios.core.enclosures import exp_minus
from idios.core.outer_ranks import CentredSearch

BITS = 400
ROUNDING = 1e-9
"""What floats may add to a loss; those of the inverse-sensitivity mechanism are good to 1e-12."""


def find_loss(one: Mechanism, two: Mechanism) -> float:
    """The greatest ln Pr(one gives t)/Pr(two gives t) over all answers t; ∞ where ``two`` never gives it."""
    if isinstance(one, Silent) or isinstance(two, Silent):
        return 0.0 if one == two else math.inf
    if isinstance(one, InverseSensitivity) and isinstance(two, InverseSensitivity):
        return _compare_laws(law(one), law(two))
    if isinstance(one, AboveThreshold) and isinstance(two, AboveThreshold):
        return _compare_searches(one, two)
    if isinstance(one, CentredSearch) and isinstance(two, CentredSearch):
        return _compare_centred(one, two)
    if isinstance(one, ExponentialMechanism) and isinstance(two, ExponentialMechanism):
        points = range(one.first, one.first + len(one.behind))
        return max(math.log(one.pmf(point) / two.pmf(point)) for point in points)
    if any(isinstance(mechanism, Added) and isinstance(mechanism.noise, DiscreteGaussian) for mechanism in (one, two)):
        return 0.0 if one == two else math.inf  # it has ρ, and no ε
    return float(compare_noise(list_noisy(one), list_noisy(two)))


# ------------------------------------------------------------------------------------------ noise that is added


def list_noisy(mechanism: Mechanism) -> list[tuple[int, Fraction]]:
    """The numbers that noise is added to, each with the scale of its noise."""
    if isinstance(mechanism, Added):
        assert isinstance(mechanism.noise, DiscreteLaplace)
        return [(mechanism.value, mechanism.noise.scale)]
    if isinstance(mechanism, NoisyQuotient):
        return [(mechanism.deviation, mechanism.sum_noise.scale), (mechanism.size, mechanism.count_noise.scale)]
    assert isinstance(mechanism, NoisyVariance)
    return [(n, noise.scale) for n, noise in zip(mechanism.deviations, mechanism.noises, strict=True)]


def compare_noise(here: Sequence[tuple[int, Fraction]], there: Sequence[tuple[int, Fraction]]) -> Fraction | float:
    """The greatest log ratio of discrete Laplace noise, attained where every answer is the true value."""
    loss = Fraction(0)
    for (one, scale), (other, same) in zip(here, there, strict=True):
        if scale != same or (one != other and scale == 0):
            return math.inf
        if one != other:
            loss += abs(one - other) / scale
    return loss


# --------------------------------------------------------------------------- the inverse-sensitivity mechanism


@cache
def power(exponent: Fraction) -> tuple[int, int]:
    return exp_minus(exponent, BITS)


@dataclass(frozen=True)
class Law:
    """The weights of all points, by runs of equal distance, and of no answer, in whole numbers.

    Accurate to 100 digits, as q is to 400 bits. All weights have a factor of q more than in the definition, which
    changes nothing and keeps exponents from being −1.
    """

    runs: tuple[tuple[int, int, int, int], ...]
    """First and last point, weight without the power of q, and the exponent of q."""
    refusal: tuple[int, int]
    rate: Fraction

    def weigh(self, exponent: int) -> int:
        return power(self.rate * exponent)[0]

    @cached_property
    def total(self) -> int:
        weights = sum(weight * self.weigh(exponent) for _, _, weight, exponent in self.runs)
        return weights + self.refusal[0] * self.weigh(self.refusal[1])


def list_runs(mechanism: InverseSensitivity) -> list[tuple[int, int, int, int]]:
    """First and last point, mass and distance, from one end of the grid to the other, cut where a ball ends."""
    measure, balls = mechanism.measure, mechanism.balls
    begin, end = min(s.first for s in measure.stretches), max(s.last for s in measure.stretches) + 1
    ends = {end for low, high in balls for end in (low, high + 1)}
    cuts = sorted({begin, end, *(cut for cut in ends if begin < cut < end)})
    below = measure.sum_below(cuts)
    distances = [next((j for j, (low, high) in enumerate(balls) if low <= cut <= high), len(balls)) for cut in cuts]
    rows = zip(pairwise(cuts), pairwise(below), distances, strict=False)
    return [(first, after - 1, most - least, distance) for (first, after), (least, most), distance in rows]


@cache
def law(mechanism: InverseSensitivity, refusal_exponent: int | None = None) -> Law:
    runs = tuple((first, last, mass, distance + 1) for first, last, mass, distance in list_runs(mechanism))
    exponent = len(mechanism.balls) if refusal_exponent is None else refusal_exponent
    return Law(runs, (mechanism.refusal * mechanism.measure.denominator, exponent), mechanism.epsilon / 2)


def greatest_loss(one: Law, two: Law) -> float:
    """The greatest logarithm of a ratio of two probabilities of the same answer, either way round."""
    return max(_compare_laws(one, two), _compare_laws(two, one))


def _compare_laws(one: Law, two: Law) -> float:
    """With one measure the ratio at a point is q^(u − u′)·N′/N. It is computed to 15 digits from whole numbers."""
    here, there = one.runs, two.runs
    assert (here[0][0], here[-1][1]) == (there[0][0], there[-1][1])
    assert one.rate == two.rate
    differences = {one.refusal[1] - two.refusal[1]}
    i = j = 0
    while i < len(here) and j < len(there):
        differences.add(here[i][3] - there[j][3])
        last = min(here[i][1], there[j][1])
        i, j = i + (here[i][1] == last), j + (there[j][1] == last)
    return math.log(two.total / one.total) - float(one.rate) * min(differences)


def find_loss_at(one: InverseSensitivity, two: InverseSensitivity, point: int | None) -> float:
    """The log ratio of one answer; None is the refusal. −∞ where it can never be one."""
    here, there = law(one), law(two)
    if point is not None and not here.runs[0][0] <= point <= here.runs[-1][1]:
        return -math.inf
    difference = _find_exponent(here, point) - _find_exponent(there, point)
    return math.log(there.total / here.total) - float(here.rate) * difference


def _find_exponent(law: Law, point: int | None) -> int:
    if point is None:
        return law.refusal[1]
    return next(exponent for first, last, _, exponent in law.runs if first <= point <= last)


# -------------------------------------------------------------------------------------------- AboveThreshold


@cache
def _compare_searches(one: AboveThreshold, two: AboveThreshold) -> float:
    places = list_places(one, two)
    return float((stopping_logarithms(one, places) - stopping_logarithms(two, places)).max())


def _compare_centred(one: CentredSearch, two: CentredSearch) -> float:
    """The greatest sum over the centre and the search from there, as if the centre were told too."""
    assert one.plan.centre is not None
    here, there = (one.plan.centre.calibrate(search.summary) for search in (one, two))
    worst = -math.inf
    for drawn in {None, *(first for first, *_ in law(here).runs)}:
        centre = one.plan.fallback if drawn is None else place_centre(drawn)
        searches = (one.plan.search(one.summary, centre), one.plan.search(two.summary, centre))
        worst = max(worst, find_loss_at(here, there, drawn) + _compare_searches(*searches))
    return worst


def list_places(*mechanisms: AboveThreshold) -> list[int]:
    """Where in the ladder to compare: the ends of all runs, and from each end on by powers of two."""
    size = len(mechanisms[0].ladder.thresholds)
    ends = {0, size - 1, size}
    for mechanism in mechanisms:
        assert mechanism.ladder == mechanisms[0].ladder
        ends |= set(accumulate(run.length for run in mechanism.runs))
    places = set()
    for start, stop in pairwise(sorted(ends)):
        offsets = [0, *(1 << k for k in range((stop - start).bit_length()))]
        places |= {start + o for o in offsets if start + o < stop} | {stop - 1 - o for o in offsets if stop > start + o}
    return sorted(places)


def stopping_logarithms(mechanism: AboveThreshold, places: Sequence[int]) -> Reals:
    """ln Pr(threshold) at some places of the ladder, summed over G_0 until what is left cannot matter."""
    lengths = np.array([run.length for run in mechanism.runs], dtype=np.float64)
    deficits = np.array([run.deficit for run in mechanism.runs], dtype=np.float64)
    first, second = float(mechanism.first_rate), float(mechanism.second_rate)
    most = math.ceil(max(0.0, -deficits.min()) + math.log(lengths.sum() + 1) / second + 50 / first)
    starts = np.arange(most, dtype=np.float64)
    away = np.maximum(deficits[:, None] + starts, 0) * second
    with np.errstate(divide="ignore"):
        passes = np.where(away < 0.7, np.log(-np.expm1(-away)), np.log1p(-np.exp(-away)))
    passes = np.maximum(passes, -1e300)  # so that none of them is 0 and not NaN
    run_starts = np.cumsum(lengths) - lengths
    before = np.clip(np.array(places, dtype=np.float64)[:, None] - run_starts, 0, lengths)
    own = np.searchsorted(np.cumsum(lengths), places, side="right")
    stops = np.where(np.array(places)[:, None] == lengths.sum() - 1, 0.0, -away[own])
    logarithms = before @ passes + stops - first * starts
    peaks = logarithms.max(axis=1)
    sums: Reals = peaks + np.log(np.exp(logarithms - peaks[:, None]).sum(axis=1)) + math.log(-math.expm1(-first))
    return sums
