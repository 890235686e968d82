"""From a level of protection, an envelope and ε to what is drawn.

Which mechanism answers is decided by public facts alone (``choose``): the level, the declared bounds and δ,
the statistic. What the data decides, the scale and the shape of the noise, is for the controller.

individual     discrete Laplace of scale max(LS, floor)/ε                     ε-iDP
group          discrete Laplace of scale max_i max(A_i, floor)/(m_i·ε)        (m_1·ε, …, m_g·ε)-gDP
               where GS is known and small, of scale max_i(i/m_i)·GS/ε        the same, whatever the data
differential   discrete Laplace of scale GS/ε where GS is known and small     ε-DP
               the inverse-sensitivity mechanism elsewhere                    ε-DP
any            one category drawn by the counts (``Statistic.selects``)       ε-DP

The multiples m_1 ≤ … ≤ m_g of ε are declared with the group: 1, 2, …, g unless said otherwise, and flat (1, …, 1) for
a household that is protected like one record. A mechanism that is ε′-DP protects i records with i·ε′, so it promises
(m_1·ε, …, m_g·ε) exactly if ε′ ≤ ε/max_i(i/m_i); it is given that much (``Choice.epsilon``). At m_i = i that is ε.

Several numbers of one question whose noise is fitted to the data are calibrated together (``joint``); here is one
statistic by itself.

The inverse-sensitivity mechanism has its proof in ``distributions/inverse_sensitivity``. Its balls are the envelope of
the column without its declared bounds, b the last distance (up to a public J) at which that is finite: with the bounds
it would never be infinite, and a handful of records in a wide range would be answered from nowhere. Envelopes are
nested, also where the range is infinite from the distance on at which the statistic can be undefined, so |b − b′| ≤ 1.
A statistic that is never finite without bounds, such as a variance, takes the envelope within them. It needs envelopes
that are nested *as computed*, which the contract tests of the statistics check, and π, J and R that depend on nothing
secret.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, lru_cache

from idios.core.base_measure import BaseMeasure
from idios.core.distributions import DiscreteLaplace, InverseSensitivity
from idios.core.domain import LIMIT, Domain
from idios.core.exact import exact, text, whole
from idios.core.multiples import SINGLE, Multiples, check_multiples, declare_multiples, limit_epsilon
from idios.core.neighbours import Moves, Neighbours
from idios.core.sampling import Source, weighted_index
from idios.core.statistics.base import FINENESS, Statistic
from idios.core.summary import Summary
from idios.errors import InvalidInput, Unanswerable

REFUSAL = 1000
"""R of the inverse-sensitivity mechanism, for each cell: an answer out of reach is less likely than 1 in R."""
NEGLIGIBLE = 14
"""−ln of what may be cut off at the largest distance: a millionth."""
HOPELESS = 3
"""Of a refusal with odds of at least e to this, 20 to 1, a question need not be asked."""


class Level(StrEnum):
    """The levels of protection, weakest first."""

    INDIVIDUAL = "individual"
    GROUP = "group"
    DIFFERENTIAL = "differential"


@dataclass(frozen=True)
class Protection:
    """What a controller declares about protection; the same for every question on a data set.

    ``multiples`` has one number for each size of group: i records are protected with m_i·ε. ``floor`` is in units of
    each statistic's own (``find_floor``), 0 is the paper to the letter. ``fineness`` is how many steps of the fine grid
    make one of the column, for averages.
    """

    level: Level = Level.INDIVIDUAL
    multiples: Multiples = SINGLE
    floor: Fraction = Fraction(1)
    fineness: int = FINENESS

    def __post_init__(self) -> None:
        check_multiples(self.multiples)
        if self.level is not Level.GROUP and self.multiples != SINGLE:
            raise InvalidInput(f"multiples of ε for groups belong to the level group, not {self.level}")

    @classmethod
    def declare(
        cls,
        level: str = "individual",
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


class Method(StrEnum):
    """How a statistic is answered; always decided by public facts."""

    EXACT = "exact"
    GLOBAL = "global sensitivity"
    LOCAL = "local sensitivity"
    INVERSE = "inverse sensitivity"
    EXPONENTIAL = "exponential mechanism"


@dataclass(frozen=True)
class Choice:
    """The mechanism that answers one statistic, and how far its envelope must be known.

    ``epsilon`` is that of the mechanism: with LOCAL, i records are protected with ``multiples[i − 1]`` times as much;
    with every other method it is what one record is protected with, whatever the data. ``refusal`` is R, the weight of
    no answer.
    """

    method: Method
    distance: int
    epsilon: Fraction
    multiples: Multiples = SINGLE
    refusal: int = 0


@dataclass(frozen=True)
class Added:
    """Noise added to a value, in steps of the answer's grid."""

    value: int
    noise: DiscreteLaplace

    def draw(self, source: Source | None = None) -> int | None:
        """The value plus one draw of the noise."""
        return self.value + self.noise.sample(source=source)

    def pmf(self, point: int | None) -> float:
        """The probability of an answer; there is always one."""
        return 0.0 if point is None else float(self.noise.pmf(point - self.value))


