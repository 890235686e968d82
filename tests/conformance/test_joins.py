"""Joins by declared links: the same rows of the same people on every engine, against Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

from idios.core.calibration import Protection
from idios.core.domain import Categories, Domain, Kind
from idios.core.neighbours import Neighbours
from idios.data.backend import DataSource, open_source
from idios.data.engines.sql_backend import SqlBackend
from idios.declare.schema import Column, Dataset, Link
from idios.errors import SourceError
from idios.plan.planner import make_plan
from idios.plan.question import Plan
from idios.sql.derived import derive_columns
from idios.sql.reader import read
from tests.conformance.engines import Engine, PostgresqlEngine
from tests.conformance.plans import category, whole
from tests.conformance.test_people import read_points as read_reduced

PRODUCTS = Dataset(
    "products", {"kind": category("kind", "food", "toy")}, public=True, links=(Link(("maker",), "makers", ("id",)),)
)
MAKERS = Dataset(
    "makers", {"size": Column("size", Kind.INTEGER, Domain(lower=0, upper=9), nullable=False)}, public=True
)
SOLD = {"amount": whole("amount")}
ORDERS = Dataset(
    "orders",
    SOLD | derive_columns({"given": {"expression": "COALESCE(amount, 1)"}}, SOLD),
    unit=("born", "code"),
    unit_word="person",
    links=(Link(("code", "born"), "people", ("code", "birth")), Link(("product",), "products", ("id",))),
)

ITEMS = Dataset(
    "items",
    {"price": whole("price")},
    links=(Link(("shop", "bill"), "orders", ("shop", "number")), Link(("product", "maker"), "offers", ("id", "maker"))),
)
NOTES = Dataset("notes", {"length": whole("length")}, links=(Link(("item",), "items", ("id",)),))
OFFERS = Dataset("offers", {"stock": whole("stock")}, public=True)


def make_dataset(notion: str) -> Dataset:
    return Dataset(
        "people",
        {
            "age": whole("age"),
            "region": Column("region", Kind.CATEGORY, Categories(("north", "south")), nullable=False),
        },
        Neighbours(notion),
        Protection.declare("differential"),
        unit=("code", "birth"),
        unit_word="person",
        tables={
            "orders": ORDERS,
            "items": ITEMS,
            "notes": NOTES,
            "products": PRODUCTS,
            "makers": MAKERS,
            "offers": OFFERS,
        },
        covers_everyone=False,
    )


Rows = dict[str, list[dict[str, Any]]]


def make_rows(seed: int) -> Rows:
    """Orders of people in the register and of others, of products that exist and of others; keys with NULL."""
    draw = random.Random(seed)
    codes, born, products = ["a", "A", "ß", "a ", None], [1, 2, None], ["p", "q", "P", "r", "none", None]
    shops = ["s", "S", "s ", None]
    return {
        "people": [
            {
                "code": draw.choice(codes),
                "birth": draw.choice(born),
                "age": draw.choice([None, 5, 40]),
                "region": draw.choice(["north", "south", "west", None]),
            }
            for _ in range(12)
        ],
        "orders": [
            {
                "code": draw.choice(codes),
                "born": draw.choice(born),
                "product": draw.choice(products),
                "amount": draw.choice([None, 2, 7, -3]),
                "shop": shops[i % 4],
                "number": draw.choice([i // 4, i // 4, None]),
            }
            for i in range(40)
        ],
        "items": [
            {
                "id": draw.choice([i, i, None]),
                "shop": draw.choice(shops),
                "bill": draw.choice([*map(str, range(12)), "07", None]),
                "product": draw.choice(products),
                "maker": draw.choice([1, 2, None]),
                "price": draw.choice([None, 3, 9]),
            }
            for i in range(80)
        ],
        "notes": [{"item": draw.choice([*range(90), *[None] * 9]), "length": draw.choice([1, 5])} for _ in range(120)],
        "offers": [
            {"id": id, "maker": maker, "stock": stock}
            for id, maker, stock in [("p", 1, 4), ("p", 2, None), ("P", 1, 6), ("q", None, 8), ("q", None, 9)]
        ],
        "products": [
            {"id": id, "kind": kind, "maker": maker}
            for id, kind, maker in [
                ("p", "food", 1),
                ("q", "toy", 2),
                ("P", None, None),
                ("r", "food", 8),
                (None, "toy", 1),
            ]
        ],
        "makers": [{"id": 1, "size": 3}, {"id": 2, "size": None}, {"id": None, "size": 9}, {"id": 3, "size": 9}],
    }


TYPES = {
    "code": pa.string(), "birth": pa.int64(), "born": pa.int32(), "age": pa.int64(), "region": pa.string(),
    "product": pa.string(), "amount": pa.int64(), "id": pa.string(), "kind": pa.string(), "maker": pa.int64(),
    "size": pa.int64(), "shop": pa.string(), "number": pa.int64(), "bill": pa.string(), "price": pa.int64(),
    "item": pa.int32(), "length": pa.int64(), "stock": pa.int64(),
}  # fmt: skip

OTHER_TYPES = {("makers", "id"): pa.int16(), ("items", "id"): pa.int64()}


def make_tables(rows: Rows) -> dict[str, pa.Table]:
    return {
        name: pa.table(
            {
                column: pa.array(
                    [row[column] for row in listed],
                    OTHER_TYPES.get((name, column), TYPES[column]),
                )
                for column in listed[0]
            }
        )
        for name, listed in rows.items()
    }


def read_points(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it is read: what is not declared is NULL, or the first value where there is no NULL."""
    read = dict(row)
    if table == "people":
        read["region"] = row["region"] if row["region"] in ("north", "south") else "north"
    if table == "orders":
        read["given"] = 1 if row["amount"] is None else row["amount"]
    if table == "makers":
        read["size"] = row["size"] or 0
    return read


