"""What an answer promises, as a value that prints itself in one sentence, and how promises compose.

sequential   ε and δ add up, adaptively too.
parallel     answers about parts of the table that no record is in two of. Adding or removing a record touches
             one part: the greatest ε counts. Replacing a record can take it out of one part and put it into
             another: the two greatest add up (so a partition answered with ε/2 each costs ε). Parts fixed by
             record position pay once.
post-process what is computed from answers alone costs nothing.
choice       one of several mechanisms, picked at random without looking at the data, costs the greatest of them.

Levels do not mix upwards: an individual guarantee beside a differential one leaves an individual one. Notions of
neighbour never mix: add-remove does not imply replace here, not even at twice the ε ({0,0,5,5,100,100} has median
sensitivity 0 one way and 47.5 the other).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from idios.core.calibration import Level
from idios.core.exact import text
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput


@dataclass(frozen=True)
class Guarantee:
    """ε-iDP, (ε, …, gε)-gDP or (ε, δ)-DP, for one notion of neighbouring data sets.

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

    def __post_init__(self) -> None:
        if self.epsilon < 0 or not 0 <= self.delta <= 1 or self.group < 1:
            raise InvalidInput("a guarantee has ε ≥ 0, 0 ≤ δ ≤ 1 and a group of at least one record")
        if self.group > 1 and self.level is not Level.GROUP:
            raise InvalidInput(f"a group of {self.group} belongs to the level group, not {self.level}")
        if self.delta and self.level is Level.GROUP:
            raise InvalidInput("a group guarantee has no delta")
        object.__setattr__(self, "notation", self._notation())
        object.__setattr__(self, "sentence", self._sentence())

    def __str__(self) -> str:
        return self.sentence

    def _notation(self) -> str:
        epsilon, delta = text(self.epsilon), text(self.delta)
        if self.level is Level.GROUP:
            sizes = [*range(1, self.group + 1)] if self.group <= 4 else [1, 2, None, self.group]
            steps = ["…" if size is None else str(text(size * self.epsilon)) for size in sizes]
            return f"({', '.join(steps)})-gDP"
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
        if not self.epsilon and not self.delta:
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
        return (
            f"{epsilon}-group differential privacy for up to {records}: {change} any i of them in the actual data "
            f"changes the probability of any answer by a factor of at most e^(i·{epsilon}), {frozen}."
        )


def compose_sequential(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What several answers about the same data promise together: the sum.

    >>> half = Guarantee(Level.INDIVIDUAL, Fraction(1, 2), Neighbours.REPLACE)
    >>> compose_sequential([half, half, half]).notation
    '1.5-iDP'
    """
    return _combine(list(guarantees), sum)


def compose_parallel(guarantees: Iterable[Guarantee], *, fixed_parts: bool = False) -> Guarantee:
    """What answers about disjoint parts promise together.

    ``fixed_parts`` says that a record's part is fixed by its position, so that no change moves it to another.

    >>> quarter = Guarantee(Level.INDIVIDUAL, Fraction(1, 4), Neighbours.REPLACE)
    >>> compose_parallel([quarter] * 10).notation
    '0.5-iDP'
    """
    parts = list(guarantees)
    paying = 1
    if parts and parts[0].neighbours is Neighbours.REPLACE and not fixed_parts:
        paying = 2
    return _combine(parts, lambda costs: sum(sorted(costs, reverse=True)[:paying], Fraction(0)))


def split_between_parts(epsilon: Fraction, neighbours: Neighbours, parts: int) -> Fraction:
    """The ε that each of several disjoint parts gets, so that all of them together cost ``epsilon``."""
    return epsilon / 2 if neighbours is Neighbours.REPLACE and parts > 1 else epsilon


def compose_choice(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What a mechanism picked at random promises: the weakest of what could have been picked."""
    return _combine(list(guarantees), max)


def _combine(parts: Sequence[Guarantee], cost: Callable[[list[Fraction]], Fraction | int]) -> Guarantee:
    if not parts:
        raise InvalidInput("at least one guarantee is needed to compose")
    if len({part.neighbours for part in parts}) > 1:
        raise InvalidInput("guarantees for different notions of neighbouring data sets cannot be composed")
    levels = {part.level for part in parts}
    level = min(levels, key=list(Level).index)
    if level is Level.GROUP and any(part.delta for part in parts):
        raise InvalidInput("a group guarantee cannot be composed with one that has a delta")
    group = min(part.group for part in parts if part.level is Level.GROUP) if level is Level.GROUP else 1
    return Guarantee(
        level,
        Fraction(cost([part.epsilon for part in parts])),
        parts[0].neighbours,
        Fraction(cost([part.delta for part in parts])),
        group,
    )