@dataclass(frozen=True)
class Silent:
    """No answer, whatever is drawn: the selection is too small for a finite envelope."""

    def draw(self, source: Source | None = None) -> int | None:
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

    def draw(self, source: Source | None = None) -> int | None:
        """One exact draw."""
        return self.first + weighted_index([1] * len(self.behind), self.behind, self.rate, source)

    def pmf(self, point: int | None) -> float:
        """The probability of a point."""
        if point is None or not 0 <= point - self.first < len(self.behind):
            return 0.0
        weights = [math.exp(-float(self.rate) * behind) for behind in self.behind]
        return weights[point - self.first] / math.fsum(weights)


Mechanism = Added | InverseSensitivity | ExponentialMechanism | Silent


def choose(
    statistic: Statistic,
    domain: Domain,
    neighbours: Neighbours,
    whole: bool,
    protection: Protection,
    epsilon: Fraction,
    *,
    cells: int = 1,
    size: int | None = None,
) -> Choice:
    """Pick the mechanism from public facts, or say why there is none.

    ``whole`` says that the selection is the whole table by declaration, ``size`` how many records that has if it is
    public; ``cells`` is how many answers like this one the question releases.
    """
    differential = epsilon * protection.differential_share
    if statistic.selects:
        return Choice(Method.EXPONENTIAL, 0, differential)
    any_size = Moves(neighbours, 1, None if whole else 0)  # only whether a sensitivity is known matters
    known = statistic.global_sensitivity(domain, any_size)
    if known == 0 and statistic.always_global:
        return Choice(Method.EXACT, 0, epsilon)
    if protection.level is not Level.DIFFERENTIAL:
        if missing := statistic.missing_bound(domain, protection.group):
            raise Unanswerable(_explain_missing(statistic, missing, protection.group))
        if statistic.always_global and protection.floor > 0 and known is not None:
            return Choice(Method.GLOBAL, 1, differential)
        return Choice(Method.LOCAL, protection.group, epsilon, multiples=protection.multiples)
    if known is not None:
        return Choice(Method.GLOBAL, 1, epsilon)
    if not statistic.nested:
        raise Unanswerable(f'{statistic.name} cannot be answered at protection = "differential"')
    return _choose_inverse(statistic, domain, protection, epsilon, REFUSAL * cells, size if whole else None)


def calibrate(choice: Choice, statistic: Statistic, summary: Summary, protection: Protection) -> Mechanism:
    """Turn a summary of the data into what is drawn."""
    if choice.method is Method.EXPONENTIAL:
        rate = statistic.rate(choice.epsilon, summary.moves.neighbours)
        return ExponentialMechanism(int(summary.domain.low), statistic.behind(summary), rate)
    if choice.method is Method.INVERSE:
        return _calibrate_inverse(choice, statistic, summary, protection)
    envelope = statistic.envelope(summary, choice.distance, protection.fineness)
    if envelope.value is None:
        return Silent()
    if choice.method is Method.EXACT:
        return Added(envelope.value, DiscreteLaplace(Fraction(0)))
    if choice.method is Method.GLOBAL:
        known = statistic.global_sensitivity(summary.domain, summary.moves)
        if known is None:
            raise AssertionError("a statistic chose its global sensitivity and then does not know it")
        # ⌊x+½⌋ − ⌊y+½⌋ ≤ ⌈x − y⌉: what rounding to the grid can add
        sensitivity: Fraction | float = Fraction(math.ceil(known * statistic.resolution(protection.fineness)))
    else:
        sensitivity = envelope.group_sensitivity(choice.multiples, find_floor(statistic, protection))
    if isinstance(sensitivity, float):
        return Silent()
    return Added(envelope.value, DiscreteLaplace(sensitivity / choice.epsilon))


def expected_error(mechanism: Mechanism, value: int | None, step: Fraction) -> float | None:
    """E|answer − value| in the units of ``step``, given that there is an answer; None where there is none to expect.

    >>> round(expected_error(Added(7, DiscreteLaplace(Fraction(10))), 7, Fraction(1, 2)), 6)
    4.991676
    """
    if isinstance(mechanism, Added):
        return mechanism.noise.expected_absolute * float(step)
    if value is None or isinstance(mechanism, ExponentialMechanism | Silent):
        return None
    return mechanism.expected_absolute(value) * float(step)


