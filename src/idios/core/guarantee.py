"""What an answer promises, as a value that prints itself in one sentence, and how promises compose.

sequential   ε and δ add up, adaptively too; for groups, ε_i for every i by itself.
parallel     answers about parts of the table that no record is in two of. Adding or removing a record touches
             one part: the greatest ε counts. Replacing a record can take it out of one part and put it into
             another: the two greatest add up (so a partition answered with ε/2 each costs ε). Parts fixed by
             record position pay once. Groups: see below.
post-process what is computed from answers alone costs nothing.
choice       one of several mechanisms, picked at random without looking at the data, costs the greatest of them.
concentrated ρ composes in these ways like ε (``concentrated``), where every part has one. What has Gaussian noise
             promises ρ alone, and (ε, δ) only as what ρ stands for: so the ρ of a composition are added first and
             converted then, with any one δ, which is not added up. Beside a part without ρ, (ε, δ) add up.

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
one part for another attain it. The same holds of ρ_c(t), since the ρ of independent draws add up; t²·ρ is such a
ρ_c. Flat parts, e_c(t) = ε, have ê_c(i) = i·ε: i records may be in as many parts. So w·i
flat parts or more promise (w·ε, 2w·ε, …) together, and no smaller vector; ``multiples.part_multiples`` says what to ask
of parts instead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from typing import TypeAlias

from idios.core.calibration import Level
from idios.core.concentrated import convert_to_epsilon
from idios.core.exact import round_up_digits, text
from idios.core.multiples import SINGLE, Multiples
from idios.core.neighbours import Neighbours, to_plural
from idios.errors import InvalidInput

_LONGEST = 10  # characters of a number in words
_DIGITS = 4  # of one that is longer


@dataclass(frozen=True)
class Guarantee:
    """ε-iDP, (ε_1, …, ε_g)-gDP, (ε, δ)-DP or the same concentrated, for one notion of neighbouring data sets.

    ``epsilon`` is what one record is protected with. ``epsilons`` are ε_1, …, ε_g, or None where ε_i = i·ε. ``rho`` is
    the ρ of one record, where it is known, and ``rhos`` are ρ_1, …, ρ_g, or None where ρ_i = i²·ρ. With ρ and without δ
    it is a pure guarantee of which ρ is known too. With ρ and δ it is a concentrated one, which promises ρ and stands
    for (ε_i, δ): see ``concentrated``.

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
    rho: Fraction | None = field(default=None, metadata={"json": {"optional": True}})
    rhos: tuple[Fraction, ...] | None = field(default=None, metadata={"json": {"optional": True}})
    unit: str = field(default="record", metadata={"json": {"optional": True}})
    """What one change is about: a record, or a person with all their rows."""

    def __post_init__(self) -> None:
        if self.epsilon < 0 or not 0 <= self.delta <= 1 or self.group < 1:
            raise InvalidInput("a guarantee has ε ≥ 0, 0 ≤ δ ≤ 1 and a group of at least one record")
        if self.group > 1 and self.level is not Level.GROUP:
            raise InvalidInput(f"a group of {self.group} belongs to the level group, not {self.level}")
        if self.delta and self.level is Level.GROUP and self.rho is None:
            raise InvalidInput("a group guarantee has no delta, unless it has a rho")
        if self.rho is not None and self.rho < 0:
            raise InvalidInput("a guarantee has ρ ≥ 0")
        if self.epsilons is not None:
            self._check_vector(self.epsilons, self.epsilon, "ε")
            if self.epsilons == tuple(i * self.epsilon for i in range(1, self.group + 1)):
                object.__setattr__(self, "epsilons", None)  # so that equal promises are equal
        if self.rhos is not None:
            self._check_vector(self.rhos, self.rho, "ρ")
            if self.rhos == tuple(i**2 * self.rhos[0] for i in range(1, self.group + 1)):
                object.__setattr__(self, "rhos", None)
        object.__setattr__(self, "notation", self._notation())
        object.__setattr__(self, "sentence", self._sentence())

    @classmethod
    def for_groups(
        cls, epsilons: Sequence[Fraction], neighbours: Neighbours, rhos: Sequence[Fraction] | None = None
    ) -> Guarantee:
        """(ε_1, …, ε_g)-gDP, with its ρ where they are known.

        >>> Guarantee.for_groups([Fraction(1, 2)] * 3, Neighbours.REPLACE).notation
        '(0.5, 0.5, 0.5)-gDP'
        """
        rho, vector = (None, None) if rhos is None else (rhos[0], tuple(rhos))
        return cls(Level.GROUP, epsilons[0], neighbours, Fraction(0), len(epsilons), tuple(epsilons), rho, vector)

    @classmethod
    def concentrated(
        cls,
        level: Level,
        rho: Fraction,
        neighbours: Neighbours,
        delta: Fraction,
        multiples: Multiples = SINGLE,
    ) -> Guarantee:
        """ρ for one record, where nothing else is promised, as with Gaussian noise; δ is what it is converted with.

        At the level group i records have (m_i/m_1)²·ρ, so (ε(ρ_i, δ), δ), which is not i·ε.

        >>> one = Guarantee.concentrated(Level.DIFFERENTIAL, Fraction(1, 8), Neighbours.REPLACE, Fraction(1, 10**6))
        >>> one.notation, float(one.epsilon)
        ('0.125-zCDP', 2.41909317687)
        """
        return cls._convert(level, [(m / multiples[0]) ** 2 * rho for m in multiples], neighbours, delta)

    @classmethod
    def _convert(cls, level: Level, rhos: Sequence[Fraction], neighbours: Neighbours, delta: Fraction) -> Guarantee:
        """ρ_1, …, ρ_g and what they stand for."""
        # the conversion is rounded, so that of two hardly different ρ the greater might have the lesser ε
        epsilons = list(accumulate((convert_to_epsilon(rho, delta) for rho in rhos), max))
        if level is not Level.GROUP and len(rhos) == 1:
            return cls(level, epsilons[0], neighbours, delta, rho=rhos[0])
        return cls(level, epsilons[0], neighbours, delta, len(rhos), tuple(epsilons), rhos[0], tuple(rhos))

    def attach_rho(self, rho: Fraction, multiples: Multiples = SINGLE) -> Guarantee:
        """The same pure promise, of which ρ is known: that of one record, and (m_i/m_1)²·ρ of i records of a group."""
        vector = tuple((m / multiples[0]) ** 2 * rho for m in multiples) if self.level is Level.GROUP else None
        return replace(self, rho=rho, rhos=vector)

    def protect(self, size: int) -> Fraction:
        """ε_i, which i records are protected with; i·ε where nothing else is promised."""
        return size * self.epsilon if self.epsilons is None else self.epsilons[size - 1]

    def protect_rho(self, size: int) -> Fraction:
        """ρ_i, which i records are protected with, where it is known."""
        if self.rho is None:
            raise AssertionError("a guarantee without ρ was asked for it")
        return size**2 * self.rho if self.rhos is None else self.rhos[size - 1]

    @property
    def is_concentrated(self) -> bool:
        """Whether ρ is all that is promised."""
        return self.rho is not None and self.delta > 0

    def protect_unit(self, unit: str) -> Guarantee:
        """The same promise about something else that changes: a record, or a person with all their rows."""
        return self if self.unit == unit else replace(self, unit=unit)

    def __str__(self) -> str:
        return self.sentence

    @property
    def _counted(self) -> tuple[str, str]:
        """What one change is about, and several of it."""
        one = self.unit if self.unit == "record" else f"{self.unit} with all their rows"
        return one, to_plural(self.unit)

    def _check_vector(self, vector: tuple[Fraction, ...], first: Fraction | None, name: str) -> None:
        if self.level is not Level.GROUP or len(vector) != self.group or vector[0] != first:
            raise InvalidInput(
                f"a vector of {name} has one number for each size of group, and begins with that of one record"
            )
        if any(smaller > greater for smaller, greater in pairwise(vector)):
            raise InvalidInput(f"a greater group is never protected with a smaller {name}")

    def _vector(self) -> str:
        sizes = [*range(1, self.group + 1)] if self.group <= 4 else [1, 2, None, self.group]
        listed = ", ".join("…" if size is None else _write(self.protect(size)) for size in sizes)
        return f"({listed}; {text(self.delta)})" if self.delta else f"({listed})"

    def _notation(self) -> str:
        if self.level is Level.GROUP:
            return f"{self._vector()}-gDP"
        if self.is_concentrated:
            name = "zCDP" if self.level is Level.DIFFERENTIAL else "concentrated iDP"
            return f"{_write(self.rho)}-{name}"
        name = "iDP" if self.level is Level.INDIVIDUAL else "DP"
        return (
            f"({_write(self.epsilon)}, {text(self.delta)})-{name}" if self.delta else f"{_write(self.epsilon)}-{name}"
        )

    def _sentence(self) -> str:
        if not self.protect(self.group) and not (self.delta if self.rho is None else self.protect_rho(self.group)):
            return "No privacy is spent: the answer is publicly known."
        epsilon, (one, several) = _write(self.epsilon), self._counted
        change = "replacing" if self.neighbours is Neighbours.REPLACE else "adding or removing"
        factor = f"by a factor of at most e^{epsilon}"
        if self.epsilon <= 100:
            factor += f" ≈ {math.exp(self.epsilon):.3g}"
        if self.delta:
            factor += f", up to a probability of {text(self.delta)}"
        frozen = "for the noise calibrated on the actual data; how it was calibrated is not covered"
        if self.is_concentrated:
            return self._concentrated_sentence(change, factor, frozen)
        known = "" if self.rho is None else f", and ρ = {_write(self.rho)} in concentrated accounting"
        if self.level is Level.DIFFERENTIAL:
            named = f"({epsilon}, {text(self.delta)})" if self.delta else epsilon
            return (
                f"{named}-differential privacy{known}: whatever the data, {change} any one {one} changes the "
                f"probability of any answer {factor}."
            )
        if self.level is Level.INDIVIDUAL:
            return (
                f"{epsilon}-individual differential privacy{known}: {change} any one {one} of the actual data changes "
                f"the probability of any answer {factor}, {frozen}, and neither are groups of {several}."
            )
        records = f"{self.group} {several}" if self.group > 1 else f"1 {self.unit}"
        if self.epsilons is None:
            return (
                f"{epsilon}-group differential privacy for up to {records}{known}: {change} any i of them in the "
                f"actual data changes the probability of any answer by a factor of at most e^(i·{epsilon}), {frozen}."
            )
        if self.epsilons[-1] == self.epsilon:
            return (
                f"{self._vector()}-group differential privacy{known}: {change} any one {one} of the actual data, or "
                f"up to {self.group} together, changes the probability of any answer {factor}, {frozen}."
            )
        return (
            f"{self._vector()}-group differential privacy for up to {records}{known}: {change} any i of them in the "
            f"actual data changes the probability of any answer by a factor of at most e to the power of the i-th of "
            f"these numbers, {frozen}."
        )

    def _concentrated_sentence(self, change: str, factor: str, frozen: str) -> str:
        """What ρ means, and the (ε, δ) it stands for."""
        (one, several), rho, stands = self._counted, _write(self.rho), f"({_write(self.epsilon)}, {text(self.delta)})"
        moves = f"moves the distribution of the answers by a Rényi divergence of at most {rho}·α, for every order α > 1"
        if self.level is Level.DIFFERENTIAL:
            return (
                f"{rho}-zero-concentrated differential privacy: whatever the data, {change} any one {one} {moves}. It "
                f"stands for {stands}-differential privacy: that changes the probability of any answer {factor}."
            )
        if self.level is Level.INDIVIDUAL:
            return (
                f"{rho}-concentrated individual differential privacy: {change} any one {one} of the actual data "
                f"{moves}, {frozen}, and neither are groups of {several}. It stands for {stands}-individual "
                f"differential privacy: that changes the probability of any answer {factor}."
            )
        records = f"{self.group} {several}" if self.group > 1 else f"1 {self.unit}"
        grown = (
            "" if self.group == 1 else f", and {self.group} of them at most {_write(self.protect_rho(self.group))}·α"
        )
        return (
            f"{rho}-concentrated group differential privacy for up to {records}: {change} any one {one} of the actual "
            f"data {moves}{grown}, {frozen}. It stands for {self._vector()}-group differential privacy: {change} any i "
            f"of them changes the probability of any answer by a factor of at most e to the power of the i-th of these "
            f"numbers, up to a probability of {text(self.delta)}."
        )


