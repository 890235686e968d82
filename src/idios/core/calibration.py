"""From a level of protection, an envelope and ε to what is drawn.

Which mechanism answers is decided by public facts alone (``choose``): the level, the declared bounds, the statistic,
the number of records where it is public. What the data decides, the scale and the shape of the noise, is for the
controller.

individual     discrete Laplace of scale max(LS, floor)/ε                     ε-iDP
group          discrete Laplace of scale max_i max(A_i, floor)/(m_i·ε)        (m_1·ε, …, m_g·ε)-gDP
               where GS is known and small, of scale max_i(i/m_i)·GS/ε        the same, whatever the data
differential   discrete Laplace of scale GS/ε where GS is known and small     ε-DP
               AboveThreshold for ranks near an end                           ε-DP
               noisy sums over a noisy count, of averages and variances       ε-DP
               the inverse-sensitivity mechanism elsewhere                    ε-DP
any            where bounds are missing, sums and averages of values clipped
               to limits that are drawn first                                 ε-DP
               one category drawn by the counts (``Statistic.selects``)       ε-DP

Where accounting is concentrated a choice at the local or the global sensitivity has ρ instead, and Gaussian noise:

individual     discrete Gaussian of variance max(LS, floor)²/2ρ               ρ-concentrated iDP
group          discrete Gaussian of variance max_i (max(A_i, floor)/m_i)²/2ρ  m_i²·ρ-concentrated for i records
any            discrete Gaussian of variance Δ₂²/2ρ (``sensitivity``)         ρ-zCDP

The multiples m_1 ≤ … ≤ m_g of ε are declared with the group: 1, 2, …, g unless said otherwise, and flat (1, …, 1) for
a household that is protected like one record. A mechanism that is ε′-DP protects i records with i·ε′, so it promises
(m_1·ε, …, m_g·ε) exactly if ε′ ≤ ε/max_i(i/m_i); it is given that much (``Choice.epsilon``). At m_i = i that is ε.
One that is ρ′-zCDP protects i records with i²·ρ′, so it is given ρ/max_i(i/m_i)².

Several numbers of one question whose noise is fitted to the data are calibrated together (``joint``); here is one
statistic by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from idios.core.clipping import ClippingPlan, calibrate_clipped, plan_clipping
from idios.core.distributions import AboveThreshold, DiscreteGaussian, DiscreteLaplace, InverseSensitivity
from idios.core.distributions.discrete_gaussian import gaussian_variance
from idios.core.distributions.noisy_moments import NoisyQuotient, NoisyVariance
from idios.core.domain import Domain
from idios.core.exact import exact, text, whole
from idios.core.inverse import (
    REFUSAL,
    find_balls,
    find_largest_distance,
    is_outer,
    make_measure,
    refuse_hopeless,
)
from idios.core.multiples import (
    SINGLE,
    Multiples,
    check_multiples,
    declare_multiples,
    limit_epsilon,
    linear_multiples,
    repeat_multiples,
)
from idios.core.neighbours import RECORDS, Counted, Moves, Neighbours
from idios.core.outer_ranks import CentredSearch, RankPlan, find_lacking, least_order, plan_rank
from idios.core.sampling import RandomSource
from idios.core.statistics.averages import Mean
from idios.core.statistics.base import FINENESS, Reading, Statistic, Sums, SumsOfSquares
from idios.core.statistics.order import OrderStatistic
from idios.core.statistics.spread import InterquartileRange, Variance
from idios.core.summary import Summary
from idios.core.weighted_index import weighted_index
from idios.errors import InvalidInput, Unanswerable

# What is refused, and what is said of it, where public facts alone make an answer useless or impossible.


FARTHEST_SPLIT = 10_000
"""How far out an envelope is computed where all splits of changes are tried at every distance: some 20 seconds."""


def refuse_too_long(statistic: Statistic, neighbours: Neighbours, distance: int) -> None:
    """Refuse an envelope that would take minutes, as with little ε, or where one person has many records."""
    replaced = neighbours is Neighbours.REPLACE
    slow = isinstance(statistic, InterquartileRange) if replaced else statistic.tries_splits
    if slow and distance > FARTHEST_SPLIT:
        times = math.ceil(Fraction(10 * distance, FARTHEST_SPLIT)) / 10
        raise Unanswerable(f"it would take too long with so little epsilon: ask with {times} times as much")


def refuse_undefined(statistic: Statistic, size: int | None, counted: Counted) -> None:
    """Refuse the k-th of fewer records, where their number is public: a selection has no more of them."""
    if size is not None and 0 < size < statistic.least_size:
        raise Unanswerable(f"it takes at least {statistic.least_size:,} values, and there are {counted.write(size)}")


def refuse_too_few(statistic: Statistic, size: int | None, least: int, counted: Counted) -> None:
    """Refuse what would be far off nearly always, where the number of records is public."""
    if size is not None and size < least:
        raise Unanswerable(
            f"{statistic.name} of {counted.write(size)} would be far off with this epsilon: ask about at least "
            f"{counted.write(least)}, or with a greater epsilon"
        )


def explain_missing(statistic: Statistic, missing: str, distance: int, factor: Fraction | None = None) -> str:
    """Say what is missing and what would do without it; ``distance`` is how many changes must be survived.

    With so many times as much ε as ``factor`` says, it would be answered, but for its check, which takes a share.
    """
    more = "" if factor is None else f", or with about {math.ceil(10 * factor) / 10:,g} times as much epsilon"
    return (
        f"{statistic.name} needs {missing}, and the column declares none: a few records could move it without limit. "
        f"Declare bounds, or ask for {statistic.advise(distance)}{more}"
    )


# How far one record moves a statistic on any data at all: the global sensitivity, in steps of the answer's grid.
#
# Laplace noise needs the greatest change |Δ|. Gaussian noise needs Δ₂², the greatest Σ_c Δ_c² over all cells c of a
# question, whose noises are independent. With e the sensitivity to a value that enters or leaves a selection, and c
# that to one that changes within it, a changed record
#
#     add-remove                    enters or leaves one cell            Δ₂² = e²
#     replace, the whole table      changes within it                    Δ₂² = c²
#     replace, one selection        enters, leaves or changes            Δ₂² = max(e², c²)
#     replace, several cells        leaves one cell and enters another,
#                                   or any of these                      Δ₂² = max(2e², c²)
#
# So a record that leaves one cell for another costs √2 times as much as one that leaves, and not twice. i records move
# all answers together by i·Δ₂ at most, in whichever cells they are: the Euclidean norm of a sum is at most the sum of
# the norms.


def find_sensitivity(statistic: Statistic, domain: Domain, moves: Moves, fineness: int) -> Fraction:
    """The greatest |Δ|, rounded up to the grid: ⌊x+½⌋ − ⌊y+½⌋ ≤ ⌈x − y⌉."""
    known = statistic.global_sensitivity(domain, moves)
    if known is None:
        raise AssertionError("a statistic chose its global sensitivity and then does not know it")
    return Fraction(math.ceil(known * statistic.resolution(fineness)))


def find_squared_sensitivity(statistic: Statistic, domain: Domain, moves: Moves, parts: int, fineness: int) -> Fraction:
    """Δ₂², where a changed record touches ``parts`` cells at most.

    >>> from idios.core.statistics import Count, Sum
    >>> column, cell = Domain(lower=-10, upper=10), Moves(Neighbours.REPLACE, size=5, outside=100)
    >>> # to enter two cells, 1² + 1², and to change by 20 within one
    >>> [int(find_squared_sensitivity(s, column, cell, parts=2, fineness=1)) for s in (Count(), Sum())]
    [2, 400]
    """
    changing = Moves(Neighbours.REPLACE, moves.size)
    if moves.whole:
        return find_sensitivity(statistic, domain, changing, fineness) ** 2
    entered: Fraction = find_sensitivity(statistic, domain, Moves(Neighbours.ADD_REMOVE, moves.size), fineness) ** 2
    if moves.neighbours is Neighbours.ADD_REMOVE:
        return entered
    changed: Fraction = find_sensitivity(statistic, domain, changing, fineness) ** 2
    return max(parts * entered, changed)


LEAST_EPSILON = Fraction(1, 10**12)


class Level(StrEnum):
    """The levels of protection, weakest first."""

    INDIVIDUAL = "individual"
    GROUP = "group"
    DIFFERENTIAL = "differential"


DEFAULT = Level.DIFFERENTIAL
"""The level wherever none is named: it holds whatever the data, against any attacker."""


@dataclass(frozen=True)
class Protection:
    """What a controller declares about protection; the same for every question on a data set.

    ``multiples`` has one number for each size of group: i records are protected with m_i·ε. ``floor`` is in units of
    each statistic's own (``find_floor``), 0 is the paper to the letter. ``fineness`` is how many steps of the fine grid
    make one of the column, for averages.
    """

    level: Level = DEFAULT
    multiples: Multiples = SINGLE
    floor: Fraction = Fraction(1)
    fineness: int = FINENESS

    def __post_init__(self) -> None:
        check_multiples(self.multiples)
        if self.level is Level.INDIVIDUAL and self.multiples != SINGLE:
            raise InvalidInput(f"multiples of ε for groups belong to the level group, not {self.level}")

    @classmethod
    def declare(
        cls,
        level: str = DEFAULT,
        *,
        group: object = None,
        floor: object = None,
        fineness: object = FINENESS,
    ) -> Protection:
        """Read what was written; what does not belong to the level is refused, not ignored."""
        try:
            named = Level(level)
        except ValueError:
            raise InvalidInput(f'protection must be "individual", "group" or "differential", got {level!r}') from None
        if (named is Level.GROUP) != (group is not None):
            raise InvalidInput(
                'protection = "group" needs group = the number of records protected together'
                if group is None
                else f'group = {group!r} belongs to protection = "group" only'
            )
        least = Fraction(1) if floor is None else exact(floor, "floor")
        if least < 0:
            raise InvalidInput(f"floor must be at least 0, got {floor!r}")
        multiples = SINGLE if group is None else declare_multiples(group)
        return cls(named, multiples, least, whole(fineness, "fineness"))

    @cached_property
    def differential_share(self) -> Fraction:
        """The share of ε with which a mechanism that is differentially private keeps the promise to every group."""
        return limit_epsilon(Fraction(1), self.multiples)

    @property
    def group(self) -> int:
        """How many records are protected together."""
        return len(self.multiples)

    @property
    def promise(self) -> str:
        """The level and, of groups, every multiple of ε: equal for two declarations if they promise the same.

        >>> [Protection.declare("group", group=g).promise for g in (3, {"size": 3, "growth": "flat"}, [1, "4/3"])]
        ['group of 3', 'group of 3, flat', 'group with ε × (1, 4/3)']
        """
        if self.level is not Level.GROUP:
            return str(self.level)
        if self.multiples == linear_multiples(self.group):
            return f"group of {self.group}"
        if set(self.multiples) == set(SINGLE):
            return f"group of {self.group}, flat"
        return f"group with ε × ({', '.join(str(text(multiple)) for multiple in self.multiples)})"

    def protect_records(self, each: int) -> Protection:
        """This promise about people as one about their records, of which everyone has so many at most.

        Whoever changes i people changes at most i·each records.
        """
        level = Level.GROUP if self.level is Level.INDIVIDUAL and each > 1 else self.level
        return replace(self, level=level, multiples=repeat_multiples(self.multiples, each))


class Method(StrEnum):
    """How a statistic is answered; always decided by public facts."""

    EXACT = "exact"
    GLOBAL = "global sensitivity"
    LOCAL = "local sensitivity"
    INVERSE = "inverse sensitivity"
    ABOVE_THRESHOLD = "above threshold"
    MOMENTS = "noisy sums and count"
    CLIPPED = "clipped to drawn limits"
    EXPONENTIAL = "exponential mechanism"


@dataclass(frozen=True)
class Choice:
    """The mechanism that answers one statistic, and how far its envelope must be known.

    ``epsilon`` is that of the mechanism: with LOCAL, i records are protected with ``multiples[i − 1]`` times as much;
    with every other method it is what one record is protected with, whatever the data. ``refusal`` is R, the weight of
    no answer. ``reading`` is what is read of the data, where that is not what the statistic reads. ``rho`` is, with
    Gaussian noise, what this statistic may lose over all cells together (None: Laplace noise); with LOCAL, i records
    are protected with ``multiples[i − 1]``² times as much. ``parts`` is how many cells a record may touch.
    """

    method: Method
    distance: int
    epsilon: Fraction
    multiples: Multiples = SINGLE
    refusal: int = 0
    reading: Reading | None = None
    rho: Fraction | None = None
    parts: int = 1

    @property
    def clipping(self) -> ClippingPlan | None:
        """How limits are drawn, where they are."""
        return self.reading if isinstance(self.reading, ClippingPlan) else None


@dataclass(frozen=True)
class Added:
    """Noise added to a value, in steps of the answer's grid."""

    value: int
    noise: DiscreteLaplace | DiscreteGaussian

    def draw(self, source: RandomSource | None = None) -> int | None:
        """The value plus one draw of the noise."""
        return self.value + self.noise.sample(source=source)

    def pmf(self, point: int | None) -> float:
        """The probability of an answer; there is always one."""
        return 0.0 if point is None else float(self.noise.pmf(point - self.value))


