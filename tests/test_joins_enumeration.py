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

from idios.backends import reduction_sql, sql_backend
from idios.party import TrustedParty
from idios.query import reductions
from tests import oracle
from tests.joined_people import (
    JOINS,
    PRODUCTS,
    Person,
    Row,
    Table,
    find_unit,
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
}
NEEDS = {"a": "register", "g": "register", "f": "products", "k": "orders"}
CONDITIONS: list[tuple[str, str, Callable[[Row], bool]]] = [
    ("", "", lambda row: True),
    ("products", " WHERE kind = 'food'", lambda row: row["kind"] == "food"),
    ("products", " WHERE kind IS NULL", lambda row: row["kind"] is None),
    ("register", " WHERE region IS NULL OR age > 5", lambda row: row["region"] is None or (row["age"] or 0) > 5),
    ("orders", " WHERE x > 0", lambda row: row["x"] is not None and row["x"] > 0),
]
STATISTICS: dict[str, tuple[str, Callable[[Sequence[Any]], Any]]] = {
    "n": ("COUNT(n)", len),
    "m": ("AVG(m)", oracle.mean),
    "s": ("MEDIAN(s)", lambda v: oracle.quantile(v, HALF)),
    "k": ("MEDIAN(k)", lambda v: oracle.quantile(v, HALF)),
    "a": ("MEDIAN(a)", lambda v: oracle.quantile(v, HALF)),
    "g": ("COUNT(g)", len),
    "f": ("COUNT(f)", len),
}
UNBOUNDED = "ks"
"""Values that more rows make ever greater: no table that is tried has the greatest."""


def open_party(table: Table, notion: str) -> TrustedParty:
    linked = LINKED | {"orders": {"source": make_orders(table), **LINKED["orders"]}}
    return TrustedParty.open(
        make_register(table),
        name="register",
        unit="id",
        columns=COLUMNS,
        neighbours=notion,
        budget=10**6,
        min_epsilon="0.001",
        linked=linked,
    )


def compare_table(table: Table, notion: str, step: int = 1, joins: Sequence[str] = tuple(JOINS)) -> int:
    """Compare the value and the envelope of every statistic with what neighbours give; how many were compared."""
    others = list(list_neighbours(table, PEOPLE, notion))
    compared = 0
    with open_party(table, notion) as party:
        assert party.datasets["register"].dataset.size is None
        assert party.datasets["register"].backend.count_units() == len(table)
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
    (((0, "a"), (3, "b")), ((9, "s"),)),
    (((3, "z"), (1, "a")), ()),
    ((), ((0, "n"),)),
    (((3, "a"), (3, None)), ((0, "s"), (9, "n"))),
)
"""Four people, of whom one is in no register and one has no orders."""


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_four_people(notion: str) -> None:
    assert compare_table(TABLE, notion) > 60


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["replace", "add-remove"])
def test_envelopes_of_joins_are_what_neighbours_give(notion: str) -> None:
    draw = random.Random(5)
    for _ in range(3):
        compare_table(tuple(draw.choice(PEOPLE) for _ in range(draw.randint(1, 3))), notion, step=2)


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
    _plant(monkeypatch, r"FROM frame\b", "FROM (SELECT * FROM frame WHERE region IS NULL OR age > 5) AS early")
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
