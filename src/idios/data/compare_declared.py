"""The data of a data set against its declaration, in numbers for the controller: values, people, links.

Nothing here is asked by a question or told to an analyst.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from idios.core.domain import Kind
from idios.core.neighbours import to_plural
from idios.data.connection_pool import Connection
from idios.data.sql.grid_sql import NEVER, GridColumn, list_layers, nest_layers, with_sources
from idios.data.sql.join_sql import Rows, compare_keys, find_repeated_keys, write_everyone
from idios.data.sql.selection import SelectStatement
from idios.declare.schema import Column, Dataset
from idios.plan.joins import find_table, list_links, name_column


@dataclass(frozen=True)
class ColumnReport:
    """How the values of one column fit its declaration."""

    name: str
    nullable: bool
    category: bool
    missing: int
    """NULL in the source, or a value that is declared to mean that."""
    unreadable: int
    """Not of the declared type (text that does not parse, NaN, ±∞)."""
    outside: int
    """Out of bounds, read as the nearer bound; of a category column, not declared."""
    too_far: int
    """More than 2⁶² steps from 0 with no bound on that side: read as ±2⁶² steps."""
    nulls: int
    """Missing, unreadable or undeclared: read as NULL, or as a public point where the column is not nullable."""

    @property
    def breaks_nullable(self) -> bool:
        """Whether something is missing although the column is declared not nullable."""
        return not self.nullable and self.nulls > 0

    def mostly_misfits(self, rows: int) -> bool:
        """Whether of the values that are there most do not fit, which tells of a declaration rather than of data."""
        return 2 * (self.unreadable + self.outside) > rows - self.missing

    def often_unreadable(self, rows: int) -> bool:
        """Whether of the values that are there one in ten does not have the declared type."""
        return self.unreadable > 0 and 10 * self.unreadable >= rows - self.missing

    def problems(self) -> list[str]:
        """What a controller should know, in words."""
        problems = []
        if self.unreadable:
            problems.append(f"{_count(self.unreadable, 'does', 'do')} not have the declared type, and read as missing")
        if self.outside:
            read = "not declared, and read as missing" if self.category else "out of bounds, and read as the nearer one"
            problems.append(f"{_count(self.outside, 'is', 'are')} {read}")
        if self.too_far:
            problems.append(
                f"{_count(self.too_far, 'lies', 'lie')} beyond the grid, read as its end: declare a larger step"
            )
        if self.breaks_nullable:
            read = "missing or unreadable though not nullable, and read as a public point"
            problems.append(f"{_count(self.nulls, 'is', 'are')} {read}")
        return problems


@dataclass(frozen=True)
class PeopleReport:
    """How the rows of a table belong to people."""

    word: str
    people: int
    rows_of_nobody: int
    """Rows whose unit is missing: they are left out of everything."""
    rows_each: tuple[int, ...]
    """The least number of rows of a person, its quartiles and the greatest; empty where there is nobody."""
    breaks_unique: bool = False
    """Whether someone has several rows although one each is declared; found when it is opened, or later."""

    def __str__(self) -> str:
        several = f"{self.people:,} {to_plural(self.word)}"
        if self.rows_each:
            fewest, quarter, half, three_quarters, most = (f"{rows:,}" for rows in self.rows_each)
            several += f" with {fewest} to {most} rows each (quartiles {quarter}, {half}, {three_quarters})"
        nobody = f"; {self.rows_of_nobody:,} rows belong to nobody and are left out" if self.rows_of_nobody else ""
        return several + nobody + ("; unique = true says that each has one row" if self.breaks_unique else "")


@dataclass(frozen=True)
class LinkReport:
    """How the keys of a link fit those of the table that it leads to."""

    link: str
    missing: int
    """Rows whose key has a NULL in it."""
    dangling: int
    """Rows whose key is in no row of the other table."""
    repeated: int
    """Keys that a public table has more than once: a join would multiply rows."""

    def __str__(self) -> str:
        found = {
            "rows have no key": self.missing,
            "rows have a key that leads nowhere": self.dangling,
            "keys occur more than once": self.repeated,
        }
        told = ", ".join(f"{number:,} {what}" for what, number in found.items() if number)
        return f"{self.link}: {told or 'every row has a key that leads to a row'}"


@dataclass(frozen=True)
class DeclarationReport:
    """A data set against its declaration, as ``check`` tells a controller: numbers, never values.

    ``tables`` are those that can be joined to it, by their names, and ``everyone`` the number of people in all of them
    together, where several have rows of theirs.
    """

    rows: int
    columns: tuple[ColumnReport, ...]
    people: PeopleReport | None = None
    everyone: int | None = None
    tables: Mapping[str, DeclarationReport] = field(default_factory=dict)
    links: tuple[LinkReport, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether the data is as declared: most values fit, none is made up, nor cut off without a bound."""
        return (
            not any(column.breaks_nullable or column.too_far for column in self.columns)
            and not any(column.mostly_misfits(self.rows) for column in self.columns)
            and not any(link.repeated for link in self.links)
            and not (self.people is not None and self.people.breaks_unique)
            and all(table.sound for table in self.tables.values())
        )


