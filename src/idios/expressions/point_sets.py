"""Sets of points, and conditions on them, of which preimages are made; None is one that cannot be expressed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from idios.expressions.predicates import (
    ALWAYS,
    EVERYTHING,
    NEVER,
    NOTHING,
    Among,
    And,
    Intervals,
    Or,
    Predicate,
    complement,
    gather_by_column,
    union,
)
from idios.expressions.work import Work

COMPARED: Mapping[str, Callable[[Fraction], Intervals]] = {
    "=": lambda c: ((int(c), int(c)),) if c.denominator == 1 else NOTHING,
    "<": lambda c: ((None, math.ceil(c) - 1),),
    "<=": lambda c: ((None, math.floor(c)),),
    ">": lambda c: ((math.floor(c) + 1, None),),
    ">=": lambda c: ((math.ceil(c), None),),
    "<>": lambda c: complement(COMPARED["="](c)),
}
"""The points for which a comparison with a constant is true."""


def of_points(points: Iterable[int]) -> Intervals:
    """Some points as intervals."""
    return union((point, point) for point in points)


def list_points(intervals: Intervals, count: int) -> Iterable[int]:
    """Those of the points 0, 1, … before ``count`` that lie in some intervals."""
    for first, last in intervals:
        yield from range(max(0, first or 0), count if last is None else min(count, last + 1))


def contains(intervals: Intervals, point: int) -> bool:
    """Whether a point lies in one of some intervals."""
    return any((first is None or first <= point) and (last is None or point <= last) for first, last in intervals)


def find_affine_preimage(intervals: Intervals, factor: Fraction, shift: Fraction = Fraction(0)) -> Intervals:
    """The whole numbers p with p·factor + shift in a set of points.

    >>> find_affine_preimage(((3, 8), (20, None)), Fraction(-2), Fraction(1))
    ((None, -10), (-3, -1))
    """
    if not factor:
        at_shift = shift.denominator == 1 and contains(intervals, int(shift))
        return EVERYTHING if at_shift else NOTHING
    found = []
    for first, last in intervals:
        low = None if first is None else (first - shift) / factor
        high = None if last is None else (last - shift) / factor
        if factor < 0:
            low, high = high, low
        found.append((None if low is None else math.ceil(low), None if high is None else math.floor(high)))
    return union(found)


def join_all(parts: Sequence[Predicate | None], work: Work) -> Predicate | None:
    """The conjunction, with one condition on each column; None if it cannot be expressed."""
    if NEVER in parts:
        return NEVER
    if None in parts:
        return None
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    joined = gather_by_column(And(tuple(flat)), work)  # type: ignore[arg-type]
    if any(isinstance(part, Among) and not part.intervals and not part.nulls for part in joined):
        return NEVER
    return joined[0] if len(joined) == 1 else And(tuple(joined))


def join_any(parts: Sequence[Predicate | None], work: Work) -> Predicate | None:
    """The disjunction, with one condition on each column; None if it cannot be expressed."""
    if ALWAYS in parts:
        return ALWAYS
    if None in parts:
        return None
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    joined = gather_by_column(Or(tuple(flat)), work)  # type: ignore[arg-type]
    if any(isinstance(part, Among) and part.intervals == EVERYTHING and part.nulls for part in joined):
        return ALWAYS
    return joined[0] if len(joined) == 1 else Or(tuple(joined))
