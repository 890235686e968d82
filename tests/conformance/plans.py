"""Plans made by hand, as the planner would make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

import pytest

from idios.core.calibration import Choice, Level, Method, Protection
from idios.core.domain import Categories, Domain, Kind
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.core.statistics import Statistic
from idios.data import brackets, guesses, summarise
from idios.data.engines import sql_backend
from idios.declare.schema import Column, Dataset
from idios.expressions.predicates import ALWAYS, Predicate
from idios.plan.question import Aggregate, Group, Plan

ONE = Fraction(1)


def number(name: str, step: object = 1, bounds: Sequence[object] | None = None, **facts: bool) -> Column:
    return Column(name, Kind.NUMBER, Domain.declare(step=step, bounds=bounds), **facts)


def whole(name: str, bounds: Sequence[object] | None = None, step: object = 1, **facts: bool) -> Column:
    return Column(name, Kind.INTEGER, Domain.declare(step=step, bounds=bounds), **facts)


def category(name: str, *values: str, **facts: bool) -> Column:
    return Column(name, Kind.CATEGORY, Categories(values), **facts)


def of_kind(kind: Kind, name: str, step: object = 1, bounds: Sequence[object] | None = None) -> Column:
    return Column(name, kind, Domain.declare(step=step, bounds=bounds))


def dataset(*columns: Column, neighbours: str = "replace") -> Dataset:
    listed = {column.name: column for column in columns}
    return Dataset("people", listed, Neighbours(neighbours), Protection(Level.INDIVIDUAL))


def by(column: Column, width: int = 1) -> Group:
    """Group by a category, or by bins of a bounded column."""
    grid = column.grid
    assert grid.lower is not None
    assert grid.upper is not None
    starts = range(grid.lower, grid.upper + 1, width)
    intervals = tuple((start, min(start + width - 1, grid.upper)) for start in starts)
    return Group(column.name, column.name, intervals, tuple(Fraction(start) for start in starts))


def plan(
    data: Dataset,
    *asked: tuple[Statistic, str | None],
    where: Predicate = ALWAYS,
    groups: Sequence[Group] = (),
    distance: int = 1,
    domains: Mapping[str, Domain] | None = None,
) -> Plan:
    """A plan that asks some statistics of some columns, in every cell of the groups."""
    aggregates = []
    for statistic, name in asked:
        declared: Domain | Categories = data.columns[name].domain if name is not None else Domain()
        nullable = name is not None and data.columns[name].nullable
        aggregates.append(
            Aggregate(
                label=statistic.name,
                statistic=statistic,
                column=name,
                domain=(domains or {}).get(name or "", declared),
                whole=where == ALWAYS and not groups and not nullable,
                epsilon=ONE,
                choice=Choice(Method.EXPONENTIAL if statistic.selects else Method.LOCAL, distance, ONE),
                neighbours=data.neighbours,
            )
        )
    guarantee = Guarantee(Level.INDIVIDUAL, ONE, data.neighbours)
    cells = tuple(product(*(range(len(group.intervals)) for group in groups)))
    return Plan(data, where, tuple(groups), cells, tuple(aggregates), ONE, Fraction(0), guarantee, "")


def call_tables_large(monkeypatch: pytest.MonkeyPatch, sampled: int = 60) -> None:
    """Samples, brackets and ends, which small tables do not need, are for all that have more than ten records."""
    for module, name, small in (
        (sql_backend, "SMALL", 10),
        (summarise, "SMALL", 10),
        (summarise, "FEW", 4),
        (guesses, "FEW", 4),
        (sql_backend, "SAMPLED", sampled),
        (brackets, "ENOUGH", 10),
    ):
        monkeypatch.setattr(module, name, small)
