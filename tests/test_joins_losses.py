"""Whole answers about joined tables at ``differential``, through SQL: the laws of all that is drawn, over neighbours.

A neighbour has one person more or less, or another one, with all their rows in both private tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from idios.data.backend import Backend, DataSource, open_source
from idios.data.engines.duckdb import DuckDbBackend
from idios.data.sql import reduction_sql
from idios.errors import SourceError
from idios.party import TrustedParty
from idios.plan.question import Plan
from tests.joined_people import PARTS, PRODUCTS, Person, Table, make_items, make_orders, make_register
from tests.losses import ROUNDING
from tests.people import answer_however_few, list_tables, pair_neighbours
from tests.test_joins_enumeration import link_tables
from tests.test_party_checks import measure_cells, share_rho
from tests.test_party_differential import Drawing, lose, read_backend
from tests.test_people_enumeration import keep_everyone

PEOPLE: list[Person] = [
    (((1, "a", (1, "k", 1)),), ((9, "s"),)),
    (((3, "b"), (3, "a", (3, "k", 2), (3, "l", 1))), ((0, "n"),)),
    (((3, "a", (3, "z", 1)), (None, "z", (3, "k", 1), (None, "k", None))), ()),
    ((), ((0, "s"),)),
    (((3, None),), ((9, "n"), (None, "s"))),
]
"""With one row and two in each table, and without any in one; with products that are none, and orders without items."""
COLUMNS = {
    "age": {"type": "integer"},
    "region": {"type": "category", "values": ["n", "s"], "nullable": False},
}
EPSILON, SMALL = Fraction(2), Fraction(1, 2)
NOTIONS = ["replace", "add-remove"]
LEFT = "orders LEFT JOIN register ON person = id"
QUESTIONS = [
    "SELECT MEDIAN(s) FROM (SELECT SUM(x) AS s FROM orders JOIN register ON person = id GROUP BY person)",
    f"SELECT COUNT(*) FROM (SELECT COUNT(*) FROM {LEFT} WHERE region IS NULL GROUP BY person)",
    "SELECT g, MEDIAN(m), COUNT(*) FROM (SELECT MAX(region) AS g, MAX(x) AS m FROM register r LEFT JOIN orders o "
    "ON o.person = r.id LEFT JOIN products q ON o.product = q.id WHERE kind = 'food' OR x IS NULL GROUP BY r.id) "
    "GROUP BY g",
    "SELECT MEDIAN(s), COUNT(*) FROM (SELECT SUM(y) AS s FROM items LEFT JOIN orders ON items.order = number "
    "LEFT JOIN parts USING (part, maker) WHERE weight IS NULL OR weight > 0 GROUP BY person)",
]
OF_ROWS = [
    "SELECT COUNT(*) FROM items",
    "SELECT COUNT(*) FROM orders JOIN products ON product = products.id",
    f"SELECT AVG(age) FROM {LEFT} WHERE x > 0",
]
BACKENDS: dict[Table, Backend] = {}
PARTIES: dict[tuple[Any, ...], TrustedParty] = {}


@pytest.fixture(scope="module", autouse=True)
def _opened() -> Iterator[None]:
    yield
    for held in (BACKENDS, PARTIES):
        for each in held.values():
            each.close()
        held.clear()


@pytest.fixture(autouse=True)
def _however_few_people(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_however_few(monkeypatch)


def open_party(notion: str, size: int, accounting: str = "pure") -> TrustedParty:
    key = notion, size, accounting
    if key not in PARTIES:
        table = tuple(PEOPLE[:1] * size)
        PARTIES[key] = TrustedParty.open(
            make_register(table),
            name="register",
            unit="id",
            columns=COLUMNS,
            linked=link_tables(table),
            neighbours=notion,
            protection="differential",
            accounting=accounting,
            check=0,
            budget=10**6 if accounting == "pure" else {"epsilon": 1000, "delta": "1e-6"},
            min_epsilon="0.001",
            fineness=60,
            parameters={"trim": False, "quantile": False, "k": False},
        )
    return PARTIES[key]


def read_table(table: Table, plan: Plan) -> Drawing:
    if table not in BACKENDS:
        base = open_party("replace", 1).datasets["register"].dataset
        linked = {"orders": make_orders(table), "items": make_items(table), "products": PRODUCTS, "parts": PARTS}
        sources = {name: DataSource(made) for name, made in linked.items()}
        BACKENDS[table] = open_source(make_register(table), base, linked=sources)
    return read_backend(BACKENDS[table], plan)


def list_pairs(sql: str, notion: str, accounting: str = "pure") -> Iterator[tuple[Drawing, Drawing]]:
    tables, epsilon = list_tables(PEOPLE, notion), EPSILON if accounting == "pure" else SMALL
    plans = {size: open_party(notion, size, accounting).make_plan(sql, epsilon) for size in {*map(len, tables)}}
    drawings = {table: read_table(table, plans[len(table)]) for table in tables}
    yield from pair_neighbours(drawings, PEOPLE, notion)


def worst_loss(sql: str, notion: str) -> float:
    return max(lose(*pair) for pair in list_pairs(sql, notion)) / float(EPSILON)


@pytest.mark.slow
@pytest.mark.parametrize("notion", NOTIONS)
def test_the_loss_to_a_person_is_at_most_epsilon(notion: str) -> None:
    for sql in [*QUESTIONS, *OF_ROWS]:
        assert open_party(notion, 2).make_plan(sql, EPSILON).guarantee.epsilon == EPSILON
        assert 0.3 < worst_loss(sql, notion) <= 1 + ROUNDING, sql


@pytest.mark.slow
@pytest.mark.parametrize("notion", NOTIONS)
def test_the_loss_to_a_person_is_at_most_rho(notion: str) -> None:
    for sql in QUESTIONS:
        rho = open_party(notion, 2, "concentrated").make_plan(sql, SMALL).rho
        pairs = list_pairs(sql, notion, "concentrated")
        worst = max(share_rho((one, measure_cells(one)), (two, measure_cells(two)), False, rho) for one, two in pairs)
        assert 0.0005 < worst <= 1 + ROUNDING, sql


# ---------------------------------------------------------------------------------------------- planted errors


def test_a_public_number_of_people_in_one_of_the_tables_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under replace someone with orders may come for someone without: a sum over those with orders moves by more."""
    sql = "SELECT SUM(m) FROM (SELECT MAX(known) AS m FROM orders GROUP BY person)"
    assert 0.99 < worst_loss(sql, "replace") <= 1 + ROUNDING
    keep_everyone(monkeypatch)
    assert worst_loss(sql, "replace") > 1.4


def test_items_whose_order_is_their_person_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the order of an item were its person: someone with two orders may then come with twice the change."""
    sql = "SELECT COUNT(*) FROM (SELECT person FROM items JOIN orders ON items.order = number GROUP BY person)"
    assert 0.99 < worst_loss(sql, "replace") <= 1 + ROUNDING
    write = reduction_sql.write_join
    monkeypatch.setattr(
        reduction_sql, "write_join", lambda *given: write(*given).replace('"t1"."u0" AS', '"t0"."k0" AS')
    )
    with pytest.raises(SourceError):  # there are more people in the selection than in all tables
        worst_loss(sql, "replace")
    monkeypatch.setattr(DuckDbBackend, "_count_units", lambda *_: 9)
    assert worst_loss(sql, "replace") > 1.9
