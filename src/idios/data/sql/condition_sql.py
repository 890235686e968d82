"""SQL for conditions: on grid points or, where equivalent, on the source column itself, so that indices apply.

The map from what is held to points is monotone, so that a point is at least a where what is held is at least the first
that reads as a. An engine that keeps statistics, indices or dictionaries of its columns can use them then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from idios.core.domain import LIMIT, Categories
from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import GridColumn
from idios.expressions.predicates import Among, And, Interval, Predicate

MOST = 16
"""Up to so many intervals are compared one by one."""


def write_condition(predicate: Predicate, points: Mapping[str, str]) -> str:
    """The condition in SQL, in parentheses; ``points`` are what the columns' points are called."""
    if isinstance(predicate, Among):
        return f"({_among(points[predicate.column], predicate)})"
    parts = [write_condition(part, points) for part in predicate.parts]
    if isinstance(predicate, And):
        return f"({' AND '.join(parts) or 'TRUE'})"
    return f"({' OR '.join(parts) or 'FALSE'})"


def write_held_condition(predicate: Predicate, columns: Mapping[str, GridColumn], dialect: Dialect) -> str | None:
    """The condition in SQL, in parentheses, or None where it cannot be told from what is held.

    It may be unknown where it does not hold: in WHERE that is the same, and nothing here negates it. Spark, which
    has no table of labels, is asked about points: it fails to read a view under a condition that is never met.
    """
    if dialect.listed is None:
        return None
    if isinstance(predicate, Among):
        condition = _write_leaf(predicate, columns[predicate.column], dialect)
        return None if condition is None else f"({condition})"
    parts = [write_held_condition(part, columns, dialect) for part in predicate.parts]
    if None in parts:
        return None
    both = isinstance(predicate, And)
    return f"({(' AND ' if both else ' OR ').join(map(str, parts)) or ('TRUE' if both else 'FALSE')})"


def _write_leaf(leaf: Among, column: GridColumn, dialect: Dialect) -> str | None:
    default, domain = column.default, column.declared.domain
    # what cannot be read passes as its public point does, or as NULL
    passes_unread = leaf.nulls if default is None else any(_contains(each, default) for each in leaf.intervals)
    if isinstance(domain, Categories):
        if column.label is None or passes_unread:
            return None
        chosen = [value for i, value in enumerate(domain.values) if any(_contains(each, i) for each in leaf.intervals)]
        return f"{column.label} IN ({', '.join(map(dialect.string, chosen))})" if chosen else "FALSE"
    if column.first_held is None or len(leaf.intervals) > MOST:
        return None
    intervals = [_write_interval(each, column) for each in leaf.intervals]
    inside = " OR ".join(intervals) or "FALSE"
    # a comparison with NULL is unknown, which is as good as false here
    if column.complete or (column.readable == column.given and not passes_unread and "TRUE" not in intervals):
        return inside
    if passes_unread:
        return f"{column.held} IS NULL OR NOT ({column.readable}) OR {inside}"
    return f"{column.readable} AND ({inside})"


def _write_interval(interval: Interval, column: GridColumn) -> str:
    """Whether what is held, and can be read, lies in an interval of points; bounds need no comparison."""
    if column.first_held is None:
        raise AssertionError(f"{column.declared.name} has no order")
    (first, last), grid = interval, column.declared.grid
    low, high = grid.lower, grid.upper
    if low is None:  # what lies beyond the ends of the grid reads as the ends, also where a condition selects it
        low, last = -LIMIT, last if last is None else fit_point(last)
    if high is None:
        high, first = LIMIT, first if first is None else fit_point(first)
    if (first is not None and first > high) or (last is not None and last < low):
        return "FALSE"
    ends = [f"{column.compared} >= {column.first_held(first)}"] if first is not None and first > low else []
    ends += [f"{column.compared} < {column.first_held(last + 1)}"] if last is not None and last < high else []
    return " AND ".join(ends) or "TRUE"


def _contains(interval: Interval, point: int) -> bool:
    first, last = interval
    return (first is None or first <= point) and (last is None or point <= last)


def _wide(intervals: Sequence[Interval]) -> int:
    """How many intervals are not single points."""
    return sum(first is None or first != last for first, last in intervals)


def _among(value: str, leaf: Among) -> str:
    """Whether a value is among the leaf's; NULL is tested explicitly, so that the result is never "unknown"."""
    if not leaf.intervals:
        return f"{value} IS NULL" if leaf.nulls else "FALSE"
    hull = (leaf.intervals[0][0], leaf.intervals[-1][1])
    gaps = [(a[1] + 1, b[0] - 1) for a, b in pairwise(leaf.intervals) if a[1] is not None and b[0] is not None]
    if _wide(gaps) < _wide(leaf.intervals):  # NOT IN (…): a few points are missing
        inside = f"({_covered(value, [hull])}) AND NOT ({_covered(value, gaps)})"
    else:
        inside = f"({_covered(value, leaf.intervals)})"
    passes = f"{value} IS NOT NULL AND {inside}"
    return f"{value} IS NULL OR {passes}" if leaf.nulls else passes


def _covered(value: str, intervals: Sequence[Interval]) -> str:
    """Whether a value that is not NULL lies in one of some intervals."""
    points = [str(fit_point(first)) for first, last in intervals if first is not None and first == last]
    parts = [f"{value} IN ({', '.join(points)})"] if points else []
    for first, last in intervals:
        if first is None or first != last:
            ends = [] if first is None else [f"{value} >= {fit_point(first)}"]
            ends += [] if last is None else [f"{value} <= {fit_point(last)}"]
            parts.append(" AND ".join(ends) or "TRUE")
    return " OR ".join(parts) or "FALSE"


def fit_point(point: int) -> int:
    """The point, or the end of the grid that it lies beyond."""
    return max(-LIMIT, min(LIMIT, point))
