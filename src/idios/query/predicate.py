"""The meaning of a WHERE clause: which records are selected, in terms of grid points.

A predicate is built from one kind of leaf, "the column's value is in this set of points (or is NULL)", with
``All`` and ``Any``. There is no negation: the reader pushes NOT down to the leaves by the rules of SQL's
three-valued logic, after which "unknown" and "false" both mean "not selected".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Interval: TypeAlias = tuple[int | None, int | None]
"""Grid points first..last, both included; None is unlimited on that side."""


@dataclass(frozen=True)
class Among:
    """The column's grid point lies in one of some disjoint, ascending intervals, or it is NULL (if ``nulls``)."""

    column: str
    intervals: tuple[Interval, ...]
    nulls: bool = False


@dataclass(frozen=True)
class All:
    """Every part holds; with no parts, always."""

    parts: tuple[Predicate, ...] = ()


@dataclass(frozen=True)
class Any:
    """Some part holds; with no parts, never."""

    parts: tuple[Predicate, ...] = ()


Predicate: TypeAlias = Among | All | Any

ALWAYS = All()
NEVER = Any()


def holds(predicate: Predicate, record: Mapping[str, int | None]) -> bool:
    """Whether one record, given as grid points, is selected: the definition that every engine must agree with.

    >>> holds(Among("age", ((30, 40),)), {"age": 40}), holds(Among("age", ((30, 40),)), {"age": None})
    (True, False)
    """
    if isinstance(predicate, All):
        return all(holds(part, record) for part in predicate.parts)
    if isinstance(predicate, Any):
        return any(holds(part, record) for part in predicate.parts)
    point = record[predicate.column]
    if point is None:
        return predicate.nulls
    return any(
        (first is None or first <= point) and (last is None or point <= last) for first, last in predicate.intervals
    )
