"""Sets of grid points as intervals: disjoint, ascending, not adjacent, so that equal sets are equal tuples.

An end that is None is unlimited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from idios.core.exact import INFINITY

Interval: TypeAlias = tuple[int | None, int | None]
"""Grid points first..last, both included; None is unlimited on that side."""

Intervals: TypeAlias = tuple[Interval, ...]

EVERYTHING: Intervals = ((None, None),)
NOTHING: Intervals = ()


def union(intervals: Iterable[Interval]) -> Intervals:
    """All points of some intervals, in any order, overlapping or empty (first > last) ones included.

    >>> union([(7, None), (1, 3), (4, 4), (9, 2)])
    ((1, 4), (7, None))
    """
    joined: list[Interval] = []
    for first, last in sorted(intervals, key=_first):
        if _last((first, last)) < _first((first, last)):
            continue
        if joined and _first((first, last)) <= _last(joined[-1]) + 1:
            before_first, before_last = joined[-1]
            joined[-1] = (before_first, _later(before_last, last))
        else:
            joined.append((first, last))
    return tuple(joined)


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """The points in both of two sets.

    >>> intersection(((None, 3), (6, 9)), ((2, 7),))
    ((2, 3), (6, 7))
    """
    both: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        first = a[0] if _first(a) >= _first(b) else b[0]
        last = a[1] if _last(a) <= _last(b) else b[1]
        if _first((first, None)) <= _last((None, last)):
            both.append((first, last))
        if _last(a) <= _last(b):
            i += 1
        else:
            j += 1
    return tuple(both)


def intersection_of_all(sets: Sequence[Intervals]) -> Intervals:
    """The points in all of some sets: all but those that one of them lacks, so that many sets are sorted once.

    >>> intersection_of_all([((None, 3), (6, 9)), ((2, 7),), ((3, None),)])
    ((3, 3), (6, 7))
    """
    if len(sets) == 1:
        return sets[0]
    return complement(union(run for points in sets for run in complement(points)))


def partition(intervals: Intervals, parts: Sequence[Interval]) -> tuple[Intervals, ...]:
    """The points of a set that lie in each of some disjoint intervals, which ascend.

    >>> partition(((1, 4), (6, 6)), [(0, 2), (3, 5), (7, 8)])
    (((1, 2),), ((3, 4),), ())
    """
    pieces: list[Intervals] = []
    at = 0
    for part in parts:
        while at < len(intervals) and _last(intervals[at]) < _first(part):
            at += 1
        reach = at
        while reach < len(intervals) and _first(intervals[reach]) <= _last(part):
            reach += 1
        pieces.append(intersection(intervals[at:reach], (part,)))
    return tuple(pieces)


def complement(intervals: Intervals) -> Intervals:
    """All other points.

    >>> complement(((1, 4), (7, None)))
    ((None, 0), (5, 6))
    """
    rest: list[Interval] = []
    start: int | None = None
    for first, last in intervals:
        if first is not None:
            rest.append((start, first - 1))
        if last is None:
            return tuple(rest)
        start = last + 1
    return (*rest, (start, None))


def _first(interval: Interval) -> int | float:
    return -INFINITY if interval[0] is None else interval[0]


def _last(interval: Interval) -> int | float:
    return INFINITY if interval[1] is None else interval[1]


def _later(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right)
