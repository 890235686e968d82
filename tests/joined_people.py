"""People with rows in two tables and facts in a public one, in plain Python: what a join gives of each person.

A person is their orders (x, product) and their entries in the register (age, region), either of which may be missing.
Nothing here knows about grids, envelopes or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

Order = tuple[int | None, str | None]
Entry = tuple[int | None, str]
Person = tuple[tuple[Order, ...], tuple[Entry, ...]]
Table = tuple[Person, ...]
Row = dict[str, Any]

KINDS: dict[str, str | None] = {"a": "food", "b": "toy", "c": None}
"""The public products; what else is ordered is none of them."""
PRODUCTS = pa.table({"id": [*KINDS, None, None], "kind": [*KINDS.values(), "food", "toy"]})
NOTHING: Row = {"age": None, "region": None}


def make_orders(table: Sequence[Person]) -> pa.Table:
    """The orders of everybody, and one of nobody."""
    rows = [(i, *row) for i, (orders, _) in enumerate(table) for row in orders]
    rows = [*rows[1::2], (None, 3, "a"), *rows[::2]]
    kinds = {"person": pa.int64(), "x": pa.int64(), "product": pa.string()}
    return pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(kinds.items())})


def make_register(table: Sequence[Person]) -> pa.Table:
    """The entries of everybody, and one of nobody."""
    rows = [(i, *row) for i, (_, entries) in enumerate(table) for row in entries]
    rows = [*rows[::2], (None, 50, "s"), *rows[1::2]]
    kinds = {"id": pa.int64(), "age": pa.int64(), "region": pa.string()}
    return pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(kinds.items())})


def _orders(person: Person) -> list[Row]:
    return [{"x": x, "product": product} for x, product in person[0]]


def _entries(person: Person) -> list[Row]:
    return [{"age": age, "region": region} for age, region in person[1]]


def _with_products(rows: Sequence[Row], *, left: bool) -> list[Row]:
    return [row | {"kind": KINDS.get(row["product"])} for row in rows if left or row["product"] in KINDS]


JOINS: dict[str, Callable[[Person], list[Row]]] = {
    "orders": _orders,
    "orders JOIN register ON person = id": lambda p: [o | e for o in _orders(p) for e in _entries(p)],
    "orders LEFT JOIN register ON person = id": lambda p: [o | e for o in _orders(p) for e in _entries(p) or [NOTHING]],
    "register AS r LEFT JOIN orders AS o ON r.id = o.person": lambda p: [
        e | o for e in _entries(p) for o in _orders(p) or [{"x": None}]
    ],
    "orders JOIN products ON product = products.id": lambda p: _with_products(_orders(p), left=False),
    "orders LEFT JOIN products ON product = products.id JOIN register AS r ON person = r.id": lambda p: _with_products(
        [o | e for o in _orders(p) for e in _entries(p)], left=True
    ),
    "register r JOIN orders o ON o.person = r.id JOIN products q ON o.product = q.id": lambda p: _with_products(
        [o | e for o in _orders(p) for e in _entries(p)], left=False
    ),
}
"""What stands after FROM, and the rows that a person has in it."""


def find_unit(source: str) -> str:
    """What tells people apart in a join."""
    if "JOIN orders" in source:
        return "r.id"
    return "person"
