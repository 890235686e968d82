"""How guarantees compose.

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

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from idios.core.calibration import Level
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.errors import InvalidInput


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