def check_dataset(dataset: Dataset, rows: Rows, connection: Connection) -> DeclarationReport:
    """Compare every table of a data set with its declaration."""
    own = _check_table(dataset, dataset.unit_word, rows, connection)
    return replace(
        own,
        everyone=None
        if dataset.covers_everyone
        else connection.count(write_everyone(dataset, rows, connection.dialect)),
        tables={
            name: _check_table(find_table(dataset, name), dataset.unit_word, linked, connection)
            for name, linked in rows.linked.items()
        },
        links=tuple(_check_links(dataset, rows, connection)),
    )


def _check_table(dataset: Dataset, word: str, rows: Rows, connection: Connection) -> DeclarationReport:
    held = {name: column for name, column in rows.columns.items() if column.derive is None}
    conditions = {
        f"{name}_{i}": condition
        for i, grid_column in enumerate(held.values())
        for name, condition in _report_conditions(grid_column).items()
    }
    counted = _count_each(connection, conditions, rows.table)
    reports = _make_reports(counted, list(held.values()))
    for name, column in rows.columns.items():
        if column.derive is not None:
            reports[name] = _report_derived(dataset, column.declared, rows, connection)
    people = _report_people(dataset, word, rows, counted["records"], connection) if dataset.unit else None
    return DeclarationReport(counted["records"], tuple(reports[name] for name in rows.columns), people)


