"""Intervals in a row: many groups that the same condition selects are told from each other by their place alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from idios.core.exact import INFINITY
from idios.expressions.predicates import Interval

Span = tuple[int, int, int]
"""From which interval on, before which, and what their points lead to."""


class Row:
    """Disjoint intervals that ascend."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self._firsts = [-INFINITY if first is None else first for first, _ in intervals]
        self._lasts = [INFINITY if last is None else last for _, last in intervals]

    def __len__(self) -> int:
        return len(self._firsts)

    def list_spans(self, runs: Iterable[tuple[int | None, int | None, int]]) -> list[Span]:
        """Which intervals some runs of points, which ascend, have points in, and what each run leads to.

        >>> Row([(0, 4), (5, 9), (10, 14)]).list_spans([(2, 3, 7), (5, 10, 7), (11, None, 8)])
        [(0, 3, 7), (2, 3, 8)]
        """
        spans: list[Span] = []
        for first, last, goal in runs:
            start = 0 if first is None else bisect_left(self._lasts, first)
            stop = len(self) if last is None else bisect_right(self._firsts, last)
            if spans and spans[-1][1] >= start and spans[-1][2] == goal:
                start = spans.pop()[0]
            if start < stop:
                spans.append((start, stop, goal))
        return spans


def join_spans(spans: Iterable[Span]) -> Iterator[tuple[range, frozenset[int]]]:
    """The intervals that lead to anything, in rows of those that lead to the same.

    >>> list(join_spans([(0, 3, 7), (2, 3, 8), (4, 5, 7)]))
    [(range(0, 2), frozenset({7})), (range(2, 3), frozenset({8, 7})), (range(4, 5), frozenset({7}))]
    """
    opened: dict[int, list[int]] = {}
    closed: dict[int, list[int]] = {}
    for start, stop, goal in spans:
        opened.setdefault(start, []).append(goal)
        closed.setdefault(stop, []).append(goal)
    times: dict[int, int] = {}  # how many spans lead there
    for start, stop in pairwise(sorted(opened.keys() | closed.keys())):
        for goal in opened.get(start, ()):
            times[goal] = times.get(goal, 0) + 1
        for goal in closed.get(start, ()):
            times[goal] -= 1
            if not times[goal]:
                del times[goal]
        if times:
            yield range(start, stop), frozenset(times)
