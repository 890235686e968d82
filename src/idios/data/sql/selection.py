"""Which records a plan reads, as a relation of grid points, and the statements that ask about it.

The relation has one column for each declared column, and the cell: a single number from 1, the mixed-radix code of a
record's group indices. A record that is in no group has none and is left out. Every query of a plan is an aggregation
of this relation.

The numbers of a question stand in the text of the relation, which is quickly written. What is asked about a relation is
an Ibis expression, which takes longer to compile than most engines take to answer. It depends only on the shape of the
question, so it is compiled once a shape (``compile_statement``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TypeAlias

import ibis  # type: ignore[import-untyped]
import ibis.expr.types as ir  # type: ignore[import-untyped]
import pyarrow as pa

from idios.core.domain import Categories
from idios.data.sql.condition_sql import fit_point, write_condition, write_held_condition
from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import GridColumn, list_layers, nest_layers, with_sources
from idios.expressions.predicates import ALWAYS, Among, And, Predicate, intersection, union
from idios.plan.question import Group, Plan

SELECTED = "idios_selected"
"""What a relation is called while an expression about it is compiled."""

SHAPES = 128
"""How many shapes are remembered."""

Inquiry: TypeAlias = Callable[..., ir.Table]
"""An expression about a relation: a function of it, of the dialect and of arguments, and of nothing else."""

CELL = "cell"

HELD = "held_value"
"""What the source holds of one column, where that is asked for."""

ONLY = 1
"""The cell of all records where there are no groups."""

Constants: TypeAlias = Mapping[str, Mapping[int, int]]
"""Names of columns, and by cell the number that stands there."""


@dataclass(frozen=True)
class SelectStatement:
    """A statement, and the names and types of what it gives."""

    text: str
    schema: pa.Schema
    single: bool = False
    """Whether it gives one row, which may be read in another way."""
    at_once: bool = False
    """Whether to fetch the whole result in parallel, as its last step takes long, and not to stream it."""

    @classmethod
    def of_integers(cls, text: str, *names: str) -> SelectStatement:
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


def compile_statement(inquiry: Inquiry, relation: Relation, dialect: Dialect, *arguments: Hashable) -> SelectStatement:
    """What asks about a relation in an engine."""
    shape = _compiled(inquiry, relation.columns, dialect, *arguments)
    return SelectStatement(f"{shape.before}({relation.text}){shape.after}", shape.schema)


@lru_cache(SHAPES)
def _compiled(inquiry: Inquiry, columns: tuple[tuple[str, str], ...], dialect: Dialect, *arguments: Hashable) -> _Shape:
    expression = inquiry(ibis.table(dict(columns), name=SELECTED), dialect, *arguments)
    text = str(ibis.to_sql(expression, dialect=dialect.compiler, pretty=False))
    before, after = text.split(dialect.identifier(SELECTED))
    return _Shape(before, after, expression.schema().to_pyarrow())


@dataclass(frozen=True)
class GroupKey:
    """What records are grouped by, in SQL, for one key of a plan."""

    name: str
    text: str
    """What it is for a record."""
    index: str
    """Which of the plan's groups that is, for a row of the result that is called grouped."""
    listed: str | None = None
    """A table of the labels that are declared, which the index refers to by the key's name."""


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

    @property
    def is_whole(self) -> bool:
        """Whether all records are read, in one cell."""
        return not self.plan.groups and self.plan.filter == ALWAYS

    def codes(self) -> list[int]:
        """The numbers of the plan's cells, in its order."""
        if len(self.plan.groups) == 1:  # of which there may be many
            return [index + 1 for (index,) in self.plan.cells]
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

    def relation(
        self, source: str, constants: Constants | None = None, *, keyed: bool = False, held: str | None = None
    ) -> Relation:
        """The records that pass the filter and, with groups, are in one; with numbers that depend on the cell alone.

        Where they are ``keyed``, they carry the keys of their cell instead (``keys``); and what the source holds of the
        column that is called ``held``.
        """
        quoted, groups, given = self.dialect.identifier, self.plan.groups, constants or {}
        arrays = {name: [of.get(cell) for cell in range(1, self.span + 1)] for name, of in given.items()}
        on_held, conditions = self.divide_filter()
        source = f"(SELECT * FROM {source} WHERE {' AND '.join(on_held)}) AS selected" if on_held else source
        text = self.points(source, {} if keyed or not groups else arrays, keyed=keyed, held=held)
        if keyed and arrays:
            text = self._join_constants(text, arrays)
        single = [] if groups else [f"CAST({of[ONLY]} AS BIGINT) AS {quoted(name)}" for name, of in given.items()]
        if groups and not keyed:
            conditions.append(f"{quoted(CELL)} IS NOT NULL")
        if single or conditions:
            text = f"SELECT {', '.join(['*', *single])} FROM ({text}) AS points"
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        read = [i for i, name in enumerate(self.columns) if name in self._read(keyed)]
        aliases = [f"v{i}" for i in read] or ["one"]
        points = [f"p{i}" for i, column in enumerate(self.columns.values()) if i in read and column.place is None]
        cell, value = [CELL] * bool(groups and not keyed), [HELD] * bool(held)
        numbers = dict.fromkeys([*aliases, *points, *cell, *value, *given], "int64")
        keys = {key.name: "int64" if key.listed is None else "string" for key in self.keys} if keyed else {}
        flags = ((f"has_v{i}", "boolean") for i in read)
        return Relation(text, (*numbers.items(), *keys.items(), *flags))

    def write_label_counts(self, alias: str, source: str) -> str | None:
        """How often each declared label of a column occurs, by its place; NULL is the place of everything else.

        None where that takes more than what the source holds.
        """
        column, (held, points) = self.grid_column(alias), self.divide_filter()
        if column.label is None or points or self.plan.groups:
            return None
        where = f" WHERE {' AND '.join(held)}" if held else ""
        counted = f"SELECT {column.label} AS label, COUNT(*) AS times FROM {source}{where} GROUP BY {column.label}"
        return (
            f"SELECT CAST(listed.place AS BIGINT) AS place, CAST(SUM(counted.times) AS BIGINT) AS times "
            f"FROM ({counted}) AS counted LEFT JOIN {column.listed} AS listed ON counted.label = listed.label "
            f"GROUP BY listed.place"
        )

    @cached_property
    def keys(self) -> list[GroupKey]:
        """By what records are grouped: a label as the source holds it, or the index of a group.

        Labels are grouped as fast as an engine can. Which of them are declared is found for each group then, and not
        for each record.
        """
        keys = []
        for i, group in enumerate(self.plan.groups):
            column, name = self.columns[group.column], f"key{i}"
            if column.label is not None and column.default is None:
                place = f"CAST({name}.place AS BIGINT) - 1"
                keys.append(GroupKey(name, column.label, self._index(place, group), column.listed))
            else:
                index = self._index(self.dialect.identifier(self.alias(group.column)), group)
                keys.append(GroupKey(name, index, f"grouped.{self.dialect.identifier(name)}"))
        return keys

    @property
    def joins_constants(self) -> bool:
        """Whether numbers that depend on the cell are joined to records by their label: faster than many cases."""
        single = all(first == last for group in self.plan.groups for first, last in group.intervals)
        return self.dialect.exact_quantiles and single and [key.listed is not None for key in self.keys] == [True]

    def _join_constants(self, text: str, arrays: Mapping[str, Sequence[int | None]]) -> str:
        (key,), (group,), quoted = self.keys, self.plan.groups, self.dialect.identifier
        declared = self.columns[group.column].declared.domain
        if not isinstance(declared, Categories):
            raise AssertionError(f"{group.column} has labels, and is no category")
        columns = [f"unnest({self.dialect.strings(declared.values[i] for i, _ in group.intervals)}) AS label"]
        columns += [f"unnest({self._write_array(numbers)}) AS {quoted(name)}" for name, numbers in arrays.items()]
        joined = ", ".join(["points.*", *(f"constants.{quoted(name)}" for name in arrays)])
        constants = f"(SELECT {', '.join(columns)}) AS constants"
        return (
            f"SELECT {joined} FROM ({text}) AS points JOIN {constants} ON points.{quoted(key.name)} = constants.label"
        )

    def number_cells(self, statement: SelectStatement) -> SelectStatement:
        """A statement that gives results by keys, made to give them by cells: those of declared labels alone."""
        quoted, code, joins = self.dialect.identifier, "", ""
        for key, group in zip(self.keys, self.plan.groups, strict=True):
            code = f"({code}) * {len(group.intervals)} + ({key.index})" if code else f"({key.index})"
            if key.listed is not None:
                joins += f" JOIN {key.listed} AS {key.name} ON grouped.{quoted(key.name)} = {key.name}.label"
        names = {key.name for key in self.keys}
        kept = [field for field in statement.schema if field.name not in names]
        columns = ", ".join([f"CAST({code} + 1 AS BIGINT) AS {quoted(CELL)}", *(quoted(field.name) for field in kept)])
        indices = " AND ".join(f"({key.index}) IS NOT NULL" for key in self.keys)
        text = f"SELECT {columns} FROM ({statement.text}) AS grouped{joins} WHERE {indices}"
        return SelectStatement(text, pa.schema([(CELL, pa.int64()), *kept]))

    def _read(self, keyed: bool) -> set[str]:
        """The columns whose points are needed: not those that are held labels, or compared as they are held, alone."""
        labels = {group.column for group, key in zip(self.plan.groups, self.keys, strict=True) if keyed and key.listed}
        compared = {name for part in self._point_conditions for name in _columns_in(part)}
        named = {aggregate.column for aggregate in self.plan.aggregates} | compared
        named |= {group.column for group in self.plan.groups if group.column not in labels}
        return set(with_sources([name for name in self.columns if name in named], self.plan.dataset.columns))

    @cached_property
    def _point_conditions(self) -> list[Predicate]:
        return [part for part in self._parts if write_held_condition(part, self.columns, self.dialect) is None]

    @cached_property
    def _parts(self) -> list[Predicate]:
        """What is required of a record; that it is in a group needs no condition."""
        parts = self.plan.filter.parts if isinstance(self.plan.filter, And) else (self.plan.filter,)
        return [part for part in parts if not any(_is_implied(part, group) for group in self.plan.groups)]

    def divide_filter(self) -> tuple[list[str], list[str]]:
        """The conditions that can be told from what the source holds, and those on points."""
        names = {name: self.dialect.identifier(self.alias(name)) for name in self.columns}
        held = [write_held_condition(part, self.columns, self.dialect) for part in self._parts]
        points = [write_condition(part, names) for part in self._point_conditions]
        return [condition for condition in held if condition is not None], points

    def points(
        self,
        source: str,
        arrays: Mapping[str, Sequence[int | None]] | None = None,
        *,
        keyed: bool = False,
        held: str | None = None,
    ) -> str:
        """Every record as grid points, with its cell, or its keys, and what ``arrays`` hold for it."""
        quoted = self.dialect.identifier
        points, *layers = list_layers(self.columns, self.dialect, self._read(keyed))
        points += [f"{self.grid_column(held).held} AS {HELD}"] if held else []
        if keyed:
            points += [f"{key.text} AS {quoted(key.name)}" for key in self.keys if key.listed is not None]
            layers.append([f"{key.text} AS {quoted(key.name)}" for key in self.keys if key.listed is None])
        elif place := self._place:
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
            element = self.dialect.element.format(array=self._write_array(numbers), i=cell)
            elements.append(f"{element} AS {self.dialect.identifier(name)}")
        return elements

    def _write_array(self, numbers: Sequence[int | None]) -> str:
        items = ", ".join("NULL" if number is None else str(number) for number in numbers)
        return f"CAST({self.dialect.array.format(items=items)} AS {self.dialect.integers})"

    def _index(self, value: str, group: Group) -> str:
        """Which interval a point is in: by arithmetic where they are a row of equal widths, else one by one."""
        intervals = group.intervals
        first, last = intervals[0][0], intervals[-1][1]
        width = intervals[len(intervals) // 2][1] - intervals[len(intervals) // 2][0] + 1
        base = intervals[0][1] - width + 1  # where the first would begin if it were not cut short
        # where each has a point, and all together no more than that, each is one point
        regular = (
            last - first + 1 == len(intervals)
            if width == 1
            else all(
                (max(base + i * width, first), min(base + (i + 1) * width - 1, last)) == interval
                for i, interval in enumerate(intervals)
            )
        )
        # far enough from the limits of 64 bits that a difference of two points fits
        if regular and max(-first, last) < 2**61:
            offset = f"({value} - {base})" if base else value
            index = offset if width == 1 else self.dialect.quotient.format(n=offset, d=width)
            return f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {index} END"
        cases = " ".join(
            f"WHEN {value} BETWEEN {fit_point(a)} AND {fit_point(b)} THEN {i}" for i, (a, b) in enumerate(intervals)
        )
        return f"CASE {cases} END"


def _is_implied(part: Predicate, group: Group) -> bool:
    """Whether every record of a group meets a condition on its column."""
    if not isinstance(part, Among) or part.column != group.column:
        return False
    return intersection(group.points, union(part.intervals)) == group.points


def columns_of(plan: Plan) -> list[str]:
    """The columns that a plan reads, each once, and those that they are derived from."""
    named = [aggregate.column for aggregate in plan.aggregates if aggregate.column is not None]
    read = list(dict.fromkeys([*named, *(g.column for g in plan.groups), *_columns_in(plan.filter)]))
    return with_sources(read, plan.dataset.columns)


def _columns_in(predicate: Predicate) -> Iterator[str]:
    """The columns that a condition is on."""
    stack = [predicate]
    while stack:
        part = stack.pop()
        if isinstance(part, Among):
            yield part.column
        else:
            stack.extend(part.parts)