def _report_people(
    dataset: Dataset, word: str, rows: Rows, number_of_rows: int, connection: Connection
) -> PeopleReport:
    """How many people have how many rows."""
    grouped = f"FROM {rows.sizes} GROUP BY number_of_rows"
    text = f"SELECT number_of_rows, COUNT(*) AS number_of_people {grouped}"
    counted = connection.fetch(SelectStatement.of_integers(text, "number_of_rows", "number_of_people")).to_pylist()
    sizes = sorted((row["number_of_rows"], row["number_of_people"]) for row in counted)
    reached = list(accumulate(number for _, number in sizes))
    people = reached[-1] if reached else 0
    ranks = [max(1, -(-people * quarter // 4)) for quarter in range(5)]
    rows_each = tuple(sizes[bisect_left(reached, rank)][0] for rank in ranks) if people else ()
    owned = sum(size * number for size, number in sizes)
    return PeopleReport(word, people, number_of_rows - owned, rows_each, dataset.unique and owned > people)


def _check_links(dataset: Dataset, rows: Rows, connection: Connection) -> Iterator[LinkReport]:
    """Follow every link from the table that declares it."""
    dialect = connection.dialect
    repeated = find_repeated_keys(dataset, rows, dialect)
    for declaring, link in list_links(dataset):
        one, other = rows.linked.get(declaring, rows), rows.linked.get(link.table, rows)
        given = " AND ".join(f"{one.name_key('a', column)} IS NOT NULL" for column in link.columns)
        found = f"EXISTS (SELECT 1 FROM {other.call('b')} WHERE {compare_keys(one, other, link, dialect)})"
        values = repeated.get((link.table, link.keys))
        yield LinkReport(
            " and ".join(f"{name_column(declaring, c)} = {name_column(link.table, key)}" for c, key in link.pairs),
            missing=connection.count(f"{one.call('a')} WHERE NOT ({given})"),
            dangling=connection.count(f"{one.call('a')} WHERE {given} AND NOT {found}"),
            repeated=0 if values is None else connection.count(values),
        )


def _report_derived(dataset: Dataset, declared: Column, rows: Rows, connection: Connection) -> ColumnReport:
    """What a derived column comes to: it is as declared, whatever it is."""
    dialect = connection.dialect
    point, grid = dialect.identifier("p0"), declared.grid
    outside = [f"{point} < {grid.lower}"] if grid.lower is not None else []
    outside += [f"{point} > {grid.upper}"] if grid.upper is not None else []
    conditions = {"known": f"{point} IS NOT NULL", "outside": " OR ".join(outside) or NEVER}
    columns = {name: rows.columns[name] for name in with_sources([declared.name], dataset.columns)}
    points = f"({nest_layers(list_layers(columns, dialect), rows.table, dialect)}) AS points"
    counted = _count_each(connection, conditions, points)
    nulls = counted["records"] - counted["known"]
    return ColumnReport(
        declared.name, declared.nullable, declared.kind is Kind.CATEGORY, nulls, 0, counted["outside"], 0, nulls
    )


def _count_each(connection: Connection, conditions: Mapping[str, str], source: str) -> dict[str, int]:
    """The number of rows that meet each condition, and of all."""
    columns = {name: f"COUNT(*) FILTER (WHERE {condition})" for name, condition in conditions.items()}
    columns["records"] = "COUNT(*)"
    text = ", ".join(f"{what} AS {connection.dialect.identifier(name)}" for name, what in columns.items())
    counted = connection.fetch(SelectStatement.of_integers(f"SELECT {text} FROM {source}", *columns))
    return {name: int(counted[name][0].as_py()) for name in columns}


def _report_conditions(column: GridColumn) -> dict[str, str]:
    """What is counted of a column, as SQL."""
    point, grid = f"({column.point})", column.declared.grid
    outside, unbounded = [], []
    for bound, order in ((grid.lower, "<"), (grid.upper, ">")):
        if bound is None:
            unbounded.append(f"{point} {order} 0")
        else:
            outside.append(f"{point} {order} {bound}")
    return {
        "given": column.given,
        "read": f"{point} IS NOT NULL",
        "outside": " OR ".join(outside) or NEVER,
        "too_far": f"({column.beyond}) AND ({' OR '.join(unbounded)})" if unbounded else NEVER,
    }


def _make_reports(counted: Mapping[str, int], grid_columns: Sequence[GridColumn]) -> dict[str, ColumnReport]:
    """The reports from the number of rows that meet each condition."""
    rows = counted["records"]
    reports = {}
    for i, column in enumerate(grid_columns):
        given, read, outside, too_far = (counted[f"{name}_{i}"] for name in _report_conditions(column))
        category = column.declared.kind is Kind.CATEGORY
        reports[column.declared.name] = ColumnReport(
            column.declared.name,
            column.declared.nullable,
            category,
            missing=rows - given,
            unreadable=0 if category else given - read,
            outside=given - read if category else outside,
            too_far=too_far,
            nulls=rows - read,
        )
    return reports


def _count(values: int, one: str, several: str) -> str:
    """So many values, with their verb."""
    return f"1 value {one}" if values == 1 else f"{values} values {several}"