@dataclass(frozen=True)
class Silent:
    """No answer, whatever is drawn: the selection is too small for a finite envelope."""

    def draw(self, source: RandomSource | None = None) -> int | None:
        """NULL."""
        return None

    def pmf(self, point: int | None) -> float:
        """Certainty."""
        return 1.0 if point is None else 0.0


@dataclass(frozen=True)
class ExponentialMechanism:
    """One of the points first, first + 1, …, drawn with weights e^(−rate·behind): there is always one.

    >>> two = ExponentialMechanism(0, (0, 1), Fraction(1))
    >>> round(two.pmf(1) / two.pmf(0), 3)
    0.368
    """

    first: int
    behind: tuple[int, ...]
    rate: Fraction

    def draw(self, source: RandomSource | None = None) -> int | None:
        """One exact draw."""
        return self.first + weighted_index([1] * len(self.behind), self.behind, self.rate, source)

    def pmf(self, point: int | None) -> float:
        """The probability of a point."""
        if point is None or not 0 <= point - self.first < len(self.behind):
            return 0.0
        weights = [math.exp(-float(self.rate) * behind) for behind in self.behind]
        return weights[point - self.first] / math.fsum(weights)


Mechanism = (
    Added
    | InverseSensitivity
    | AboveThreshold
    | CentredSearch
    | NoisyQuotient
    | NoisyVariance
    | ExponentialMechanism
    | Silent
)


