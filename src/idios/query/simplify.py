"""The same predicate with fewer leaves: those about one column alone become one."""

from __future__ import annotations

from collections.abc import Mapping

from idios.query.intervals import intersection, intersection_of_all, union
from idios.query.predicate import ALWAYS, NEVER, All, Among, Any, Predicate
from idios.query.schema import Column
from idios.query.work import RUN, Work


def simplified(predicate: Predicate, columns: Mapping[str, Column], work: Work) -> Predicate:
    """The same selection with as few leaves as gathering them by column gives, for an engine to execute.

    >>> from idios.core.domain import Domain, Kind
    >>> age = Column("age", Kind.INTEGER, Domain(lower=0, upper=120), nullable=False)
    >>> simplified(All((Among("age", ((18, None),)), Among("age", ((None, 64),)))), {"age": age}, Work())
    Among(column='age', intervals=((18, 64),), nulls=False)
    """
    if isinstance(predicate, Among):
        return _simplified_leaf(predicate, columns[predicate.column])
    both = isinstance(predicate, All)
    found: dict[Predicate, None] = {}
    for part in gathered(predicate, work):
        simple = simplified(part, columns, work)
        if simple == (NEVER if both else ALWAYS):
            return simple
        if simple != (ALWAYS if both else NEVER):
            found[simple] = None
    parts = list(found)
    if len(parts) == 1:
        return parts[0]
    return All(tuple(parts)) if both else Any(tuple(parts))


def names(predicate: Predicate) -> set[str]:
    """The columns that a predicate mentions."""
    if isinstance(predicate, Among):
        return {predicate.column}
    return {name for part in predicate.parts for name in names(part)}


def _simplified_leaf(among: Among, column: Column) -> Predicate:
    grid = column.grid
    everything = ((grid.lower, grid.upper),)
    points = intersection(among.intervals, everything)
    nulls = among.nulls and column.nullable
    if points == everything and nulls == column.nullable:
        return ALWAYS
    return Among(among.column, points, nulls) if points or nulls else NEVER


def gathered(predicate: All | Any, work: Work) -> list[Predicate]:
    """The parts, with those that are about one column alone made one of each column; equal parts once."""
    both = isinstance(predicate, All)
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
