"""The tables that an engine holds of a data set, and the SQL that joins them.

    table ─ on the grid ─┐
    table ─ on the grid ─┴─ JOIN … ON keys ─▶ rows of grid points, each with its unit

Rules:

1. Each table is put on its grid before it is joined. So a column that is declared not nullable is NULL where LEFT JOIN
   finds nothing, and no made-up point.
2. Units and keys are read in one form (``hold_key``), in which values are equal by their bytes: whatever groups, joins,
   counts or hashes them, two spellings are one person or two. Where one key is text and the other a whole number, as a
   csv file holds text only, both are compared as text. No value of a key can make this fail.
3. A key of a public table occurs once, and so does one of rows that others belong to, which is checked when the data
   set is opened: else it would multiply rows, or a row would be of several people.
4. A row of the join is whose the row of the first table with a unit is (``joins.find_people``), which is never joined
   by LEFT JOIN. Where that has a NULL in it, it is nobody's, and is left out before the join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]

from idios.data.sql.dialect import Dialect
from idios.data.sql.grid_sql import GridColumn, list_layers, nest_layers, with_sources
from idios.declare.schema import Dataset, Link
from idios.errors import SourceError
from idios.plan.joins import Join, find_people, find_table, list_links, list_unique_keys, name_column


@dataclass(frozen=True)
class HeldKey:
    """A column that tells people apart or that a link names, and its type in the engine.

    ``held`` is what the source calls it, and ``value`` the SQL of the one form in which it is compared.
    """

    held: str
    value: str
    type: dt.DataType


def hold_key(name: str, held: str, type: dt.DataType, dialect: Dialect) -> HeldKey:
    """Write the form of a unit or a key in which its values are equal by their bytes alone.

    Text is told apart whatever its collation says of capitals, accents, normal forms or spaces at its end; only the
    spaces that fill up a CHAR(n) are no part of it. 0.0 and −0.0 are one number, and so are decimals that differ in
    zeros at their end. Dates and timestamps are whole numbers, as on the grid. What reads as missing there, a float
    that is no number or a timestamp that is infinite, names nobody here.
    """
    value = held
    if type.is_string():
        value = dialect.key.format(x=held)
    elif type.is_floating():
        double, zero = f"CAST({held} AS {dialect.double})", dialect.real(0.0)
        value = f"CASE WHEN {dialect.finite.format(x=held)} THEN CASE WHEN {held} = 0 THEN {zero} ELSE {double} END END"
    elif type.is_decimal() and dialect.plain_decimal:
        value = dialect.plain_decimal.format(x=held)
    elif type.is_date():
        value = dialect.days.format(x=held)
    elif isinstance(type, dt.Timestamp):
        value = dialect.microseconds(held, type)
    elif not any(kind(type) for kind in _EQUAL_BY_BYTES):
        raise SourceError(
            f"column {name!r} is a unit or a key, and the source holds {type}, of which one value may be written in "
            "several ways: convert it to text or to whole numbers in the source"
        )
    return HeldKey(held, value, type)


_EQUAL_BY_BYTES = (
    dt.DataType.is_integer,
    dt.DataType.is_boolean,
    dt.DataType.is_decimal,
    dt.DataType.is_uuid,
    dt.DataType.is_binary,
)
"""Types whose values every engine keeps in one form."""


@dataclass(frozen=True)
class Rows:
    """A table of rows: what stands after FROM, its columns on the grid, and what tells people apart, as SQL.

    ``keys`` are by their names, and ``linked`` are the other tables of the data set, by theirs.
    """

    table: str
    columns: Mapping[str, GridColumn]
    unit: Sequence[str]
    keys: Mapping[str, HeldKey] = field(default_factory=dict)
    linked: Mapping[str, Rows] = field(default_factory=dict)

    def call(self, alias: str) -> str:
        """What stands after FROM to read its keys under another name (``name_key``)."""
        listed = ", ".join(f"{key.value} AS k{i}" for i, key in enumerate(self.keys.values()))
        return f"(SELECT {listed} FROM {self.table}) AS {alias}"

    def name_key(self, alias: str, column: str) -> str:
        """What a key is called there."""
        return f"{alias}.k{list(self.keys).index(column)}"

    @property
    def owned(self) -> str:
        """Whether a row belongs to anybody."""
        return " AND ".join(f"{column} IS NOT NULL" for column in self.unit)

    @property
    def sizes(self) -> str:
        """What stands after FROM to read one row for each person, with the number of theirs as ``number_of_rows``."""
        listed = ", ".join(self.unit)
        return f"(SELECT COUNT(*) AS number_of_rows FROM {self.table} WHERE {self.owned} GROUP BY {listed}) AS sizes"


def write_join(dataset: Dataset, join: Join, names: Sequence[str], rows: Rows, dialect: Dialect) -> str:
    """The rows of a join that belong to somebody: their points as v0, v1, … by ``names``, their unit as u0, u1, …."""
    quoted = dialect.identifier
    held = {joined.name: rows.linked.get(joined.name, rows) for joined in join.tables}
    people = find_people(dataset, join).name
    parts, listed = [], {}
    for i, joined in enumerate(join.tables):
        own, table = held[joined.name], find_table(dataset, joined.name)
        wanted = [name for name in table.columns if name_column(joined.name, name) in names]
        columns = {name: own.columns[name] for name in with_sources(wanted, table.columns)}
        for j, name in enumerate(columns):
            listed[name_column(joined.name, name)] = quoted(f"t{i}", f"v{j}")
        layers = list_layers(columns, dialect)
        layers[0] += [f"{key.value} AS {quoted(f'k{j}')}" for j, key in enumerate(own.keys.values())]
        source = own.table
        if joined.name == people:
            layers[0] += [f"{column} AS {quoted(f'u{j}')}" for j, column in enumerate(own.unit)]
            source = f"(SELECT * FROM {own.table} WHERE {own.owned}) AS owned"
        parts.append(f"({nest_layers(layers, source, dialect)}) AS {quoted(f't{i}')}")
    text = parts[0]
    places = {joined.name: i for i, joined in enumerate(join.tables)}
    for joined, part in zip(join.tables[1:], parts[1:], strict=True):
        equal = []
        for condition in joined.conditions:
            ends = [(condition.table, condition.column), (joined.name, condition.key)]
            named = [quoted(f"t{places[t]}", f"k{list(held[t].keys).index(c)}") for t, c in ends]
            one, other = (held[t].keys[c].type for t, c in ends)
            equal.append(" = ".join(_make_comparable(named, [one, other], dialect)))
        text += f" {'LEFT' if joined.optional else 'INNER'} JOIN {part} ON {' AND '.join(equal)}"
    points = [f"{listed[name]} AS {quoted(f'v{i}')}" for i, name in enumerate(names)]
    owner = f"t{places[people]}"
    units = [f"{quoted(owner, f'u{i}')} AS {quoted(f'u{i}')}" for i in range(len(held[people].unit))]
    return f"SELECT {', '.join([*points, *units])} FROM {text}{dialect.fence}"


def write_everyone(dataset: Dataset, rows: Rows, dialect: Dialect) -> str:
    """What stands after FROM to read one row for each person in any private table."""
    tables = [(rows, list(dataset.unit))]
    for declaring, link in list_links(dataset):
        if link.table == dataset.name and find_table(dataset, declaring).unit:
            named = {key: column for column, key in link.pairs}
            tables.append((rows.linked[declaring], [named[name] for name in dataset.unit]))
    units = [[own.keys[name] for name in names] for own, names in tables]
    listed = [
        _make_comparable([key.value for key in place], [key.type for key in place], dialect)
        for place in zip(*units, strict=True)
    ]
    parts = []
    for i, (own, _) in enumerate(tables):
        columns = ", ".join(f"{place[i]} AS u{j}" for j, place in enumerate(listed))
        parts.append(f"SELECT {columns} FROM {own.table} WHERE {own.owned}")
    return f"({' UNION '.join(parts)}) AS everyone"


def find_repeated_keys(dataset: Dataset, rows: Rows, dialect: Dialect) -> dict[tuple[str, tuple[str, ...]], str]:
    """By table and key that must be unique: what stands after FROM to read a row for each value that is not."""
    found = {}
    for name, keys in list_unique_keys(dataset):
        own = rows.linked.get(name, rows)
        held = [own.keys[key] for key in keys]
        listed = ", ".join(f"{key.value} AS k{i}" for i, key in enumerate(held))
        known = " AND ".join(f"{key.value} IS NOT NULL" for key in held)
        places = ", ".join(f"k{i}" for i in range(len(keys)))
        unique = f"SELECT {listed} FROM {own.table} WHERE {known}"
        repeated = f"(SELECT k0 FROM ({unique}) AS ks GROUP BY {places} HAVING COUNT(*) > 1) AS repeated"
        found[name, keys] = repeated
    return found


def describe_repeated_key(dataset: Dataset, table: str, keys: tuple[str, ...], number: int) -> str:
    """What is wrong if a key that must be unique is not, and what to do."""
    kind, wrong, other = "the public ", "a join would multiply rows", "Link another column"
    declaring = list_unique_keys(dataset)[table, keys]
    if declaring == table:
        kind, wrong, other = "", "unique = true says that each person has one row", "Declare no unique"
    elif not find_table(dataset, table).public:
        kind, wrong = "", f"a row of {declaring!r} would belong to several of them"
    return (
        f"{', '.join(keys)} is no key of {kind}{table!r}: {number} of its values occur more than once, and {wrong}. "
        f"{other}, or remove the repeated ones"
    )


def list_comparisons(dataset: Dataset, rows: Rows, dialect: Dialect) -> Iterator[str]:
    """For each link, what stands after FROM to compare its keys."""
    for declaring, link in list_links(dataset):
        one, other = rows.linked.get(declaring, rows), rows.linked.get(link.table, rows)
        yield f"{one.call('a')} INNER JOIN {other.call('b')} ON {compare_keys(one, other, link, dialect)}"


def compare_keys(one: Rows, other: Rows, link: Link, dialect: Dialect) -> str:
    """Whether a row of a table, called a, leads by its link to one of another, called b."""
    equal = []
    for column, key in link.pairs:
        held = [one.keys[column], other.keys[key]]
        named = [one.name_key("a", column), other.name_key("b", key)]
        equal.append(" = ".join(_make_comparable(named, [each.type for each in held], dialect)))
    return " AND ".join(equal)


def refuse_incomparable(dataset: Dataset, rows: Rows) -> None:
    """Say which links name columns whose types cannot be compared."""
    for declaring, link in list_links(dataset):
        for column, key in link.pairs:
            one = rows.linked.get(declaring, rows).keys[column].type
            other = rows.linked.get(link.table, rows).keys[key].type
            if not _are_alike(one, other) and not _are_text_and_number(one, other):
                raise SourceError(
                    f"{declaring}.{column} is of type {one} and {link.table}.{key} of type {other}, which "
                    "cannot be compared: give them one type"
                )


def _are_alike(one: dt.DataType, other: dt.DataType) -> bool:
    kinds = (dt.DataType.is_string, dt.DataType.is_integer)
    # nullability is part of a type in Ibis, and matters to no comparison
    return any(kind(one) and kind(other) for kind in kinds) or one.copy(nullable=True) == other.copy(nullable=True)


def _are_text_and_number(one: dt.DataType, other: dt.DataType) -> bool:
    return bool((one.is_string() and other.is_integer()) or (one.is_integer() and other.is_string()))


def _make_comparable(values: Sequence[str], types: Sequence[dt.DataType], dialect: Dialect) -> list[str]:
    """Values of keys, each in its form, as what can be compared: as text, if one of them is text."""
    if not any(held.is_string() for held in types):
        return list(values)
    pairs = zip(values, types, strict=True)
    return [value if held.is_string() else dialect.key.format(x=value) for value, held in pairs]
