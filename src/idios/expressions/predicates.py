"""The meaning of a WHERE clause: which records are selected, in terms of grid points.

A predicate is built from one kind of leaf, "the column's value is in this set of points (or is NULL)", with
``And`` and ``Or``. There is no negation: the reader pushes NOT down to the leaves by the rules of SQL's
three-valued logic, after which "unknown" and "false" both mean "not selected".

The points of a leaf are intervals: disjoint, ascending and not adjacent, so that equal sets are equal tuples. An end
that is None is unlimited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from idios.core.exact import INFINITY
from idios.declare.schema import Column
from idios.expressions.language import Node, walk
from idios.expressions.work import RUN, Work

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
    begun: int | None = None
    reached: int | float | None = None  # how far the run goes that is being joined, if there is one
    for first, last in _sort(intervals):
        end = INFINITY if last is None else last
        if first is not None and end < first:
            continue
        if reached is not None and (first is None or first <= reached + 1):
            reached = max(reached, end)
            continue
        if reached is not None:
            joined.append((begun, int(reached)))
        begun, reached = first, end
    if reached is not None:
        joined.append((begun, None if reached == INFINITY else int(reached)))
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
        if at < len(intervals) and _first(intervals[at]) <= _first(part) and _last(part) <= _last(intervals[at]):
            pieces.append((part,))
            continue
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


def _sort(intervals: Iterable[Interval]) -> list[Interval]:
    """Intervals by their first points."""
    listed = list(intervals)
    try:
        return sorted(listed)  # which is quick, unless an end is unlimited
    except TypeError:
        return sorted(listed, key=_first)


def _first(interval: Interval) -> int | float:
    return -INFINITY if interval[0] is None else interval[0]


def _last(interval: Interval) -> int | float:
    return INFINITY if interval[1] is None else interval[1]


@dataclass(frozen=True, repr=False)
class Among(Node):
    """The column's grid point lies in one of some disjoint, ascending intervals, or it is NULL (if ``nulls``)."""

    column: str
    intervals: tuple[Interval, ...]
    nulls: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class And(Node):
    """Every part holds; with no parts, always."""

    parts: tuple[Predicate, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Or(Node):
    """Some part holds; with no parts, never."""

    parts: tuple[Predicate, ...] = ()


Predicate: TypeAlias = Among | And | Or

ALWAYS = And()
NEVER = Or()


def holds(predicate: Predicate, record: Mapping[str, int | None]) -> bool:
    """Whether one record, given as grid points, is selected: the definition that every engine must agree with.

    >>> holds(Among("age", ((30, 40),)), {"age": 40}), holds(Among("age", ((30, 40),)), {"age": None})
    (True, False)
    """
    if isinstance(predicate, And):
        return all(holds(part, record) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any(holds(part, record) for part in predicate.parts)
    point = record[predicate.column]
    if point is None:
        return predicate.nulls
    return any(
        (first is None or first <= point) and (last is None or point <= last) for first, last in predicate.intervals
    )


def simplify(predicate: Predicate, columns: Mapping[str, Column], work: Work) -> Predicate:
    """The same selection with as few leaves as gathering them by column gives, for an engine to execute.

    >>> from idios.core.domain import Domain, Kind
    >>> age = Column("age", Kind.INTEGER, Domain(lower=0, upper=120), nullable=False)
    >>> simplify(And((Among("age", ((18, None),)), Among("age", ((None, 64),)))), {"age": age}, Work())
    Among(column='age', intervals=((18, 64),), nulls=False)
    """
    if isinstance(predicate, Among):
        return _simplified_leaf(predicate, columns[predicate.column])
    both = isinstance(predicate, And)
    different: dict[Predicate, None] = {}
    for part in gather_by_column(predicate, work):
        simple = simplify(part, columns, work)
        if simple == (NEVER if both else ALWAYS):
            return simple
        if simple != (ALWAYS if both else NEVER):
            different[simple] = None
    parts = list(different)
    if len(parts) == 1:
        return parts[0]
    return And(tuple(parts)) if both else Or(tuple(parts))


def column_names(predicate: Predicate) -> set[str]:
    """The columns that a predicate mentions."""
    return {among.column for among in list_leaves(predicate)}


def list_leaves(predicate: Predicate) -> list[Among]:
    """The leaves of a predicate, each once."""
    return [part for part in walk(predicate) if isinstance(part, Among)]


def _simplified_leaf(among: Among, column: Column) -> Predicate:
    grid = column.grid
    everything = ((grid.lower, grid.upper),)
    points = intersection(among.intervals, everything)
    nulls = among.nulls and column.nullable
    if points == everything and nulls == column.nullable:
        return ALWAYS
    return Among(among.column, points, nulls) if points or nulls else NEVER


def gather_by_column(predicate: And | Or, work: Work) -> list[Predicate]:
    """The parts, with those that are about one column alone made one of each column; equal parts once."""
    both = isinstance(predicate, And)
    of_column: dict[str, list[Among]] = {}
    rest: dict[Predicate, None] = {}
    work.spend(len(predicate.parts))
    for part in predicate.parts:
        if isinstance(part, Among):
            of_column.setdefault(part.column, []).append(part)
        else:
            rest[part] = None
    leaves: list[Predicate] = []
    for column, amongs in of_column.items():
        work.spend(RUN * sum(len(among.intervals) + 1 for among in amongs))
        if both:
            points = intersection_of_all([among.intervals for among in amongs])
        else:
            points = union(run for among in amongs for run in among.intervals)
        leaves.append(Among(column, points, (all if both else any)(among.nulls for among in amongs)))
    return [*leaves, *rest]