def choose(
    statistic: Statistic,
    domain: Domain,
    neighbours: Neighbours,
    whole: bool,
    protection: Protection,
    epsilon: Fraction,
    *,
    drawn: int = 1,
    size: int | None = None,
    rho: Fraction | None = None,
    parts: int = 1,
    pooled: bool = False,
    pool_size: int | None = None,
    counted: Counted = RECORDS,
) -> Choice:
    """Pick the mechanism from public facts, or say why there is none.

    ``whole`` says that the selection is the whole table by declaration, ``size`` how many records that has if it is
    public; ``drawn`` is how many values of the question are drawn from a base measure, in all cells together. ``rho``
    asks for Gaussian noise wherever noise is added at the local or the global sensitivity, with so much for all cells
    together, of which a record touches ``parts``; ``neighbours`` is then the data set's own notion. With ``pooled``
    limits are drawn from all cells together, which have ``pool_size`` values where that is public. ``counted`` is what
    records are in words.
    """
    differential = epsilon * protection.differential_share
    shared_rho = None if rho is None else rho * protection.differential_share**2
    globally = Choice(Method.GLOBAL, 0, differential, rho=shared_rho, parts=parts)
    if statistic.selects:
        return Choice(Method.EXPONENTIAL, 0, differential)
    any_size = Moves(neighbours, 1, None if whole else 0)  # only whether a sensitivity is known matters
    known = statistic.global_sensitivity(domain, any_size)
    if known == 0 and statistic.always_global:
        return Choice(Method.EXACT, 0, epsilon)
    refusal, public_size = REFUSAL * drawn, size if whole else None
    fitted = protection.level is not Level.DIFFERENTIAL
    missing = statistic.missing_bound(domain, protection.group if fitted else 1)
    if missing or not (fitted or known is not None):
        _check_range(differential)
    drawn_from, cells = (pool_size, parts) if pooled else (public_size, 1)
    if missing and (
        clipping := plan_clipping(
            statistic, domain, neighbours, whole, differential, drawn_from, parts=cells, pooled=pooled
        )
    ):
        refuse_too_few(statistic, drawn_from, clipping.least_size, counted)
        return Choice(Method.CLIPPED, 0, differential, reading=clipping)
    if fitted:
        if missing:
            raise Unanswerable(explain_missing(statistic, missing, protection.group))
        if statistic.always_global and protection.floor > 0 and known is not None:
            return globally
        return Choice(Method.LOCAL, protection.group, epsilon, multiples=protection.multiples, rho=rho, parts=parts)
    if known is not None:
        return globally
    if isinstance(statistic, Mean | Variance):
        reading = SumsOfSquares() if isinstance(statistic, Variance) else Sums()
        return Choice(Method.MOMENTS, 0, differential, reading=reading)
    if not statistic.nested:
        raise Unanswerable(f'{statistic.name} cannot be answered at protection = "differential"')
    refuse_undefined(statistic, size, counted)
    if isinstance(statistic, OrderStatistic) and is_outer(statistic, differential, refusal, public_size):
        return _choose_rank(statistic, domain, differential, public_size, protection, counted)
    if missing:
        raise Unanswerable(explain_missing(statistic, missing, 1))
    if public_size is not None:
        refuse_hopeless(statistic, public_size, differential, refusal, counted)
    distance = find_largest_distance(make_measure(statistic, domain, protection.fineness), differential, refusal)
    refuse_too_long(statistic, neighbours, distance)
    return Choice(Method.INVERSE, distance, differential, refusal=refusal)