def join(left: Sequence[dict[str, Any]], rows: Rows, table: str, on: Mapping[str, str], optional: bool) -> list[Any]:
    """The textbook's nested loop."""
    columns = {f"{table}.{name}": None for name in [*rows[table][0], *({"given"} if table == "orders" else ())]}
    joined = []
    for row in left:
        matching = [
            {f"{table}.{name}": value for name, value in read_points(table, other).items()}
            for other in rows[table]
            if all(None not in (row[mine], other[key]) and _equal(row[mine], other[key]) for mine, key in on.items())
        ]
        joined += [row | match for match in matching or ([columns] if optional else [])]
    return joined


def _equal(one: Any, other: Any) -> bool:
    """A number and text are compared as text."""
    return str(one) == str(other) if isinstance(one, str) or isinstance(other, str) else bool(one == other)


def begin(rows: Rows, table: str) -> list[dict[str, Any]]:
    return [{f"{table}.{name}": value for name, value in read_points(table, row).items()} for row in rows[table]]


def join_all(rows: Rows, optional: bool) -> list[dict[str, Any]]:
    """Orders with people, products and makers."""
    found = join(begin(rows, "orders"), rows, "people", {"orders.code": "code", "orders.born": "birth"}, optional)
    found = join(found, rows, "products", {"orders.product": "id"}, optional)
    return join(found, rows, "makers", {"products.maker": "id"}, optional)


def join_owners(rows: Rows, optional: bool) -> list[dict[str, Any]]:
    """Notes with their items and orders, without which they are nobody's."""
    found = join(begin(rows, "notes"), rows, "items", {"notes.item": "id"}, False)
    return join(found, rows, "orders", {"items.shop": "shop", "items.bill": "number"}, False)


def join_notes(rows: Rows, optional: bool) -> list[dict[str, Any]]:
    """Notes with what they belong to, people and offers."""
    found = join(join_owners(rows, optional), rows, "people", {"orders.code": "code", "orders.born": "birth"}, optional)
    return join(found, rows, "offers", {"items.product": "id", "items.maker": "maker"}, optional)


def join_items(rows: Rows, optional: bool) -> list[dict[str, Any]]:
    """Orders with their items."""
    return join(begin(rows, "orders"), rows, "items", {"orders.shop": "shop", "orders.number": "bill"}, optional)


