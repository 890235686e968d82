"""What an answer promises, as a value that prints itself in one sentence, and how promises compose.

sequential   ε and δ add up, adaptively too; for groups, ε_i for every i by itself.
parallel     answers about parts of the table that no record is in two of. Adding or removing a record touches
             one part: the greatest ε counts. Replacing a record can take it out of one part and put it into
             another: the two greatest add up (so a partition answered with ε/2 each costs ε). Parts fixed by
             record position pay once. Groups: see below.
post-process what is computed from answers alone costs nothing.
choice       one of several mechanisms, picked at random without looking at the data, costs the greatest of them.

Levels do not mix upwards: an individual guarantee beside a differential one leaves an individual one. Notions of
neighbour never mix: add-remove does not imply replace here, not even at twice the ε ({0,0,5,5,100,100} has median
sensitivity 0 one way and 47.5 the other).

Parallel composition of groups. Let part c promise e_c(t) to t records, and i records change. Let w be 2 under replace
and 1 under add-remove, or where a record's part is fixed by its position.

Proposition. They lose at most Σ_c e_c(i), and at most the w greatest of ê_c(i) = max_{t ≤ i} (i/t)·e_c(t) together.
Proof. Let t_c of the i records touch part c, so that t_c ≤ i and Σ_c t_c ≤ w·i. Each part sees a data set at distance
t_c from its own, and the noise of the parts is independent: the loss is Σ_c e_c(t_c) ≤ Σ_c e_c(i), as e_c does not
decrease. And e_c(t_c) ≤ (t_c/i)·ê_c(i), where the weights t_c/i are at most 1 each and w together: their sum is
greatest with weight 1 on the w greatest. ∎
Where e_c(t)/t never falls, as for (ε, 2ε, …, gε) and for differential privacy, ê_c = e_c, and i records that all leave
one part for another attain it. Flat parts, e_c(t) = ε, have ê_c(i) = i·ε: i records may be in as many parts. So w·i
flat parts or more promise (w·ε, 2w·ε, …) together, and no smaller vector; ``multiples.part_multiples`` says what to ask
of parts instead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise

from idios.core.calibration import Level
from idios.core.exact import text
from idios.core.multiples import Multiples
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput


@dataclass(frozen=True)
class Guarantee:
    """ε-iDP, (ε_1, …, ε_g)-gDP or (ε, δ)-DP, for one notion of neighbouring data sets.

    ``epsilon`` is what one record is protected with. ``epsilons`` are ε_1, …, ε_g, or None where ε_i = i·ε.

    >>> print(Guarantee(Level.DIFFERENTIAL, Fraction(1, 2), Neighbours.REPLACE))
    0.5-differential privacy: whatever the data, replacing any one record changes the probability of any \
