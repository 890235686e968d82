"""People with rows in two tables, rows that belong to these, and public facts: what a join gives of each, in Python.

A person is their orders (x, product, items …) and their entries in the register (age, region), either of which may be
missing. An item (y, part, maker) is part of its order, and has no person of its own. Nothing here knows about grids,
envelopes or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

Item = tuple[int | None, str | None, int | None]
Order = tuple[Any, ...]
Entry = tuple[int | None, str]
Person = tuple[tuple[Order, ...], tuple[Entry, ...]]
Table = tuple[Person, ...]
Row = dict[str, Any]

KINDS: dict[str, str | None] = {"a": "food", "b": "toy", "c": None}
"""The public products; what else is ordered is none of them."""
PRODUCTS = pa.table({"id": [*KINDS, None, None], "kind": [*KINDS.values(), "food", "toy"]})
WEIGHTS: dict[tuple[str, int], int | None] = {("k", 1): 0, ("k", 2): 5, ("l", 1): None}
"""The public parts by name and maker, neither of which is a key alone."""
PARTS = pa.table(
    {
        "part": ["k", "k", "l", "k", None, None],
        "maker": [1, 2, 1, None, 1, 1],
        "weight": pa.array([0, 5, None, 3, 3, 3], pa.int64()),
    }
)
NOTHING: Row = {"age": None, "region": None}
NO_ITEM: Row = {"y": None, "part": None, "maker": None}


def make_orders(table: Sequence[Person]) -> pa.Table:
    """The orders of everybody, and one of nobody; one without items may have no name."""
    rows: list[tuple[Any, ...]] = [
        (i, x, product, name if items or x else None)
        for i, (orders, _) in enumerate(table)
        for name, (x, product, *items) in _name_orders(i, orders)
    ]
    rows = [*rows[1::2], (None, 3, "a", "nobody's"), *rows[::2]]
    return _make_table(rows, {"person": pa.int64(), "x": pa.int64(), "product": pa.string(), "number": pa.string()})


def make_items(table: Sequence[Person]) -> pa.Table:
    """The items of all orders; one of an order of nobody, one of an order that is nowhere, and two of none."""
    rows = [
        (name, *item)
        for i, (orders, _) in enumerate(table)
        for name, (_, _, *items) in _name_orders(i, orders)
        for item in items
    ]
    rows = [*rows[1::2], ("nobody's", 3, "k", 1), ("nowhere", 3, "k", 1), *[(None, 3, "k", 1)] * 2, *rows[::2]]
    return _make_table(rows, {"order": pa.string(), "y": pa.int64(), "part": pa.string(), "maker": pa.int64()})


def _name_orders(person: int, orders: Sequence[Order]) -> list[tuple[str, Order]]:
    return [(f"{person}-{place}", order) for place, order in enumerate(orders)]


def _make_table(rows: Sequence[tuple[Any, ...]], kinds: dict[str, pa.DataType]) -> pa.Table:
    return pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(kinds.items())})


def make_register(table: Sequence[Person]) -> pa.Table:
    """The entries of everybody, and one of nobody."""
    rows = [(i, *row) for i, (_, entries) in enumerate(table) for row in entries]
    rows = [*rows[::2], (None, 50, "s"), *rows[1::2]]
    return _make_table(rows, {"id": pa.int64(), "age": pa.int64(), "region": pa.string()})


def _orders(person: Person) -> list[Row]:
    return [{"x": x, "product": product} for x, product, *_ in person[0]]


def _items(person: Person, *, left: bool = False) -> list[Row]:
    """The items of a person, each with its order; with ``left``, orders without items too."""
    return [
        {"x": x, "product": product, **item}
        for x, product, *items in person[0]
        for item in [dict(zip(NO_ITEM, item, strict=True)) for item in items] or ([NO_ITEM] if left else [])
    ]


def _with_weights(rows: Sequence[Row], *, left: bool) -> list[Row]:
    keyed = [(row, (row["part"], row["maker"])) for row in rows]
    return [row | {"weight": WEIGHTS.get(key)} for row, key in keyed if left or key in WEIGHTS]


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
    "items JOIN orders ON items.order = number": _items,
    "items AS i LEFT JOIN orders AS o ON o.number = i.order LEFT JOIN register AS r ON person = r.id": lambda p: [
        i | e for i in _items(p) for e in _entries(p) or [NOTHING]
    ],
    "orders LEFT JOIN items ON number = items.order": lambda p: _items(p, left=True),
    "register r LEFT JOIN orders o ON o.person = r.id LEFT JOIN items i ON i.order = o.number": lambda p: [
        e | i for e in _entries(p) for i in _items(p, left=True) or [{"x": None} | NO_ITEM]
    ],
    "items JOIN parts USING (part, maker) JOIN orders ON items.order = number": lambda p: _with_weights(
        _items(p), left=False
    ),
    "orders JOIN items AS i ON number = i.order LEFT JOIN parts q ON q.maker = i.maker AND i.part = q.part": lambda p: (
        _with_weights(_items(p), left=True)
    ),
}
"""What stands after FROM, and the rows that a person has in it."""


def find_unit(source: str) -> str:
    """What tells people apart in a join."""
    return "r.id" if source.startswith("register") else "person"