REDUCED = "SUM(amount) AS s, COUNT(given) AS c, MAX(age) AS a, MAX(region) AS g, MAX(kind) AS k, MIN(size) AS m"
JOINED = (
    "orders o {0} JOIN people AS p ON o.code = p.code AND p.birth = o.born {0} JOIN products q ON product = q.id "
    "{0} JOIN makers AS x ON q.maker = x.id"
)
NOTED = (
    "notes LEFT JOIN items AS i ON item = i.id LEFT JOIN orders AS o ON bill = number AND o.shop = i.shop LEFT JOIN "
    "people AS p ON o.code = p.code AND p.birth = o.born LEFT JOIN offers q ON i.product = q.id AND q.maker = i.maker"
)
Joined = Callable[[Rows, bool], list[dict[str, Any]]]
QUESTIONS: list[tuple[str, Joined, bool, Callable[[dict[str, Any]], bool]]] = [
    (
        "SELECT MEDIAN(n), MEDIAN(l), MEDIAN(a), MEDIAN(s), MEDIAN(m) FROM (SELECT COUNT(*) AS n, SUM(length) AS l, "
        "MAX(age) AS a, SUM(stock) AS s, MAX(amount) AS m FROM {noted} WHERE stock IS NULL OR stock > 4 "
        "GROUP BY o.code, o.born)",
        join_notes,
        True,
        lambda row: row["offers.stock"] is None or row["offers.stock"] > 4,
    ),
    ("SELECT COUNT(*), SUM(length) FROM notes", join_owners, True, lambda row: True),
    (
        "SELECT MEDIAN(s), MEDIAN(n) FROM (SELECT SUM(price) AS s, COUNT(*) AS n FROM orders AS o LEFT JOIN items ON "
        "o.shop = items.shop AND number = bill GROUP BY code, born)",
        join_items,
        True,
        lambda row: True,
    ),
    (
        "SELECT MEDIAN(s), COUNT(k), MEDIAN(m) FROM (SELECT {reduced} FROM {inner} GROUP BY o.code, born)",
        join_all,
        False,
        lambda row: True,
    ),
    (
        "SELECT g, MEDIAN(c), MEDIAN(a), COUNT(*) FROM (SELECT {reduced} FROM {left} "
        "WHERE p.region IS NULL OR kind = 'food' OR size >= 3 GROUP BY o.code, o.born) GROUP BY g",
        join_all,
        True,
        lambda row: (
            row["people.region"] is None
            or row["products.kind"] == "food"
            or (row["makers.size"] is not None and row["makers.size"] >= 3)
        ),
    ),
]
FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "SUM": lambda known: sum(known) if known else None,
    "COUNT": len,
    "MAX": lambda known: max(known, default=None),
    "MIN": lambda known: min(known, default=None),
}


def list_everyone(rows: Rows) -> set[Any]:
    """Who has a row in any private table."""
    everyone = {(row["code"], row["birth"]) for row in rows["people"]}
    everyone |= {(row["code"], row["born"]) for row in rows["orders"]}
    return {unit for unit in everyone if None not in unit}


def expect_points(plan: Plan, joined: Sequence[dict[str, Any]], holds: Callable[..., bool]) -> list[tuple[Any, ...]]:
    """The records of the people with a row in the join that fulfils the condition, as points."""
    people: dict[Any, list[dict[str, Any]]] = {}
    for row in joined:
        unit = row["orders.code"], row["orders.born"]
        if None not in unit and holds(row):
            people.setdefault(unit, []).append(row)
    assert plan.dataset.reduction is not None
    values = [plan.dataset.reduction.find(name) for name in plan.dataset.columns]
    return [
        tuple(
            _place(
                FUNCTIONS[value.function](
                    [row[value.column] for row in person if row[value.column] is not None] if value.column else person
                ),
                plan.dataset.columns[value.name],
            )
            for value in values
        )
        for person in people.values()
    ]


def _place(value: Any, column: Column) -> int | None:
    if isinstance(column.domain, Categories) and value is not None:
        return column.domain.values.index(value)
    return None if value is None else int(value)


def test_every_engine_joins_alike(engine: Engine) -> None:
    data, rows = make_dataset("replace"), make_rows(seed=4)
    kept = {name: DataSource(engine.keep(table)) for name, table in make_tables(rows).items()}
    own = kept.pop("people")
    with open_source(own.place, data, linked=kept) as backend:
        assert isinstance(backend, SqlBackend)
        assert backend.count_units() == len(list_everyone(rows))
        for sql, join_rows, optional, holds in QUESTIONS:
            text = sql.format(reduced=REDUCED, inner=JOINED.format(""), left=JOINED.format("LEFT"), noted=NOTED)
            plan = make_plan(read(text, {"people": data}), data, 500)
            expected = expect_points(plan, join_rows(rows, optional), holds)
            assert len(expected) > 3
            assert Counter(read_reduced(backend, plan)) == Counter(expected), text


LINKS = [
    ("orders", {"code": "code", "born": "birth"}, "people"),
    ("orders", {"product": "id"}, "products"),
    ("items", {"shop": "shop", "bill": "number"}, "orders"),
    ("items", {"product": "id", "maker": "maker"}, "offers"),
    ("notes", {"item": "id"}, "items"),
    ("products", {"maker": "id"}, "makers"),
]


def _as_text(key: Any) -> str | None:
    return None if key is None else str(key)


