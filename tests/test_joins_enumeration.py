"""Joins through SQL: what the party calibrates to is what trying every neighbour gives, in all tables together."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from idios.data.engines import sql_backend
from idios.data.sql import reduction_sql
from idios.errors import SourceError
from idios.party import TrustedParty
from idios.plan import reductions
from idios.plan.joins import Join
from tests import joined_people, oracle
from tests.joined_people import (
    JOINS,
    PARTS,
    PRODUCTS,
    Person,
    Row,
    Table,
    find_unit,
    make_items,
    make_orders,
    make_register,
)
from tests.people import list_neighbours

ORDERS: list[Any] = [
    (),
    *(((x, bought),) for x, bought in product((0, 3, None), ("a", "b", "c", "z", None))),
    ((0, "a"), (3, "b")),
    ((3, "z"), (1, "a")),
    ((3, "a"), (3, None)),
    ((0, "b", (0, "k", 1)),),
    ((0, "a", (0, "k", 1), (3, "l", 1)), (3, "b")),
    ((3, None, (3, "k", 2)), (0, "b", (None, "k", None), (3, "z", 1), (0, "k", 2))),
]
ENTRIES: list[Any] = [(), ((0, "n"),), ((9, "s"),), ((None, "n"),), ((0, "s"), (9, "n"))]
PEOPLE: list[Person] = [person for person in product(ORDERS, ENTRIES) if any(person)]
"""Everybody who can come instead: with no row, one or two in each table, but not with none at all."""
COLUMNS = {
    "age": {"type": "integer", "bounds": [0, 9]},
    "region": {"type": "category", "values": ["n", "s"], "nullable": False},
}
LINKED: dict[str, Any] = {
    "orders": {
        "unit": "person",
        "links": {"person": "register.id", "product": "products.id"},
        "columns": {
            "x": {"type": "integer", "bounds": [0, 3]},
            "known": {"expression": "COALESCE(x, 2) + 3"},
        },
    },
    "items": {
        "links": {"order": "orders.number", "part, maker": "parts.part, parts.maker"},
        "columns": {"y": {"type": "integer", "bounds": [0, 3]}},
    },
    "parts": {"source": PARTS, "public": True, "columns": {"weight": {"type": "integer", "bounds": [0, 5]}}},
    "products": {
        "source": PRODUCTS,
        "public": True,
        "columns": {"kind": {"type": "category", "values": ["food", "toy"]}},
    },
}
HALF = Fraction(1, 2)


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row.get(name) is not None]


def _add_up(values: Sequence[int]) -> int | None:
    return sum(values) if values else None


REDUCED: dict[str, tuple[str, Callable[[Sequence[Row]], Any]]] = {
    "n": ("COUNT(*)", len),
    "m": ("MAX(x)", lambda rows: max(_values(rows, "x"), default=None)),
    "s": ("SUM(x)", lambda rows: _add_up(_values(rows, "x"))),
    "k": ("COUNT(known)", lambda rows: sum("product" in row for row in rows)),
    "a": ("MIN(age)", lambda rows: min(_values(rows, "age"), default=None)),
    "g": ("MAX(region)", lambda rows: max(_values(rows, "region"), default=None)),
    "f": ("MIN(kind)", lambda rows: min(_values(rows, "kind"), default=None)),
    "y": ("MAX(y)", lambda rows: max(_values(rows, "y"), default=None)),
    "t": ("SUM(y)", lambda rows: _add_up(_values(rows, "y"))),
    "w": ("MAX(weight)", lambda rows: max(_values(rows, "weight"), default=None)),
}
NEEDS = {"a": "register", "g": "register", "f": "products", "k": "orders", "y": "items", "t": "items", "w": "parts"}
CONDITIONS: list[tuple[str, str, Callable[[Row], bool]]] = [
    ("", "", lambda row: True),
    ("products", " WHERE kind = 'food'", lambda row: row["kind"] == "food"),
    ("products", " WHERE kind IS NULL", lambda row: row["kind"] is None),
    ("register", " WHERE region IS NULL OR age > 5", lambda row: row["region"] is None or (row["age"] or 0) > 5),
    ("orders", " WHERE x > 0", lambda row: row["x"] is not None and row["x"] > 0),
    ("orders", " WHERE known >= 5", lambda row: "product" in row and row["x"] in (None, 3)),
    ("items", " WHERE y > 0 OR x IS NULL", lambda row: (row["y"] or 0) > 0 or row["x"] is None),
    ("parts", " WHERE weight IS NULL", lambda row: row["weight"] is None),
]
STATISTICS: dict[str, tuple[str, Callable[[Sequence[Any]], Any]]] = {
    "n": ("COUNT(n)", len),
    "m": ("AVG(m)", oracle.mean),
    "s": ("MEDIAN(s)", lambda v: oracle.quantile(v, HALF)),
    "k": ("MEDIAN(k)", lambda v: oracle.quantile(v, HALF)),
    "a": ("MEDIAN(a)", lambda v: oracle.quantile(v, HALF)),
    "g": ("COUNT(g)", len),
    "f": ("COUNT(f)", len),
    "y": ("AVG(y)", oracle.mean),
    "t": ("MEDIAN(t)", lambda v: oracle.quantile(v, HALF)),
    "w": ("MEDIAN(w)", lambda v: oracle.quantile(v, HALF)),
}
UNBOUNDED = "kst"
"""Values that more rows make ever greater: no table that is tried has the greatest."""


def open_party(table: Table, notion: str) -> TrustedParty:
    return TrustedParty.open(
        make_register(table),
        name="register",
        unit="id",
        columns=COLUMNS,
        neighbours=notion,
        budget=10**6,
        min_epsilon="0.001",
        linked=link_tables(table),
        protection="individual",
    )


def link_tables(table: Table) -> dict[str, Any]:
    """What is linked to the register."""
    made = {"orders": make_orders(table), "items": make_items(table)}
    return LINKED | {name: {"source": source, **LINKED[name]} for name, source in made.items()}


def compare_table(table: Table, notion: str, step: int = 1, joins: Sequence[str] = tuple(JOINS)) -> int:
    """Compare the value and the envelope of every statistic with what neighbours give; how many were compared."""
    with open_party(table, notion) as party:
        assert party.datasets["register"].dataset.size is None
        assert party.datasets["register"].backend.count_units() == len(table)
        return compare_joins(party, table, list(list_neighbours(table, PEOPLE, notion)), step, joins)


def compare_joins(
    party: TrustedParty, table: Table, others: Sequence[Table], step: int = 1, joins: Sequence[str] = tuple(JOINS)
) -> int:
    compared = 0
    for source, (needs, where, holds) in list(product(joins, CONDITIONS))[::step]:
        if needs not in source:
            continue
        labels = [label for label in REDUCED if NEEDS.get(label, "orders") in source]
        listed = ", ".join(f"{REDUCED[label][0]} AS {label}" for label in labels)
        select = ", ".join(f"{STATISTICS[label][0]} AS r{label}" for label in labels)
        unit = find_unit(source)
        sql = f"SELECT {select} FROM (SELECT {unit}, {listed} FROM {source}{where} GROUP BY {unit})"
        inspection = party.inspect(sql, 12)
        made = {person: _reduce(person, source, holds, labels) for person in {*table, *PEOPLE}}
        reduced = [[made[person] for person in each] for each in (table, *others)]
        for cell in inspection.cells:
            label = cell.statistic[1:]
            found = [_evaluate(people, label) for people in reduced]
            # what is NULL in a join is so in all columns of a table, of which a condition makes no use
            _compare(cell, found, exact=label not in UNBOUNDED and not where, sql=sql)
            compared += 1
    return compared


def _reduce(person: Person, source: str, holds: Callable[[Row], bool], labels: Sequence[str]) -> Row:
    rows = [row for row in JOINS[source](person) if holds(row)]
    return {label: REDUCED[label][1](rows) for label in labels} if rows else {}


def _evaluate(people: Sequence[Row], label: str) -> Any:
    value = STATISTICS[label][1](sorted(p[label] for p in people if p.get(label) is not None))
    return None if value is None else Fraction(value)


def _compare(cell: Any, found: list[Any], *, exact: bool, sql: str) -> None:
    found = [found[0], *dict.fromkeys(found)]
    rounding = Fraction(1, 10**6)
    assert cell.value == found[0] or abs(cell.value - found[0]) < rounding, (sql, cell, found[0])
    defined = [value for value in found if value is not None]
    low, high = min(defined, default=math.inf), max(defined, default=-math.inf)
    assert cell.lows[1] - rounding <= low <= high <= cell.highs[1] + rounding or not defined, (sql, cell, low, high)
    if len(defined) == len(found) and exact:
        assert max(abs(cell.lows[1] - low), abs(cell.highs[1] - high)) < rounding, (sql, cell, low, high)


TABLE: Table = (
    (((0, "a", (3, "k", 2)), (3, "b")), ((9, "s"),)),
    (((3, "z"), (1, "a", (1, "k", 1), (2, "l", 1))), ()),
    ((), ((0, "n"),)),
    (((3, "a", (0, "k", 1), (None, "z", 2)), (3, None, (3, "k", None))), ((0, "s"), (9, "n"))),
)
"""Four people, of whom one is in no register and one has no orders."""
ITEMS = "items JOIN orders ON items.order = number"


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_four_people(notion: str) -> None:
    assert compare_table(TABLE, notion) > 60


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_envelopes_of_joins_are_what_neighbours_give(notion: str) -> None:
    draw = random.Random(5)
    for _ in range(3):
        compare_table(tuple(draw.choice(PEOPLE) for _ in range(draw.randint(1, 3))), notion, step=3)


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_rows_that_belong_to_rows_are_of_nobody_else(notion: str) -> None:
    """Without a register everyone has an order, and the number of people is public, whatever belongs to the orders."""
    people = [person for person in PEOPLE if person[0] and not person[1]]
    table = tuple((orders, ()) for orders, _ in TABLE if orders)
    joins = [source for source in JOINS if "register" not in source and "products" not in source]
    with open_orders(table, notion) as party:
        assert party.datasets["orders"].dataset.size == (len(table) if notion == "replace" else None)
        assert party.datasets["orders"].backend.count_units() == len(table)
        assert compare_joins(party, table, list(list_neighbours(table, people, notion)), joins=joins) > 20


def open_orders(table: Table, notion: str) -> TrustedParty:
    """Orders and what belongs to them, without a register."""
    return TrustedParty.open(
        make_orders(table),
        name="orders",
        unit="person",
        columns=LINKED["orders"]["columns"],
        neighbours=notion,
        budget=10**6,
        min_epsilon="0.001",
        linked={name: each for name, each in link_tables(table).items() if name in ("items", "parts")},
        protection="individual",
    )


# ---------------------------------------------------------------------------------------------- planted errors


def _plant(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    write = reduction_sql.write_join

    def write_wrongly(*given: Any) -> str:
        text = re.sub(old, new, right := write(*given))
        assert text != right
        return text

    monkeypatch.setattr(reduction_sql, "write_join", write_wrongly)


def test_links_that_are_ignored_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody's orders with everybody's entries."""
    _plant(monkeypatch, "ON .* = .*", "ON TRUE")
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=["orders JOIN register ON person = id"])