answer by a factor of at most e^0.5 ≈ 1.65.
    """

    notation: str = field(init=False, repr=False, compare=False)
    """The guarantee as the papers write it."""
    sentence: str = field(init=False, repr=False, compare=False)
    """The guarantee in words."""
    level: Level
    epsilon: Fraction
    neighbours: Neighbours
    delta: Fraction = Fraction(0)
    group: int = 1
    epsilons: tuple[Fraction, ...] | None = field(default=None, metadata={"json": {"optional": True}})

    def __post_init__(self) -> None:
        if self.epsilon < 0 or not 0 <= self.delta <= 1 or self.group < 1:
            raise InvalidInput("a guarantee has ε ≥ 0, 0 ≤ δ ≤ 1 and a group of at least one record")
        if self.group > 1 and self.level is not Level.GROUP:
            raise InvalidInput(f"a group of {self.group} belongs to the level group, not {self.level}")
        if self.delta and self.level is Level.GROUP:
            raise InvalidInput("a group guarantee has no delta")
        if self.epsilons is not None:
            self._check_epsilons(self.epsilons)
        object.__setattr__(self, "notation", self._notation())
        object.__setattr__(self, "sentence", self._sentence())

    @classmethod
    def for_groups(cls, epsilons: Sequence[Fraction], neighbours: Neighbours) -> Guarantee:
        """(ε_1, …, ε_g)-gDP.

        >>> Guarantee.for_groups([Fraction(1, 2)] * 3, Neighbours.REPLACE).notation
        '(0.5, 0.5, 0.5)-gDP'
        """
        return cls(Level.GROUP, epsilons[0], neighbours, group=len(epsilons), epsilons=tuple(epsilons))

    def protect(self, size: int) -> Fraction:
        """ε_i, which i records are protected with; i·ε where nothing else is promised."""
        return size * self.epsilon if self.epsilons is None else self.epsilons[size - 1]

    def __str__(self) -> str:
        return self.sentence

    def _check_epsilons(self, epsilons: tuple[Fraction, ...]) -> None:
        if self.level is not Level.GROUP or len(epsilons) != self.group or epsilons[0] != self.epsilon:
            raise InvalidInput(
                "a vector of ε has one number for each size of group, and begins with that of one record"
            )
        if any(smaller > greater for smaller, greater in pairwise(epsilons)):
            raise InvalidInput("a greater group is never protected with a smaller ε")
        if epsilons == tuple(i * self.epsilon for i in range(1, self.group + 1)):
            object.__setattr__(self, "epsilons", None)  # so that equal promises are equal

    def _vector(self) -> str:
        sizes = [*range(1, self.group + 1)] if self.group <= 4 else [1, 2, None, self.group]
        return f"({', '.join('…' if size is None else str(text(self.protect(size))) for size in sizes)})"

    def _notation(self) -> str:
        epsilon, delta = text(self.epsilon), text(self.delta)
        if self.level is Level.GROUP:
            return f"{self._vector()}-gDP"
        name = "iDP" if self.level is Level.INDIVIDUAL else "DP"
        return f"({epsilon}, {delta})-{name}" if self.delta else f"{epsilon}-{name}"

    def _sentence(self) -> str:
        epsilon = text(self.epsilon)
        change = "replacing" if self.neighbours is Neighbours.REPLACE else "adding or removing"
        factor = f"by a factor of at most e^{epsilon}"
        if self.epsilon <= 100:
            factor += f" ≈ {math.exp(self.epsilon):.3g}"
        if self.delta:
            factor += f", up to a probability of {text(self.delta)}"
        if not self.protect(self.group) and not self.delta:
            return "No privacy is spent: the answer is publicly known."
        if self.level is Level.DIFFERENTIAL:
            named = f"({epsilon}, {text(self.delta)})" if self.delta else epsilon
            return (
                f"{named}-differential privacy: whatever the data, {change} any one record changes the "
                f"probability of any answer {factor}."
            )
        frozen = "for the noise calibrated on the actual data; how it was calibrated is not covered"
        if self.level is Level.INDIVIDUAL:
            return (
                f"{epsilon}-individual differential privacy: {change} any one record of the actual data changes "
                f"the probability of any answer {factor}, {frozen}, and neither are groups of records."
            )
        records = f"{self.group} records" if self.group > 1 else "1 record"
        if self.epsilons is None:
            return (
                f"{epsilon}-group differential privacy for up to {records}: {change} any i of them in the actual data "
                f"changes the probability of any answer by a factor of at most e^(i·{epsilon}), {frozen}."
            )
        if self.epsilons[-1] == self.epsilon:
            return (
                f"{self._vector()}-group differential privacy: {change} any one record of the actual data, or up to "
                f"{self.group} together, changes the probability of any answer {factor}, {frozen}."
            )
        return (
            f"{self._vector()}-group differential privacy for up to {records}: {change} any i of them in the actual "
            f"data changes the probability of any answer by a factor of at most e to the power of the i-th of these "
            f"numbers, {frozen}."
        )


def compose_sequential(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What several answers about the same data promise together: the sum.

    >>> half = Guarantee(Level.INDIVIDUAL, Fraction(1, 2), Neighbours.REPLACE)
    >>> compose_sequential([half, half, half]).notation
    '1.5-iDP'
    """
    parts = list(guarantees)
    return _combine(
        parts,
        lambda size: sum((part.protect(size) for part in parts), Fraction(0)),
        sum((part.delta for part in parts), Fraction(0)),
    )