def calibrate(choice: Choice, statistic: Statistic, summary: Summary, protection: Protection) -> Mechanism:
    """Turn a summary of the data into what is drawn; of a choice that clips, the summary of what was clipped."""
    if choice.method is Method.EXPONENTIAL:
        rate = statistic.rate(choice.epsilon, summary.moves.neighbours)
        return ExponentialMechanism(int(summary.domain.low), statistic.behind(summary), rate)
    if isinstance(choice.reading, RankPlan):
        return choice.reading.calibrate(summary)
    if choice.method is Method.INVERSE:
        balls = find_balls(statistic, summary, choice.distance, protection.fineness)
        measure = make_measure(statistic, summary.domain, protection.fineness)
        return InverseSensitivity(balls, choice.epsilon, measure, choice.refusal)
    epsilon = choice.epsilon if choice.clipping is None else choice.clipping.noise_epsilon
    if choice.method in (Method.MOMENTS, Method.CLIPPED) and (
        moments := calibrate_clipped(statistic, summary, epsilon, protection.fineness)
    ):
        return moments
    envelope = statistic.envelope(summary, choice.distance, protection.fineness)
    if envelope.value is None:
        return Silent()
    if choice.method is not Method.LOCAL:
        noise = make_global_noise(choice, statistic, summary.domain, summary.moves, protection.fineness)
        return Added(envelope.value, noise)
    sensitivity = envelope.group_sensitivity(choice.multiples, find_floor(statistic, protection))
    if isinstance(sensitivity, float):
        return Silent()
    if choice.rho is None:
        return Added(envelope.value, DiscreteLaplace(sensitivity / epsilon))
    return Added(envelope.value, DiscreteGaussian(gaussian_variance(sensitivity**2, choice.rho)))