def test_people_who_are_in_no_register_and_are_counted_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, "INNER JOIN", "LEFT JOIN")
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=["orders JOIN register ON person = id"])


def test_people_who_are_in_no_register_and_are_lost_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, "LEFT JOIN", "INNER JOIN")
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=["orders LEFT JOIN register ON person = id"])


def test_a_filter_before_the_join_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """WHERE region IS NULL after LEFT JOIN holds for what matches nothing; before it, nothing would match at all."""
    early = "FROM (SELECT * FROM kept_frame WHERE region IS NULL OR age > 5) AS early"
    _plant(monkeypatch, r"FROM kept_frame\b", early)
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=["orders LEFT JOIN register ON person = id"])


def test_a_number_of_people_of_one_table_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nobody could come into a table from the other."""
    monkeypatch.setattr(sql_backend, "write_everyone", lambda _, rows, __: rows.sizes)
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=["orders JOIN register ON person = id"])


def test_not_nullable_columns_after_left_join_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a column that is never NULL in its table were never NULL in a join."""
    join = reductions.join_tables

    def join_wrongly(dataset: Any, given: Any) -> Any:
        made = join(dataset, given)
        region = replace(made.columns["register.region"], nullable=False)
        return replace(made, columns=dict(made.columns) | {"register.region": region})

    monkeypatch.setattr(reductions, "join_tables", join_wrongly)
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=["orders LEFT JOIN register ON person = id"])