def compose_parallel(guarantees: Iterable[Guarantee], *, fixed_parts: bool = False) -> Guarantee:
    """What answers about disjoint parts promise together.

    ``fixed_parts`` says that a record's part is fixed by its position, so that no change moves it to another.

    >>> quarter = Guarantee(Level.INDIVIDUAL, Fraction(1, 4), Neighbours.REPLACE)
    >>> compose_parallel([quarter] * 10).notation
    '0.5-iDP'
    >>> flat = Guarantee.for_groups([Fraction(1)] * 3, Neighbours.ADD_REMOVE)
    >>> [compose_parallel([flat] * parts).notation for parts in (10, 2)]
    ['(1, 2, 3)-gDP', '(1, 2, 2)-gDP']
    """
    counted = Counter(guarantees)  # the cells of a question are many, and promise the same
    touched = 1
    if not fixed_parts and any(part.neighbours is Neighbours.REPLACE for part in counted):
        touched = 2
    sizes = range(1, _common_group(counted) + 1)
    # max_{t ≤ i} e_c(t)/t for every i, which is ê_c(i)/i
    rates = {part: list(accumulate((part.protect(size) / size for size in sizes), max)) for part in counted}

    def greatest(costs: Mapping[Guarantee, Fraction]) -> Fraction:
        listed = [cost for part, cost in costs.items() for _ in range(min(touched, counted[part]))]
        return sum(sorted(listed, reverse=True)[:touched], Fraction(0))

    def lose(size: int) -> Fraction:
        every = sum((count * part.protect(size) for part, count in counted.items()), Fraction(0))
        return min(every, greatest({part: size * rates[part][size - 1] for part in counted}))

    return _combine(list(counted), lose, greatest({part: part.delta for part in counted}))


def split_between_parts(epsilon: Fraction, neighbours: Neighbours, parts: int) -> Fraction:
    """The ε that each of several disjoint parts gets, so that all of them together cost ``epsilon``."""
    return epsilon / 2 if neighbours is Neighbours.REPLACE and parts > 1 else epsilon


def compose_choice(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What a mechanism picked at random promises: the weakest of what could have been picked."""
    parts = list(guarantees)
    return _combine(
        parts,
        lambda size: max(part.protect(size) for part in parts),
        max((part.delta for part in parts), default=Fraction(0)),
    )


def round_up(guarantee: Guarantee, multiples: Multiples) -> Guarantee:
    """The least promise of the form (m_1·ε, …, m_g·ε) that is kept, which is the one to charge.

    A count with noise for groups of 5 promises one record less than it promises 5. Charged by the former, a budget of B
    would not keep groups of 5 to m_5·B. What is kept for any group is left as it is.

    >>> count = Guarantee(Level.DIFFERENTIAL, Fraction(1, 5), Neighbours.REPLACE)
    >>> round_up(count, (Fraction(1),) * 5).notation, round_up(count, (Fraction(1), Fraction(2))).notation
    ('(1, 1, …, 1)-gDP', '0.2-DP')
    """
    epsilon = max(guarantee.protect(size) / multiple for size, multiple in enumerate(multiples, start=1))
    if guarantee.level is not Level.GROUP and guarantee.epsilon == multiples[0] * epsilon:
        return guarantee
    return Guarantee.for_groups([multiple * epsilon for multiple in multiples], guarantee.neighbours)


def _combine(parts: Sequence[Guarantee], lose: Callable[[int], Fraction], delta: Fraction) -> Guarantee:
    """The promise of several answers that lose ``lose(i)`` to i records."""
    if not parts:
        raise InvalidInput("at least one guarantee is needed to compose")
    if len({part.neighbours for part in parts}) > 1:
        raise InvalidInput("guarantees for different notions of neighbouring data sets cannot be composed")
    level = _common_level(parts)
    if level is Level.GROUP and any(part.delta for part in parts):
        raise InvalidInput("a group guarantee cannot be composed with one that has a delta")
    group = _common_group(parts)
    if all(part.epsilons is None for part in parts) or level is not Level.GROUP:
        return Guarantee(level, lose(1), parts[0].neighbours, delta, group)
    return Guarantee.for_groups([lose(size) for size in range(1, group + 1)], parts[0].neighbours)


def _common_level(parts: Iterable[Guarantee]) -> Level:
    return min((part.level for part in parts), key=list(Level).index)


def _common_group(parts: Collection[Guarantee]) -> int:
    """The greatest group that all parts protect."""
    if not parts or _common_level(parts) is not Level.GROUP:
        return 1
    return min(part.group for part in parts if part.level is Level.GROUP)