def make_global_noise(
    choice: Choice, statistic: Statistic, domain: Domain, moves: Moves, fineness: int
) -> DiscreteLaplace | DiscreteGaussian:
    """The noise at the global sensitivity, which is public where the number of values is or does not matter."""
    if choice.method is Method.EXACT:
        return DiscreteLaplace(Fraction(0))
    if choice.rho is not None:
        squared = find_squared_sensitivity(statistic, domain, moves, choice.parts, fineness)
        return DiscreteGaussian(gaussian_variance(squared, choice.rho))
    epsilon = choice.epsilon if choice.clipping is None else choice.clipping.noise_epsilon
    return DiscreteLaplace(find_sensitivity(statistic, domain, moves, fineness) / epsilon)


def expected_error(
    mechanism: Mechanism,
    value: int | None,
    step: Fraction,
    low: int | float = -math.inf,
    high: int | float = math.inf,
) -> float | None:
    """E|answer − value| in the units of ``step``, given that there is an answer; None where there is none to expect.

    Answers are clamped to low..high, where the value lies; what noise leads beyond is no error.

    >>> seven = Added(7, DiscreteLaplace(Fraction(10)))
    >>> round(expected_error(seven, 7, Fraction(1, 2)), 6), round(expected_error(seven, 7, Fraction(1, 2), high=7), 6)
    (4.991676, 2.495838)
    """
    if isinstance(mechanism, Added):
        noise, middle = mechanism.noise, mechanism.value
        error = noise.expected_distance(0 if value is None else middle - value)  # which clipping may have moved
        for room in (high - middle, middle - low):
            error -= 0.0 if room == math.inf else noise.expected_beyond(int(max(room, 0)))
        return error * float(step)
    if value is None or isinstance(mechanism, ExponentialMechanism | Silent):
        return None
    if isinstance(mechanism, InverseSensitivity):
        return mechanism.expected_absolute(value) * float(step)  # it draws nothing beyond
    return mechanism.expected_absolute(value, low, high) * float(step)