def test_derived_columns_of_sources_that_left_join_did_not_find_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if COALESCE(x, 2) were 2 where there is no order."""
    join = reductions.join_tables

    def join_wrongly(dataset: Any, given: Join) -> Any:
        found = join(dataset, Join(tuple(replace(table, optional=False) for table in given.tables))).columns
        made = join(dataset, given)
        known = replace(made.columns["orders.known"], expression=found["orders.known"].expression)
        return replace(made, columns=dict(made.columns) | {"orders.known": known})

    monkeypatch.setattr(reductions, "join_tables", join_wrongly)
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=["register AS r LEFT JOIN orders AS o ON r.id = o.person"])


def test_items_that_lead_nowhere_and_are_a_person_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, "INNER JOIN", "LEFT JOIN")
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=[ITEMS])


def test_items_whose_order_is_their_person_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone with two orders would be two people."""
    _plant(monkeypatch, r'"t1"."u0" AS', '"t0"."k0" AS')
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=[ITEMS])


def test_orders_of_one_name_are_refused_and_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item of two orders would be of two people, and one of them leaves with it."""
    name = joined_people._name_orders
    monkeypatch.setattr(joined_people, "_name_orders", lambda _, orders: name(0, orders))
    with pytest.raises(SourceError, match="number is no key of 'orders': 2 of its values occur more than once"):
        compare_table(TABLE, "replace", joins=[ITEMS])
    monkeypatch.setattr(sql_backend, "find_repeated_keys", lambda *_: {})
    with pytest.raises(AssertionError):
        compare_table(TABLE, "replace", joins=[ITEMS])
