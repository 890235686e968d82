"""Joins by declared links: the rows that a reduction reads may come from several tables.

    orders ─ person_id ─▶ people      more rows of the same people, joined on what tells them apart
    items ─ order_id ───▶ orders      rows that belong to a row: items have no unit, and are whose their order is
    orders ─ product ───▶ products    public facts, joined by a key that is unique there

A person is their rows in the tables with a unit, each with the rows that belong to it, each with those that belong to
that, and so on. An owner's key is unique, so that every row belongs to one row at most: to one person, or to nobody,
where its key is NULL, leads nowhere or leads to a row of nobody. A key is only the name of a row. The keys
of a new person are new, or were used so far only by rows that belong to nobody.

Proposition. Let two states of the tables differ in one person, with all their rows in all private tables. Then their
reduced tables differ in one record, which is replaced, enters or leaves.
Proof. A row of the join is made of one row of the first table, of at most one row of each private table, and of public
rows. A link between private tables equates units, or leads from a row to the one that it belongs to, or back. In each
case both rows are of the same person, so all private rows in a row of the join are of one person. Whether LEFT JOIN
keeps a row that matches nothing depends on the rows of its own person and on public ones. So a person's joined rows are
a function of what is theirs and of public data, whatever the names of their rows, and their record is a function of
these (``reductions``). Rows of nobody in the first table are left out: their owners are joined to it, and not by LEFT
JOIN (``add_owners``). In other tables they match nothing of anybody's. ∎

Rules:

1. Only what is declared is joined: anything else could tie the rows of one person to those of another.
2. A person may be in one table and not in another. So where several tables have a unit, or where a JOIN that is not
   LEFT may leave rows out, the number of people with a row is secret, under replace too.
3. A column goes by the names of its table and its own, ``orders.amount``, whichever way it was written. Where LEFT JOIN
   finds nothing it is NULL, whatever is declared of it; derived columns too, as each is derived before the join. There
   a condition on a derived column is one on itself. In all other tables it is one on its sources, as they are in a row
   of the join what they are in the row of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from idios.declare.schema import Column, Dataset, Link
from idios.errors import InvalidInput
from idios.expressions.language import Expression, Reference, substitute


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


def find_owner(dataset: Dataset, name: str) -> Link | None:
    """The link to the rows that those of a table belong to; None if it has a unit, or is public."""
    table = find_table(dataset, name)
    if table.unit or table.public:
        return None
    return next(link for link in table.links if not find_table(dataset, link.table).public)


def add_owners(dataset: Dataset, join: Join) -> Join:
    """The join in which the rows of the first table are with those that they belong to, up to a table with a unit.

    Rows of nobody are no part of it, so that LEFT JOIN of an owner is the same as JOIN.
    """
    owners: list[JoinedTable] = []
    name = join.tables[0].name
    while (link := find_owner(dataset, name)) is not None:
        owners.append(JoinedTable(link.table, tuple(Condition(name, column, key) for column, key in link.pairs)))
        name = link.table
    known = [owner.name for owner in owners]
    return Join((join.tables[0], *owners, *(table for table in join.tables[1:] if table.name not in known)))


def find_people(dataset: Dataset, join: Join) -> Dataset:
    """The table of a join whose unit says whose a row is: the first that has one."""
    return next(table for joined in join.tables if (table := find_table(dataset, joined.name)).unit)


def join_tables(dataset: Dataset, join: Join) -> Dataset:
    """The data set whose rows are those of a join; among its tables is the one that it was."""
    tables = [(find_table(dataset, joined.name), joined) for joined in join.tables]
    columns: dict[str, Column] = {}
    for table, joined in tables:
        for column in table.columns.values():
            name = name_column(table.name, column.name)
            columns[name] = replace(
                column,
                name=name,
                nullable=column.nullable or joined.optional,
                expression=None if joined.optional else _rename_sources(column, table),
            )
    people = find_people(dataset, join)
    ordered = (name_column(table.name, table.order) for table, _ in tables if table.order is not None)
    from_people = join.tables[0].name == dataset.name
    everyone = from_people and dataset.covers_everyone and all(joined.optional for joined in join.tables[1:])
    return replace(
        dataset,
        columns=columns,
        unit=tuple(name_column(people.name, column) for column in people.unit),
        order=next(ordered, None),
        unique=all(table.public or table.unique for table, _ in tables),
        tables={**dataset.tables, dataset.name: dataset},
        size=dataset.size if everyone else None,
        covers_everyone=everyone,
    )


def _rename_sources(column: Column, table: Dataset) -> Expression | None:
    """The expression of a derived column, with its sources as they are called in a join."""
    if column.expression is None:
        return None
    return substitute(column.expression, {name: Reference(name_column(table.name, name)) for name in table.columns})


def list_keys(dataset: Dataset, name: str) -> list[str]:
    """The columns of a table that tell people apart or that a link names, each once."""
    own = find_table(dataset, name)
    out = [column for link in own.links for column in link.columns]
    into = [key for _, link in list_links(dataset) if link.table == name for key in link.keys]
    return list(dict.fromkeys([*own.unit, *out, *into]))


def list_links(dataset: Dataset) -> Iterator[tuple[str, Link]]:
    """The links of all tables, each with the table that declares it."""
    for table in list_tables(dataset):
        yield from ((table.name, link) for link in table.links)


def list_unique_keys(dataset: Dataset) -> dict[tuple[str, tuple[str, ...]], str]:
    """The tables and keys that occur once, each with a table that says so, by a link to it or of its own unit.

    Those of public rows, and those of rows that others belong to: a link from unit to unit needs none.
    """
    units = {(table.name, table.unit): table.name for table in list_tables(dataset) if table.unique}
    return units | {
        (link.table, link.keys): declaring
        for declaring, link in list_links(dataset)
        if find_table(dataset, link.table).public or find_owner(dataset, declaring) == link
    }


def read_links(given: Any) -> tuple[Link, ...]:
    """Check which columns hold keys of other data sets; several make one key together.

    >>> read_links({"product": "products.id", "part, maker": "made.id, made.firm"})[1]
    Link(columns=('part', 'maker'), table='made', keys=('id', 'firm'))
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f'links must be a table such as {{ product = "products.id" }}, got {given!r}')
    return tuple(_read_link(str(columns), target) for columns, target in given.items())


def _read_link(written: str, target: Any) -> Link:
    columns = tuple(part.strip() for part in written.split(","))
    ends = [part.strip().partition(".") for part in target.split(",")] if isinstance(target, str) else []
    keys, tables = tuple(key for _, _, key in ends), {table for table, _, _ in ends}
    if len(columns) == 1 and len(ends) < 2:
        if not all([*columns, *keys, *tables]) or not ends:
            raise InvalidInput(f'links: {written} must be linked to "data set.column", got {target!r}')
    elif len(columns) != len(ends) or len(tables) != 1 or not all([*columns, *keys, *tables]):
        raise InvalidInput(
            f"links: {written} must be linked to as many columns of one data set, as in "
            f'"part, maker" = "made.id, made.firm", got {target!r}'
        )
    if len({*columns}) < len(columns) or len({*keys}) < len(keys):
        raise InvalidInput(f"links: a key has different columns, got {written!r} and {target!r}")
    return Link(columns, min(tables), keys)
