"""What an answer promises, as a value that prints itself in one sentence; ``accounting`` says how promises compose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise

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

    def protect_people(self, records: int, level: Level) -> Guarantee:
        """Convert a promise about records into one about people, who have so many records each at most.

        >>> rows = Guarantee(Level.DIFFERENTIAL, Fraction(1, 10), Neighbours.REPLACE)
        >>> rows.protect_people(5, Level.INDIVIDUAL).notation
        '0.5-DP'
        >>> rows = Guarantee.for_groups([Fraction(1), Fraction(2), Fraction(3), Fraction(3)], Neighbours.REPLACE)
        >>> [rows.protect_people(2, level).notation for level in (Level.INDIVIDUAL, Level.GROUP)]
        ['2-iDP', '(2, 3)-gDP']
        """
        if records == 1:
            return self
        people = range(1, self.group // records + 1)
        if self.level is Level.GROUP and level is Level.GROUP:
            return Guarantee.for_groups([self.protect(i * records) for i in people], self.neighbours)
        return Guarantee(
            level if self.level is Level.GROUP else self.level, self.protect(records), self.neighbours, self.delta
        )

    def __str__(self) -> str:
        return self.sentence

    __repr__ = __str__

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