def _write(number: Fraction | None) -> str:
    """A promise in words: exact while it is short, and rounded up where it is long."""
    written = str(text(number))
    if number is None or len(written) <= _LONGEST:
        return written
    return str(text(round_up_digits(number, _DIGITS)))


Protect: TypeAlias = Callable[[Guarantee, int], Fraction]
"""What a guarantee promises to a number of records: ε_i or ρ_i."""


def compose_sequential(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What several answers about the same data promise together: the sum.

    >>> half = Guarantee(Level.INDIVIDUAL, Fraction(1, 2), Neighbours.REPLACE)
    >>> compose_sequential([half, half, half]).notation
    '1.5-iDP'
    """
    parts = list(guarantees)
    return _combine(
        parts,
        lambda protect, size: sum((protect(part, size) for part in parts), Fraction(0)),
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

    @cache
    def find_rates(protect: Protect, part: Guarantee) -> list[Fraction]:
        """max_{t ≤ i} e_c(t)/t for every i, which is ê_c(i)/i."""
        return list(accumulate((protect(part, size) / size for size in sizes), max))

    def greatest(costs: Mapping[Guarantee, Fraction]) -> Fraction:
        listed = [cost for part, cost in costs.items() for _ in range(min(touched, counted[part]))]
        return sum(sorted(listed, reverse=True)[:touched], Fraction(0))

    def lose(protect: Protect, size: int) -> Fraction:
        every = sum((count * protect(part, size) for part, count in counted.items()), Fraction(0))
        return min(every, greatest({part: size * find_rates(protect, part)[size - 1] for part in counted}))

    return _combine(list(counted), lose, greatest({part: part.delta for part in counted}))


def split_between_parts(epsilon: Fraction, neighbours: Neighbours, parts: int) -> Fraction:
    """The ε that each of several disjoint parts gets, so that all of them together cost ``epsilon``."""
    return epsilon / 2 if neighbours is Neighbours.REPLACE and parts > 1 else epsilon


def compose_choice(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What a mechanism picked at random promises: the weakest of what could have been picked."""
    parts = list(guarantees)
    return _combine(
        parts,
        lambda protect, size: max(protect(part, size) for part in parts),
        max((part.delta for part in parts), default=Fraction(0)),
    )


def round_up(guarantee: Guarantee, multiples: Multiples) -> Guarantee:
    """The least promise of the form (m_1·ε, …, m_g·ε), or (m_1²·ρ, …, m_g²·ρ), that is kept: the one to charge.

    A count with noise for groups of 5 promises one record less than it promises 5. Charged by the former, a budget of B
    would not keep groups of 5 to m_5·B. What is kept for any group is left as it is.

    >>> count = Guarantee(Level.DIFFERENTIAL, Fraction(1, 5), Neighbours.REPLACE)
    >>> round_up(count, (Fraction(1),) * 5).notation, round_up(count, (Fraction(1), Fraction(2))).notation
    ('(1, 1, …, 1)-gDP', '0.2-DP')
    """
    rho = None
    if guarantee.rho is not None:
        rho = max(guarantee.protect_rho(size) / multiple**2 for size, multiple in enumerate(multiples, start=1))
    if rho is not None and guarantee.is_concentrated:
        one = multiples[0] ** 2 * rho
        if guarantee.level is not Level.GROUP and guarantee.rho == one:
            return guarantee
        charged = Guarantee.concentrated(Level.GROUP, one, guarantee.neighbours, guarantee.delta, tuple(multiples))
        return charged.protect_unit(guarantee.unit)
    epsilon = max(guarantee.protect(size) / multiple for size, multiple in enumerate(multiples, start=1))
    if guarantee.level is not Level.GROUP and guarantee.epsilon == multiples[0] * epsilon:
        return guarantee
    rhos = None if rho is None else [multiple**2 * rho for multiple in multiples]
    charged = Guarantee.for_groups([multiple * epsilon for multiple in multiples], guarantee.neighbours, rhos)
    return charged.protect_unit(guarantee.unit)


def _combine(parts: Sequence[Guarantee], lose: Callable[[Protect, int], Fraction], delta: Fraction) -> Guarantee:
    """The promise of several answers that lose ``lose(…, i)`` to i records; ``delta`` is that of basic composition."""
    if not parts:
        raise InvalidInput("at least one guarantee is needed to compose")
    if len({part.unit for part in parts}) > 1:
        raise InvalidInput("a guarantee for records cannot be composed with one for people")
    return _combine_numbers(parts, lose, delta).protect_unit(parts[0].unit)


def _combine_numbers(
    parts: Sequence[Guarantee], lose: Callable[[Protect, int], Fraction], delta: Fraction
) -> Guarantee:
    if len({part.neighbours for part in parts}) > 1:
        raise InvalidInput("guarantees for different notions of neighbouring data sets cannot be composed")
    level, neighbours = _common_level(parts), parts[0].neighbours
    sizes = range(1, _common_group(parts) + 1)
    rhos = None
    if all(part.rho is not None for part in parts):
        grows = any(part.rhos for part in parts)  # otherwise with the square of i, all of them
        one = lose(Guarantee.protect_rho, 1)
        rhos = [lose(Guarantee.protect_rho, size) if grows else size**2 * one for size in sizes]
        if delta:
            return Guarantee._convert(level, rhos, neighbours, max(part.delta for part in parts))
    elif delta and level is Level.GROUP:
        raise InvalidInput("a group guarantee cannot be composed with one that has a delta")
    epsilon = lose(Guarantee.protect, 1)
    if level is not Level.GROUP:
        return Guarantee(level, epsilon, neighbours, delta, rho=None if rhos is None else rhos[0])
    grows = any(part.epsilons for part in parts)  # otherwise with i, all of them
    epsilons = [lose(Guarantee.protect, size) if grows else size * epsilon for size in sizes]
    return Guarantee.for_groups(epsilons, neighbours, rhos)


def _common_level(parts: Iterable[Guarantee]) -> Level:
    return min((part.level for part in parts), key=list(Level).index)


def _common_group(parts: Collection[Guarantee]) -> int:
    """The greatest group that all parts protect."""
    if not parts or _common_level(parts) is not Level.GROUP:
        return 1
    return min(part.group for part in parts if part.level is Level.GROUP)