def expect_link(rows: Rows, table: str, on: Mapping[str, str], target: str) -> tuple[str, int, int]:
    """How many rows have no key, and how many one that leads nowhere."""
    keys = [tuple(_as_text(row[column]) for column in on) for row in rows[table]]
    there = {tuple(_as_text(row[key]) for key in on.values()) for row in rows[target]}
    named = " and ".join(f"{table}.{column} = {target}.{key}" for column, key in on.items())
    known = [key for key in keys if None not in key]
    return named, len(keys) - len(known), sum(key not in there for key in known)


def test_every_engine_counts_people_and_keys(engine: Engine) -> None:
    data, rows = make_dataset("replace"), make_rows(seed=4)
    kept = {name: DataSource(engine.keep(table)) for name, table in make_tables(rows).items()}
    with open_source(kept.pop("people").place, data, linked=kept) as backend:
        report = backend.check()
    assert report.everyone == len(list_everyone(rows))
    for name, birth in (("people", "birth"), ("orders", "born")):
        each = report.tables.get(name, report)
        owned = Counter((row["code"], row[birth]) for row in rows[name] if None not in (row["code"], row[birth]))
        assert each.people is not None
        assert (each.people.people, each.people.rows_of_nobody) == (len(owned), len(rows[name]) - owned.total())
        assert (each.people.rows_each[0], each.people.rows_each[-1]) == (min(owned.values()), max(owned.values()))
    assert {name: each.rows for name, each in report.tables.items()} == {name: len(rows[name]) for name in kept}
    assert report.tables["products"].people is None
    assert [(link.link, link.missing, link.dangling) for link in report.links] == [
        expect_link(rows, *link) for link in LINKS
    ]
    assert all(link.missing and link.dangling and not link.repeated for link in report.links)
    nulls = {column.name: column.nulls for column in report.tables["orders"].columns}
    assert nulls == {"amount": sum(row["amount"] is None for row in rows["orders"]), "given": 0}
    assert not report.sound, "a region and a size are missing"


def test_a_public_key_that_repeats_is_refused(engine: Engine) -> None:
    rows = make_rows(seed=4)
    rows["products"].append({"id": "q", "kind": "food", "maker": 1})
    kept = {name: DataSource(engine.keep(table)) for name, table in make_tables(rows).items()}
    own = kept.pop("people")
    with pytest.raises(SourceError, match="id is no key of the public 'products': 1 of its values"):
        open_source(own.place, make_dataset("replace"), linked=kept)


def test_a_key_of_rows_that_others_belong_to_is_refused_where_it_repeats(quick_engine: Engine) -> None:
    rows = make_rows(seed=4)
    twice = next(row for row in rows["orders"] if None not in (row["shop"], row["number"]))
    rows["orders"].append(twice | {"code": "b"})
    kept = {name: DataSource(quick_engine.keep(table)) for name, table in make_tables(rows).items()}
    own = kept.pop("people")
    with pytest.raises(SourceError, match="shop, number is no key of 'orders': 1 of its values occur more than once"):
        open_source(own.place, make_dataset("replace"), linked=kept)


def test_a_public_key_that_repeats_later_is_found(postgresql_engine: PostgresqlEngine) -> None:
    """A database goes on while a data set is open."""
    kept = {name: postgresql_engine.keep(table) for name, table in make_tables(make_rows(seed=4)).items()}
    table = unquote(str(kept["products"]).partition("?table=")[2])
    linked = {name: DataSource(place) for name, place in kept.items() if name != "people"}
    with open_source(kept["people"], make_dataset("replace"), linked=linked) as backend:
        added = "('q', 'food', 1), ('q', 'toy', 1), ('p', 'toy', 1)"
        postgresql_engine.connection.execute(f"INSERT INTO {table} VALUES {added}")
        report = backend.check()
    assert [link.repeated for link in report.links] == [0, 2, 0, 0, 0, 0]
    assert str(report.links[1]).endswith("2 keys occur more than once")
    assert not report.sound


def test_keys_of_types_that_cannot_be_compared_are_refused(quick_engine: Engine) -> None:
    tables = make_tables(make_rows(seed=4))
    tables["makers"] = tables["makers"].set_column(0, "id", pa.array([1.0, 2.0, None, 3.0]))
    kept = {name: DataSource(quick_engine.keep(table)) for name, table in tables.items()}
    own = kept.pop("people")
    with pytest.raises(SourceError, match=r"products.maker is of type int64 and makers.id of type float64"):
        open_source(own.place, make_dataset("replace"), linked=kept)
