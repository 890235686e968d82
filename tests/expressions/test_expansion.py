"""Conditions on derived columns against trying every record: generated expressions over small columns."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest

from idios.core.domain import Categories, Domain, Kind
from idios.declare.schema import Column
from idios.expressions.diagram import DiagramManager
from idios.expressions.predicates import NOTHING, Among, And, Intervals, column_names, holds, union
from idios.expressions.preimages import Expander
from idios.expressions.work import Work
from idios.plan.derived_values import find_possible
from tests.derived_expressions import derive_many, find_point, find_value

HELD = {
    column.name: column
    for column in (
        Column("x", Kind.INTEGER, Domain(lower=-1, upper=3)),
        Column("y", Kind.DECIMAL, Domain(Fraction(1, 2), lower=-1, upper=1), nullable=False),
        Column("g", Kind.CATEGORY, Categories(("north", "south"))),
        Column("day", Kind.DATE, Domain(Fraction(20), lower=984, upper=987)),
    )
}


def every_record() -> list[dict[str, int | None]]:
    choices = []
    for column in HELD.values():
        assert column.grid.lower is not None
        assert column.grid.upper is not None
        points: list[int | None] = list(range(column.grid.lower, column.grid.upper + 1))
        choices.append([*points, None] if column.nullable else points)
    return [dict(zip(HELD, record, strict=True)) for record in product(*choices)]


def some_points(draw: random.Random, column: Column) -> Intervals:
    low = -3 if column.grid.lower is None else max(column.grid.lower, -40)
    runs = []
    for _ in range(draw.randint(0, 2)):
        first = low + draw.randint(-1, 8)
        runs.append(
            (None if draw.random() < 0.2 else first, None if draw.random() < 0.2 else first + draw.randint(0, 4))
        )
    return union(runs)


def derive(seed: int, count: int) -> Iterator[tuple[Column, dict[str, Column], list[dict[str, int | None]]]]:
    """Derived columns, each among the declared columns, and every record with its point."""
    records = every_record()
    rows = [{name: find_value(HELD[name], point) for name, point in record.items()} for record in records]
    for name, column in derive_many(seed, HELD, count).items():
        points = [find_point(column, row) for row in rows]
        yield (
            column,
            HELD | {name: column},
            [record | {name: point} for record, point in zip(records, points, strict=True)],
        )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 7))])
def test_what_is_rewritten_holds_for_the_same_records(seed: int) -> None:
    draw, rewritten, count = random.Random(seed), 0, 300 if seed else 80
    for column, columns, records in derive(seed, count):
        assert column.nullable or None not in [record[column.name] for record in records], column.formula
        for trial in range(4):
            points, nulls = (some_points(draw, column), draw.random() < 0.3) if trial else (NOTHING, True)
            among = Among(column.name, points, nulls)
            expanded = Expander(columns, Work()).expand(among)
            rewritten += column.name not in column_names(expanded)
            wrong = [record for record in records if holds(expanded, record) != holds(among, record)]
            assert not wrong, (column.formula, among, expanded, wrong[0])
    assert rewritten > 2 * count


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 7))])
def test_what_is_possible_is_what_records_have_or_more(seed: int) -> None:
    """No less in any case, and from the first to the last point no more where conditions can be rewritten."""
    draw, tight, count = random.Random(seed), 0, 100 if seed else 40
    for column, columns, records in derive(seed + 10, count):
        name = column.name
        own = Among(name, some_points(draw, column))
        for where in (And(), Among("x", ((0, 2),)), And((own, Among("y", ((None, 0),))))):
            selection = DiagramManager(columns).build(where)
            chosen = [record[name] for record in records if holds(where, record)]
            found, nulls = find_possible(selection, name)
            assert all(holds(Among(name, found, nulls), {name: point}) for point in chosen), (column.formula, where)
            assert not (selection.never and chosen)
            assert not selection.always or len(chosen) == len(records)
            known = {point for point in chosen if point is not None}
            if known and is_rewritten(column, columns, known):
                assert (found[0][0], found[-1][1]) == (min(known), max(known)), (column.formula, where, found)
                tight += 1
    assert tight > count // 2


def is_rewritten(column: Column, columns: dict[str, Column], points: set[int]) -> bool:
    around = {point + i for point in points for i in (-1, 0, 1)}
    parts = (Expander(columns, Work()).expand(Among(column.name, ((point, point),))) for point in around)
    return all(column.name not in column_names(part) for part in parts)
