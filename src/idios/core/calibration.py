"""From a level of protection, an envelope and ε to what is drawn.

Which mechanism answers is decided by public facts alone (``choose``): the level, the declared bounds and δ,
the statistic. What the data decides, the scale and the shape of the noise, is for the controller.

individual     discrete Laplace of scale max(LS, floor)/ε                     ε-iDP
group          discrete Laplace of scale max_i max(A_i, floor)/(m_i·ε)        (m_1·ε, …, m_g·ε)-gDP
               where GS is known and small, of scale max_i(i/m_i)·GS/ε        the same, whatever the data
differential   discrete Laplace of scale GS/ε where GS is known and small     ε-DP
               the inverse-sensitivity mechanism on a declared range          ε-DP
               without bounds, the same with a private refusal                (ε, δ)-DP
any            one category drawn by the counts (``Statistic.selects``)       ε-DP

The multiples m_1 ≤ … ≤ m_g of ε are declared with the group: 1, 2, …, g unless said otherwise, and flat (1, …, 1) for
a household that is protected like one record. A mechanism that is ε′-DP protects i records with i·ε′, so it promises
(m_1·ε, …, m_g·ε) exactly if ε′ ≤ ε/max_i(i/m_i); it is given that much (``Choice.epsilon``). At m_i = i that is ε.

Several numbers of one question whose noise is fitted to the data are calibrated together (``joint``); here is one
statistic by itself.

The one with a refusal needs a proof. Let B_i = hi_i − lo_i + 1 be the number of grid points within i changes, W, J and
δ public constants, q = e^{−ε/2}, C ≥ (W/δ)·max(1+q, 1/q), and b = max{j ≤ J : B_j ≤ W}, or −1 if there is none. Draw a
point t with weight w(t) = q^{u(t)} among S = {t : u(t) ≤ b}, or refuse with weight C·q^b; if b = −1 refuse.

Theorem. For every ordered pair of neighbours D, D′, each calibrated on itself, Σ_s max(0, P(s) − e^ε·P′(s)) ≤ δ.

Let primes denote D′, and N the sum of all weights at D.

1. Envelopes are nested, so |u − u′| ≤ 1 at every point, B_i(D′) ≤ B_{i+1}(D), and hence |b − b′| ≤ 1. (B grows with i,
   and is infinite from the distance on at which the statistic can be undefined, as its range is here.)
2. On outcomes possible at both, w ≤ w′/q: for a point by 1., for the refusal since b ≥ b′ − 1.
3. N′ = Σ_{S′} q^{u′} + C·q^{b′} ≤ (1/q)·(Σ_{S′} q^u + C·q^b) ≤ (1/q)·(N + Σ_{S′∖S} q^u) =: (N/q)·(1 + X).
4. So where both are possible P = w/N ≤ (w′/q)/N = P′·N′/(q·N) ≤ e^ε·(1 + X)·P′, which makes P − e^ε·P′ at most
   P·X/(1+X). With Y the mass that P gives to what D′ cannot answer, the sum in the theorem is at most X + Y.
5. A point of S′∖S has b < u ≤ u′+1 ≤ b′+1; one of S∖S′ has b′ ≤ u′−1 ≤ u ≤ b. Both sets have at most W points, so
       b′ = b+1:  X ≤ W·q^{b+1}/N,  Y = 0
       b′ = b:    X ≤ W·q^{b+1}/N,  Y ≤ W·q^b/N
       b′ = b−1:  X = 0,            Y ≤ W·q^{b−1}/N
   and as N ≥ C·q^b, always X + Y ≤ (W/C)·max(1+q, 1/q) ≤ δ.
6. If b′ = −1 < b then b = 0, and D releases with probability at most W/(W+C) ≤ δ, while its refusal is no likelier
   than that of D′. If b = −1 < b′ then b′ = 0 and D′ refuses with probability at least 1 − W/C, so that
   1 − e^ε·P′(refusal) ≤ W/C ≤ δ. ∎

It needs envelopes that are nested *as computed*, which the contract tests of the statistics check, and W, J, C that
depend on nothing secret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from idios.core.distributions import DiscreteLaplace, InverseSensitivity
from idios.core.domain import Domain
from idios.core.envelope import Envelope
from idios.core.exact import INFINITY, exact, exp_minus, minus, whole
from idios.core.multiples import SINGLE, Multiples, check_multiples, declare_multiples, limit_epsilon
from idios.core.neighbours import Moves, Neighbours
from idios.core.sampling import Source, weighted_index
from idios.core.statistics.base import FINENESS, Reading, Statistic
from idios.core.summary import Summary
from idios.errors import InvalidInput, Unanswerable

WIDTH = 10**12
"""W of the bounds-free mechanism unless declared: generous, it enters as a logarithm."""


LEAST_DELTA = Fraction(1, 10**100)


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
    make one of the column, ``width`` the W of the bounds-free mechanism in steps of the column.
    """

    level: Level = Level.INDIVIDUAL
    multiples: Multiples = SINGLE
    delta: Fraction = Fraction(0)
    floor: Fraction = Fraction(1)
    fineness: int = FINENESS
    width: int = WIDTH

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
        delta: object = None,
        floor: object = None,
        fineness: object = FINENESS,
        width: object = WIDTH,
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
        if delta is not None and named is not Level.DIFFERENTIAL:
            raise InvalidInput(f'delta = {delta!r} belongs to protection = "differential" only')
        share = Fraction(0) if delta is None else exact(delta, "delta")
        if delta is not None and not LEAST_DELTA <= share < 1:
            raise InvalidInput(f"delta must be greater than 0 (at least 1e-100) and less than 1, got {delta!r}")
        least = Fraction(1) if floor is None else exact(floor, "floor")
        if least < 0:
            raise InvalidInput(f"floor must be at least 0, got {floor!r}")
        multiples = SINGLE if group is None else declare_multiples(group)
        return cls(named, multiples, share, least, whole(fineness, "fineness"), whole(width, "width"))

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
    REFUSING = "inverse sensitivity with refusal"
    EXPONENTIAL = "exponential mechanism"


