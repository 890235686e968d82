"""What every engine must find, computed from Python lists: the grid, the filter, the cells, the summaries."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from idios.core.domain import LIMIT, Categories, Domain, Kind
from idios.core.exact import floor_half_up
from idios.core.neighbours import Moves, Neighbours
from idios.core.summary import Summary
from idios.declare.schema import Column
from idios.expressions.predicates import ALWAYS, Among, And, Predicate
from idios.plan.question import Aggregate, Plan
from tests.summaries import summarise

EPOCH = datetime.datetime(1970, 1, 1)
Table = Mapping[str, Sequence[object]]


def point(column: Column, value: object) -> int | None:
    """The grid point of one value as the rules of ``grid_sql.py`` say, in exact arithmetic; None for NULL."""
    found = readable_point(column, value)
    return column.grid.clamp(0) if found is None and not column.nullable else found


def readable_point(column: Column, value: object) -> int | None:
    """The same, None for whatever is missing or cannot be read."""
    if value is None:
        return None
    if isinstance(column.domain, Categories):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return column.domain.values.index(text) if text in column.domain.values else None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        scaled = value * float(1 / column.domain.step) + 0.5
        found = math.floor(scaled) if math.isfinite(scaled) else 10**400 * (1 if scaled > 0 else -1)
    else:
        found = int(floor_half_up(Fraction(_number(column.kind, value)) / column.domain.step))
    return column.domain.clamp(max(-LIMIT, min(LIMIT, found)))


def _number(kind: Kind, value: object) -> int | Decimal | Fraction:
    if isinstance(value, datetime.datetime):
        if kind is Kind.DATE:
            return (value.date() - EPOCH.date()).days
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return (value - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        days = (value - EPOCH.date()).days
        return days if kind is Kind.DATE else days * 86_400_000_000
    assert isinstance(value, int | Decimal | Fraction)
    return value


def reference(plan: Plan, table: Table) -> list[list[Summary]]:
    """Everything a backend must return for a plan."""
    return [
        [
            summarise(values, a.reading, a.grid, find_moves(a, len(values), rows), a.distance)
            for a, values in zip(plan.aggregates, cell, strict=True)
        ]
        for cell, rows in select_values(plan, table)
    ]


def clipped_reference(
    plan: Plan, table: Table, limits: Mapping[int, Sequence[tuple[int, int]]]
) -> dict[int, list[Summary]]:
    """Everything a second round must return."""
    found: dict[int, list[Summary]] = {index: [] for index in limits}
    for place, (cell, rows) in enumerate(select_values(plan, table)):
        for index, of_cells in limits.items():
            aggregate, (low, high) = plan.aggregates[index], of_cells[place]
            clipped = [min(max(value, low), high) for value in cell[index]]
            squares = sum(v * v for v in clipped) if aggregate.statistic.needs_squares else None
            domain = Domain(aggregate.grid.step, low, high)
            moves = find_moves(aggregate, len(clipped), rows)
            found[index].append(Summary(domain, moves, total=sum(clipped), squares=squares))
    return found


def select_values(plan: Plan, table: Table) -> Iterator[tuple[list[list[int]], int]]:
    """For every cell, the ascending values of each aggregate; and how many records the table has."""
    columns = plan.dataset.columns
    points = {name: [point(columns[name], value) for value in values] for name, values in table.items()}
    rows = len(next(iter(points.values())))
    records = range(rows)
    if plan.filter != ALWAYS or plan.groups:
        named = [dict(zip(points, record, strict=True)) for record in zip(*points.values(), strict=True)]
    for cell in plan.cells:
        inside = records
        if plan.filter != ALWAYS or plan.groups:
            inside = [i for i in records if _passes(plan.filter, named[i]) and _in(plan, cell, named[i])]
        values = {
            name: sorted(v for i in inside if (v := points[name][i]) is not None)
            for name in {a.column for a in plan.aggregates if a.column is not None}
        }
        yield [values[a.column] if a.column else [0] * len(inside) for a in plan.aggregates], rows


def _passes(predicate: Predicate, record: Mapping[str, int | None]) -> bool:
    if isinstance(predicate, Among):
        value = record[predicate.column]
        if value is None:
            return predicate.nulls
        return any((a is None or a <= value) and (b is None or value <= b) for a, b in predicate.intervals)
    parts = [_passes(part, record) for part in predicate.parts]
    return all(parts) if isinstance(predicate, And) else any(parts)


def _in(plan: Plan, cell: tuple[int, ...], record: Mapping[str, int | None]) -> bool:
    for group, index in zip(plan.groups, cell, strict=True):
        value, (first, last) = record[group.column], group.intervals[index]
        if value is None or not first <= value <= last:
            return False
    return True


def find_moves(aggregate: Aggregate, size: int, rows: int) -> Moves:
    whole = aggregate.whole or aggregate.neighbours is Neighbours.ADD_REMOVE
    return Moves(aggregate.neighbours, size, None if whole else rows - size)
