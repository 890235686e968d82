"""The meaning of a WHERE clause: which records are selected, in terms of grid points.

A predicate is built from one kind of leaf, "the column's value is in this set of points (or is NULL)", with
``And`` and ``Or``. There is no negation: the reader pushes NOT down to the leaves by the rules of SQL's
three-valued logic, after which "unknown" and "false" both mean "not selected".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from idios.query.intervals import Interval, intersection, intersection_of_all, union
from idios.query.schema import Column
from idios.query.work import RUN, Work


@dataclass(frozen=True)
class Among:
    """The column's grid point lies in one of some disjoint, ascending intervals, or it is NULL (if ``nulls``)."""

    column: str
    intervals: tuple[Interval, ...]
    nulls: bool = False


@dataclass(frozen=True)
class And:
    """Every part holds; with no parts, always."""

    parts: tuple[Predicate, ...] = ()


@dataclass(frozen=True)
class Or:
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
    if isinstance(predicate, Among):
        return {predicate.column}
    return {name for part in predicate.parts for name in column_names(part)}


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
