"""Which records a plan reads, as a relation of grid points, and the statements that ask about it.

The relation has one column for each declared column, and the cell: a single number from 1, the mixed-radix code of a
record's group indices. A record that is in no group has none and is left out. Every query of a plan is an aggregation
of this relation.

The numbers of a question stand in the text of the relation, which is quickly written. What is asked about a relation is
an Ibis expression, which takes longer to compile than most engines take to answer. It depends only on the shape of the
question, so it is compiled once a shape (``compile_statement``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import TypeAlias

import ibis  # type: ignore[import-untyped]
import ibis.expr.types as ir  # type: ignore[import-untyped]
import pyarrow as pa

from idios.backends.dialect import Dialect
from idios.backends.grid_sql import GridColumn
from idios.core.domain import LIMIT, Categories, Kind
from idios.query.expressions import list_references
from idios.query.plan import Group, Plan
from idios.query.predicates import Among, And, Interval, Predicate
from idios.query.schema import Column

SELECTED = "idios_selected"
"""What a relation is called while an expression about it is compiled."""

SHAPES = 128
"""How many shapes are remembered."""

Inquiry: TypeAlias = Callable[..., ir.Table]
"""An expression about a relation: a function of it, of the dialect and of arguments, and of nothing else."""

CELL = "cell"

ONLY = 1
"""The cell of all records where there are no groups."""

Constants: TypeAlias = Mapping[str, Mapping[int, int]]
"""Names of columns, and by cell the number that stands there."""


@dataclass(frozen=True)
class Statement:
    """A statement, and the names and types of what it gives."""

    text: str
    schema: pa.Schema

    @classmethod
    def of_integers(cls, text: str, *names: str) -> Statement:
        """A statement that gives whole numbers."""
        return cls(text, pa.schema([(name, pa.int64()) for name in names]))


@dataclass(frozen=True)
class Relation:
    """Records in an engine: what selects them, and the names and types of their columns, as Ibis calls them."""

    text: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Shape:
    """A statement with a gap for the relation."""

    before: str
    after: str
    schema: pa.Schema


def compile_statement(inquiry: Inquiry, relation: Relation, dialect: Dialect, *arguments: Hashable) -> Statement:
    """What asks about a relation in an engine."""
    shape = _compiled(inquiry, relation.columns, dialect, *arguments)
    return Statement(f"{shape.before}({relation.text}){shape.after}", shape.schema)


@lru_cache(SHAPES)
def _compiled(inquiry: Inquiry, columns: tuple[tuple[str, str], ...], dialect: Dialect, *arguments: Hashable) -> _Shape:
    expression = inquiry(ibis.table(dict(columns), name=SELECTED), dialect, *arguments)
    text = str(ibis.to_sql(expression, dialect=dialect.compiler, pretty=False))
    before, after = text.split(dialect.identifier(SELECTED))
    return _Shape(before, after, expression.schema().to_pyarrow())


@dataclass(frozen=True)
class Selection:
    """The columns, cells and filter of one plan, in one engine's SQL."""

    plan: Plan
    columns: Mapping[str, GridColumn]
    dialect: Dialect

    def alias(self, column: str) -> str:
        """What a column is called in the relation: never what the source calls it."""
        return f"v{list(self.columns).index(column)}"

    def column_name(self, alias: str) -> str:
        """The column that is called so in the relation."""
        return list(self.columns)[int(alias[1:])]

    def grid_column(self, alias: str) -> GridColumn:
        """How the column is read that is called so in the relation."""
        return self.columns[self.column_name(alias)]

    def codes(self) -> list[int]:
        """The numbers of the plan's cells, in its order."""
        codes = []
        for cell in self.plan.cells:
            code = 0
            for group, index in zip(self.plan.groups, cell, strict=True):
                code = code * len(group.intervals) + index
            codes.append(code + 1)
        return codes

    @property
    def span(self) -> int:
        """The greatest cell number."""
        return prod(len(group.intervals) for group in self.plan.groups)

    def relation(self, source: str, constants: Constants | None = None) -> Relation:
        """The records that pass the filter and, with groups, are in one; with numbers that depend on the cell alone."""
        quoted, groups, given = self.dialect.identifier, self.plan.groups, constants or {}
        arrays = {name: [of.get(cell) for cell in range(1, self.span + 1)] for name, of in given.items()}
        text = self.points(source, arrays if groups else {})
        single = [] if groups else [f"CAST({of[ONLY]} AS BIGINT) AS {quoted(name)}" for name, of in given.items()]
        names = {name: quoted(self.alias(name)) for name in self.columns}
        conditions = [] if self.plan.filter == And() else [write_condition(self.plan.filter, names)]
        if groups:
            conditions.append(f"{quoted(CELL)} IS NOT NULL")
        if single or conditions:
            text = f"SELECT {', '.join(['*', *single])} FROM ({text}) AS points"
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        aliases = [f"v{i}" for i in range(len(self.columns))] or ["one"]
        columns = enumerate(self.columns.values())
        raw = [f"p{i}" for i, column in columns if column.place is None and column.default is not None]
        numbers = dict.fromkeys([*aliases, *raw, *[CELL] * bool(groups), *given], "int64")
        return Relation(text, (*numbers.items(), *((f"has_v{i}", "boolean") for i in range(len(self.columns)))))

    def points(self, source: str, arrays: Mapping[str, Sequence[int | None]] | None = None) -> str:
        """Every record as grid points, with its cell and what ``arrays`` hold for it."""
        quoted = self.dialect.identifier
        points, *layers = list_layers(self.columns, self.dialect)
        if place := self._place:
            points += [f"{place} AS {quoted(CELL)}", *self._elements(place, arrays)]
        elif self.plan.groups:
            layers += [[f"{self._code()} AS {quoted(CELL)}"], self._elements(quoted(CELL), arrays)]
        return nest_layers([points, *layers], source, self.dialect)

    @property
    def _place(self) -> str | None:
        """The cell in terms of the source, where it is just the place of a category among few.

        An engine that keeps text in dictionaries finds it then, and what depends on it, once a category and not once a
        record.
        """
        if not self.dialect.dictionaries or len(self.plan.groups) != 1 or self.span > 64:
            return None
        group = self.plan.groups[0]
        column = self.columns[group.column]
        if column.derive is not None:
            return None
        domain = column.declared.domain
        every = tuple((i, i) for i in range(len(domain.values))) if isinstance(domain, Categories) else ()
        if group.intervals != every:
            return None
        return column.place if column.default is None else f"GREATEST({column.place}, {column.default + 1})"

    def _code(self) -> str:
        code = ""
        for group in self.plan.groups:
            index = self._index(self.dialect.identifier(self.alias(group.column)), group)
            code = f"({code}) * {len(group.intervals)} + {index}" if code else index
        return f"CAST({code} + 1 AS BIGINT)"

    def _elements(self, cell: str, arrays: Mapping[str, Sequence[int | None]] | None) -> list[str]:
        elements = []
        for name, numbers in (arrays or {}).items():
            items = ", ".join("NULL" if number is None else str(number) for number in numbers)
            array = f"CAST({self.dialect.array.format(items=items)} AS {self.dialect.integers})"
            element = self.dialect.element.format(array=array, i=cell)
            elements.append(f"{element} AS {self.dialect.identifier(name)}")
        return elements

    def _index(self, value: str, group: Group) -> str:
        """Which interval a point is in: by arithmetic where they are a row of equal widths, else one by one."""
        intervals = group.intervals
        first, last = intervals[0][0], intervals[-1][1]
        width = intervals[len(intervals) // 2][1] - intervals[len(intervals) // 2][0] + 1
        base = intervals[0][1] - width + 1  # where the first would begin if it were not cut short
        regular = all(
            (max(base + i * width, first), min(base + (i + 1) * width - 1, last)) == interval
            for i, interval in enumerate(intervals)
        )
        # far enough from the limits of 64 bits that a difference of two points fits
        if regular and max(-first, last) < 2**61:
            offset = f"({value} - {base})" if base else value
            index = offset if width == 1 else self.dialect.quotient.format(n=offset, d=width)
            return f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {index} END"
        cases = " ".join(f"WHEN {value} BETWEEN {_fit(a)} AND {_fit(b)} THEN {i}" for i, (a, b) in enumerate(intervals))
        return f"CASE {cases} END"


def write_condition(predicate: Predicate, points: Mapping[str, str]) -> str:
    """The condition in SQL, in parentheses; ``points`` are what the columns' points are called."""
    if isinstance(predicate, Among):
        return f"({_among(points[predicate.column], predicate)})"
    parts = [write_condition(part, points) for part in predicate.parts]
    if isinstance(predicate, And):
        return f"({' AND '.join(parts) or 'TRUE'})"
    return f"({' OR '.join(parts) or 'FALSE'})"


def list_layers(columns: Mapping[str, GridColumn], dialect: Dialect) -> list[list[str]]:
    """What puts records on the grid: columns p0, p1, … of points, v0, … of those that count, has_v0, ….

    Derived columns are computed from the points that count, so that they come last.
    """
    quoted = dialect.identifier
    points, values = [] if columns else [f"1 AS {quoted('one')}"], []
    derived, derived_values = [], []
    names = {name: quoted(f"v{i}") for i, name in enumerate(columns)}
    for i, column in enumerate(columns.values()):
        point, value, has = (quoted(f"{letter}{i}") for letter in ("p", "v", "has_v"))
        if column.derive is not None:
            derived.append(f"{column.derive(names)} AS {point}")
            derived_values += [f"{point} IS NOT NULL AS {has}", f"{column.value(point)} AS {value}"]
            continue
        points.append(f"{column.readable} AS {has}")
        if column.declared.kind is Kind.CATEGORY:
            points.append(f"{column.value(column.point)} AS {value}")
        else:
            points.append(f"{column.point} AS {point}")
            values.append(f"{column.value(point)} AS {value}")
    return [points, values, derived, derived_values]


def nest_layers(layers: Sequence[Sequence[str]], source: str, dialect: Dialect) -> str:
    """Nested SELECTs over a source, of which each computes its expressions once, and the next one names them."""
    text = f"SELECT {', '.join(layers[0])} FROM {source}"
    for depth, layer in enumerate(layers[1:]):
        if layer:
            text = f"SELECT *, {', '.join(layer)} FROM ({text}{dialect.fence}) AS layer{depth}"
    return text + dialect.fence


def columns_of(plan: Plan) -> list[str]:
    """The columns that a plan reads, each once, and those that they are derived from."""
    named = [aggregate.column for aggregate in plan.aggregates if aggregate.column is not None]
    read = list(dict.fromkeys([*named, *(g.column for g in plan.groups), *(c for c, _ in _ends(plan))]))
    return with_sources(read, plan.dataset.columns)


def with_sources(names: Iterable[str], columns: Mapping[str, Column]) -> list[str]:
    """Some columns, and those that they are derived from, each once."""
    listed = list(names)
    derived = [expression for name in listed if (expression := columns[name].expression) is not None]
    return list(dict.fromkeys([*listed, *(str(name) for each in derived for name in list_references(each))]))


def _ends(plan: Plan) -> Iterable[tuple[str, list[int]]]:
    """The points that columns are compared with."""
    stack: list[Predicate] = [plan.filter]
    while stack:
        part = stack.pop()
        if isinstance(part, Among):
            yield part.column, [end for interval in part.intervals for end in interval if end is not None]
        else:
            stack.extend(part.parts)
    for group in plan.groups:
        yield group.column, [end for interval in group.intervals for end in interval]


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
    points = [str(_fit(first)) for first, last in intervals if first is not None and first == last]
    parts = [f"{value} IN ({', '.join(points)})"] if points else []
    for first, last in intervals:
        if first is None or first != last:
            ends = [] if first is None else [f"{value} >= {_fit(first)}"]
            ends += [] if last is None else [f"{value} <= {_fit(last)}"]
            parts.append(" AND ".join(ends) or "TRUE")
    return " OR ".join(parts) or "FALSE"


def _fit(point: int) -> int:
    return max(-LIMIT, min(LIMIT, point))