def find_floor(statistic: Statistic, protection: Protection) -> Fraction:
    """The least sensitivity that noise is calibrated to, in steps of the answer's grid.

    A declared floor of 1 is one step of the column for order statistics, so that ties do not make answers
    exact, and one step of the fine grid for averages.
    """
    unit = statistic.resolution(protection.fineness) if statistic.coarse_floor else 1
    return protection.floor * unit


def _choose_inverse(
    statistic: Statistic, domain: Domain, protection: Protection, epsilon: Fraction, refusal: int, size: int | None
) -> Choice:
    """J = ⌈(2/ε)·(ln R + ln 1/π_min + 14)⌉: data that survives so many changes is hardly ever refused."""
    if statistic.missing_bound(Domain(domain.step), 1) is None:
        enough = _find_enough(refusal, epsilon)
        if missing := statistic.missing_bound(Domain(domain.step), enough):
            raise Unanswerable(_explain_missing(statistic, missing, enough))
        if size is not None:
            _refuse_hopeless(statistic, size, refusal, epsilon)
    elif missing := statistic.missing_bound(domain, 1):
        raise Unanswerable(_explain_missing(statistic, missing, 1))
    least = make_measure(statistic, domain, protection.fineness).least
    distance = math.ceil(2 / epsilon * Fraction(math.log(refusal) - math.log(least) + NEGLIGIBLE))
    return Choice(Method.INVERSE, distance, epsilon, refusal=refusal)


def _find_enough(refusal: int, epsilon: Fraction) -> int:
    """How many changed records data of any usual shape must survive in order to be answered."""
    return math.ceil(2 / epsilon * Fraction(math.log(refusal) + NEGLIGIBLE))


def _refuse_hopeless(statistic: Statistic, size: int, refusal: int, epsilon: Fraction) -> None:
    """Refuse what would be refused anyway: all answers together have at most the weight 1, a refusal has R·q^b."""
    survived = _count_survived(statistic, size)
    if math.log(refusal) - float(epsilon / 2) * survived < HOPELESS:
        return
    needed = find_needed_size(statistic, refusal, epsilon)
    instead = f"ask about at least {needed:,} records"
    if survived:
        least = Fraction(math.ceil(20 * (math.log(refusal) + NEGLIGIBLE) / survived), 10)
        instead += f", or with epsilon = {text(least)} or more"
    raise Unanswerable(
        f"{statistic.name} of {size:,} records would be NULL nearly always, as {survived + 1:,} changed records could "
        f"move it anywhere: {instead}"
    )


def find_needed_size(statistic: Statistic, refusal: int, epsilon: Fraction) -> int:
    """About how many records must be selected so that an answer is likely."""
    enough = _find_enough(refusal, epsilon)
    size = 1
    while _count_survived(statistic, size) < enough:
        size *= 2
    return bisect_left(range(size), enough, key=lambda n: _count_survived(statistic, n))


def _count_survived(statistic: Statistic, size: int) -> int:
    """How many of ``size`` records can be replaced before the statistic without bounds could be anything."""

    def lost(distance: int) -> bool:
        runs = statistic.ranks(Moves(Neighbours.REPLACE, size), distance)
        return any(first < 1 or last > size for first, last in runs)

    return max(0, bisect_left(range(size + 1), True, key=lost) - 1)


@lru_cache(maxsize=256)
def make_measure(statistic: Statistic, domain: Domain, fineness: int) -> BaseMeasure:
    """The base measure on the grid of a statistic's answers."""
    resolution = statistic.resolution(fineness)
    centre = domain.centre * resolution if statistic.equivariant else 0
    low, high = (statistic.place(end, fineness) for end in statistic.range(domain))
    return BaseMeasure(
        centre,
        (2 * LIMIT * resolution).bit_length(),
        None if isinstance(low, float) else low,
        None if isinstance(high, float) else high,
    )


def _calibrate_inverse(
    choice: Choice, statistic: Statistic, summary: Summary, protection: Protection
) -> InverseSensitivity:
    unbounded = Domain(summary.domain.step)
    if statistic.missing_bound(unbounded, 1) is None:
        envelope = statistic.envelope(replace(summary, domain=unbounded), choice.distance, protection.fineness)
    else:
        envelope = statistic.envelope(summary, choice.distance, protection.fineness)
    balls: list[tuple[int, int]] = []
    for low, high in zip(envelope.lows, envelope.highs, strict=True):
        if isinstance(low, float) or isinstance(high, float):
            break
        balls.append((low, high))
    measure = make_measure(statistic, summary.domain, protection.fineness)
    return InverseSensitivity(tuple(balls), choice.epsilon, measure, choice.refusal)


def _explain_missing(statistic: Statistic, missing: str, distance: int) -> str:
    """Say what is missing and what would do without it; ``distance`` is how many changes must be survived."""
    return (
        f"{statistic.name} needs {missing}, and the column declares none: a few records could move it without limit. "
        f"Declare bounds, or ask for {statistic.advise(distance)}"
    )