@dataclass(frozen=True)
class Choice:
    """The mechanism that answers one statistic, and how far its envelope must be known.

    ``epsilon`` is that of the mechanism: with LOCAL, i records are protected with ``multiples[i − 1]`` times as much;
    with every other method it is what one record is protected with, whatever the data.
    """

    method: Method
    distance: int
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    multiples: Multiples = SINGLE
    reading: Reading | None = None
    """What it reads of the data, where that is not what the statistic reads."""


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
) -> Choice:
    """Pick the mechanism from public facts, or say why there is none.

    ``whole`` says that the selection is the whole table by declaration.
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
    low, high = statistic.range(domain)
    if minus(high, low) < INFINITY:
        points = statistic.place(high, protection.fineness) - statistic.place(low, protection.fineness) + 1
        return Choice(Method.INVERSE, _find_distance(int(points), epsilon), epsilon)
    if missing := statistic.missing_bound(domain, 1):
        raise Unanswerable(_explain_missing(statistic, missing, 1))
    if not protection.delta:
        raise Unanswerable(
            f"{statistic.name} of a column without bounds needs a declared delta at protection = "
            '"differential"; declare bounds or delta'
        )
    return _choose_refusing(statistic, domain, protection, epsilon)


def calibrate(choice: Choice, statistic: Statistic, summary: Summary, protection: Protection) -> Mechanism:
    """Turn a summary of the data into what is drawn."""
    if choice.method is Method.EXPONENTIAL:
        rate = statistic.rate(choice.epsilon, summary.moves.neighbours)
        return ExponentialMechanism(int(summary.domain.low), statistic.behind(summary), rate)
    envelope = statistic.envelope(summary, choice.distance, protection.fineness)
    if choice.method is Method.INVERSE:
        low, high = (int(statistic.place(end, protection.fineness)) for end in statistic.range(summary.domain))
        return InverseSensitivity(envelope, choice.epsilon, low, high)
    if choice.method is Method.REFUSING:
        return _calibrate_refusing(envelope, statistic, choice, protection)
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


def _find_distance(points: int, epsilon: Fraction) -> int:
    """K = ⌈(2/ε)·ln(10⁶·points)⌉: all points further away weigh less than 10⁻⁶ of one at distance 0."""
    return math.ceil(2 / epsilon * Fraction(math.log(10**6 * points)))


def _choose_refusing(statistic: Statistic, domain: Domain, protection: Protection, epsilon: Fraction) -> Choice:
    """J = ⌈(2/ε)·ln(10⁶·C)⌉: data that survives so many changes is refused once in a million."""
    delta = protection.delta
    weight = _compute_refusal_weight(statistic, protection, epsilon, delta)
    distance = math.ceil(2 / epsilon * Fraction(math.log(10**6 * weight)))
    # Within b changes at most W points can be drawn, so a refusal has odds of at least C·q^b/W ≥ q^b/δ.
    hopeful = math.ceil(2 / epsilon * Fraction(-math.log(delta)))
    if missing := statistic.missing_bound(domain, hopeful):
        raise Unanswerable(_explain_missing(statistic, missing, hopeful))
    return Choice(Method.REFUSING, distance, epsilon, delta)


def _compute_refusal_weight(statistic: Statistic, protection: Protection, epsilon: Fraction, delta: Fraction) -> int:
    """C = ⌈(W/δ)·max(1+q, 1/q)⌉, rounded up with certainty; a greater C is as good."""
    bits = 64
    q_low, q_high = exp_minus(epsilon / 2, bits)
    while q_low == 0:
        bits *= 2
        q_low, q_high = exp_minus(epsilon / 2, bits)
    factor = max(1 + Fraction(q_high, 1 << bits), Fraction(1 << bits, q_low))
    return math.ceil(_compute_width(statistic, protection) / delta * factor)


def _compute_width(statistic: Statistic, protection: Protection) -> int:
    """W in steps of the answer's grid."""
    return protection.width * statistic.resolution(protection.fineness)


def _calibrate_refusing(
    envelope: Envelope, statistic: Statistic, choice: Choice, protection: Protection
) -> InverseSensitivity | Silent:
    width = _compute_width(statistic, protection)
    survived = -1
    for i, (low, high) in enumerate(zip(envelope.lows, envelope.highs, strict=True)):
        if not minus(high, low) < width:
            break
        survived = i
    if survived < 0:
        return Silent()
    ball = Envelope(envelope.value, envelope.lows[: survived + 1], envelope.highs[: survived + 1])
    weight = _compute_refusal_weight(statistic, protection, choice.epsilon, choice.delta)
    return InverseSensitivity(ball, choice.epsilon, refusal=weight)


def _explain_missing(statistic: Statistic, missing: str, distance: int) -> str:
    """Say what is missing and what would do without it; ``distance`` is how many changes must be survived."""
    return (
        f"{statistic.name} needs {missing}, and the column declares none: a few records could move it without limit. "
        f"Declare bounds, or ask for {statistic.advise(distance)}"
    )