def find_floor(statistic: Statistic, protection: Protection) -> Fraction:
    """The least sensitivity that noise is calibrated to, in steps of the answer's grid.

    A declared floor of 1 is one step of the column for order statistics, so that ties do not make answers
    exact, and one step of the fine grid for averages.
    """
    unit = statistic.resolution(protection.fineness) if statistic.coarse_floor else 1
    return protection.floor * unit


def _check_range(epsilon: Fraction) -> None:
    """Refuse an ε whose noise no column could show: what is public of these mechanisms is computed from floats."""
    if not LEAST_EPSILON <= epsilon <= 1 / LEAST_EPSILON:
        raise Unanswerable("epsilon must leave between 1e-12 and 1e12 for every released value")


def _choose_rank(
    statistic: OrderStatistic,
    domain: Domain,
    epsilon: Fraction,
    size: int | None,
    protection: Protection,
    counted: Counted,
) -> Choice:
    resolution = statistic.resolution(protection.fineness)
    rank = plan_rank(statistic, domain, epsilon, size=size, resolution=resolution)
    if rank is None:
        missing = statistic.missing_bound(domain, least_order(epsilon)) or "bounds"
        factor = find_lacking(statistic, epsilon)
        raise Unanswerable(explain_missing(statistic, missing, least_order(epsilon) - 1, factor))
    refuse_too_few(statistic, size, rank.least_size, counted)
    return Choice(Method.ABOVE_THRESHOLD, 0, epsilon, reading=rank)
