"""Joins by declared links: the rows that a reduction reads may come from several tables.

    orders ─ person_id ─▶ people      more rows of the same people, joined on what tells them apart
    orders ─ product ───▶ products    public facts, joined by a key that is unique there

Proposition. Let two states of the tables differ in one person, with all their rows in all private tables. Then their
reduced tables differ in one record, which is replaced, enters or leaves.
Proof. A row of the join is made of one row of the first table, of at most one row of each private table, and of public
rows. A link between private tables equates units, directly or with the unit of a table that was joined before, so all
private rows in it are of the same person. Whether LEFT JOIN keeps a row of the first table that matches nothing depends
on the rows of its own person and on public ones. So a person's joined rows are a function of their own rows and of
public data, and their record is a function of these (``reductions``). ∎

Rules:

1. Only what is declared is joined: anything else could tie the rows of one person to those of another.
2. A person may be in one table and not in another. So where there are several private tables, or where a JOIN that is
   not LEFT may leave rows out, the number of people with a row is secret, under replace too.
3. A column goes by the names of its table and its own, ``orders.amount``, whichever way it was written. Where LEFT JOIN
   finds nothing it is NULL, whatever is declared of it; derived columns too, as each is derived before the join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from idios.errors import InvalidInput
from idios.query.schema import Column, Dataset, Link


@dataclass(frozen=True)
class Condition:
    """``column`` of a ``table`` that was joined before equals ``key`` of the one that is joined."""

    table: str
    column: str
    key: str


@dataclass(frozen=True)
class JoinedTable:
    """A table, and how it is joined to those before it; the first has no conditions. ``optional`` is LEFT JOIN."""

    name: str
    conditions: tuple[Condition, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Join:
    """The tables in the order in which they are joined."""

    tables: tuple[JoinedTable, ...]

    @property
    def form(self) -> list[object]:
        """What is equal for joins that mean the same: where all are INNER, the order does not matter."""
        if any(table.optional for table in self.tables):
            return [
                [table.name, table.optional, sorted([c.table, c.column, c.key] for c in table.conditions)]
                for table in self.tables
            ]
        equal = {tuple(sorted([(c.table, c.column), (t.name, c.key)])) for t in self.tables for c in t.conditions}
        return [sorted(table.name for table in self.tables), [list(map(list, pair)) for pair in sorted(equal)]]


def find_table(dataset: Dataset, name: str) -> Dataset:
    """A table of a data set: itself, or one that can be joined to it."""
    return dataset.tables[name] if name in dataset.tables or name != dataset.name else dataset


def list_tables(dataset: Dataset) -> Iterator[Dataset]:
    """All tables of a data set, itself first."""
    yield dataset
    yield from dataset.tables.values()


def name_column(table: str, column: str) -> str:
    """What a column is called in a join.

    >>> name_column("orders", "amount")
    'orders.amount'
    """
    return f"{table}.{column}"


def join_tables(dataset: Dataset, join: Join) -> Dataset:
    """The data set whose rows are those of a join; among its tables is the one that it was."""
    tables = [(find_table(dataset, joined.name), joined) for joined in join.tables]
    columns: dict[str, Column] = {}
    for table, joined in tables:
        for column in table.columns.values():
            name = name_column(table.name, column.name)
            columns[name] = Column(name, column.kind, column.domain, column.nullable or joined.optional)
    first = tables[0][0]
    ordered = (name_column(table.name, table.order) for table, _ in tables if table.order is not None)
    everyone = dataset.covers_everyone and all(joined.optional for joined in join.tables[1:])
    return replace(
        dataset,
        columns=columns,
        unit=tuple(name_column(first.name, column) for column in first.unit),
        order=next(ordered, None),
        tables={**dataset.tables, dataset.name: dataset},
        size=dataset.size if everyone else None,
        covers_everyone=everyone,
    )


def list_keys(dataset: Dataset, name: str) -> list[str]:
    """The columns of a table that tell people apart or that a link names, each once."""
    own = find_table(dataset, name)
    into = [link.key for table in list_tables(dataset) for link in table.links if link.table == name]
    return list(dict.fromkeys([*own.unit, *(link.column for link in own.links), *into]))


def list_links(dataset: Dataset) -> Iterator[tuple[str, tuple[Link, ...]]]:
    """The links that are followed together, each with the table that declares them: to people those of the whole unit.

    To a public table each link is one by itself.
    """
    for table in list_tables(dataset):
        private = {link.table: () for link in table.links if not find_table(dataset, link.table).public}
        for target in private:
            yield table.name, tuple(link for link in table.links if link.table == target)
        for link in table.links:
            if link.table not in private:
                yield table.name, (link,)


def read_links(given: Any) -> tuple[Link, ...]:
    """Check which columns hold keys of other data sets.

    >>> read_links({"product": "products.id"})
    (Link(column='product', table='products', key='id'),)
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f'links must be a table such as {{ product = "products.id" }}, got {given!r}')
    links = []
    for column, target in given.items():
        table, dot, key = target.partition(".") if isinstance(target, str) else ("", "", "")
        if not (column and table and dot and key):
            raise InvalidInput(f'links: {column} must be linked to "data set.column", got {target!r}')
        links.append(Link(str(column), table, key))
    return tuple(links)
