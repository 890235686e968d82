"""Whole answers about people at ``differential``, through SQL: the laws of all that is drawn, over all neighbours.

A neighbour has one person more or less, or another one, with all their rows. Everything is read by the party's own way
from each table, and calibrated on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from idios.data.backend import Backend, open_source
from idios.party import TrustedParty
from idios.plan.question import Plan
from tests.losses import ROUNDING
from tests.people import Person, Table, answer_however_few, list_tables, make_data, pair_neighbours
from tests.test_party_checks import measure_cells, share_rho
from tests.test_party_differential import Drawing, lose, read_backend
from tests.test_people_enumeration import keep_everyone

PEOPLE: list[Person] = [
    ((0, 1, "a", 1),),
    ((8, 1, "b", 1),),
    ((8, 0, "a", 1),),
    ((None, 1, "a", 1),),
    ((0, 1, "a", 1), (8, 0, "b", 2)),
    ((8, 1, "b", 1), (8, 1, "a", 2), (1, 1, "a", None)),
]
COLUMNS = {
    "x": {"type": "integer"},
    "y": {"type": "integer", "bounds": [0, 1], "nullable": False},
    "g": {"type": "category", "values": ["a", "b"], "nullable": False},
    "t": {"type": "integer", "bounds": [1, 2], "nullable": False},
}
EPSILON = Fraction(2)
SMALL = Fraction(1, 2)
NOTIONS = ["replace", "add-remove"]
UNIT_COLUMNS = ("name", "number")
UNIT = "GROUP BY name, number"
QUESTIONS = [
    f"SELECT MEDIAN(s) FROM (SELECT SUM(x) AS s FROM t {UNIT})",
    f"SELECT COUNT(*), MEDIAN(n) FROM (SELECT COUNT(*) AS n FROM t WHERE y = 1 {UNIT})",
    f"SELECT h, MEDIAN(m), COUNT(*) FROM (SELECT LAST(g) AS h, AVG(x) AS m FROM t WHERE y = 1 {UNIT}) GROUP BY h",
    f"SELECT QUANTILE(m, 0.25) FROM (SELECT MAX(x) AS m, BOOL_OR(y) AS z FROM t {UNIT}) WHERE z AND m < 8",
]
OF_ROWS = [
    "SELECT COUNT(*) FROM t",
    "SELECT SUM(x) FROM t WHERE y = 1",
    "SELECT AVG(x), COUNT(x) FROM t",
]
BACKENDS: dict[tuple[Table, bool], Backend] = {}
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


def open_party(notion: str, size: int, accounting: str = "pure", unit: Any = UNIT_COLUMNS) -> TrustedParty:
    key = notion, size, accounting, unit
    if key not in PARTIES:
        PARTIES[key] = TrustedParty.open(
            make_data(tuple(PEOPLE[:1] * size)),
            name="t",
            unit=list(unit) or None,
            order="t" if unit else None,
            columns=COLUMNS,
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
    unit = plan.dataset.unit
    key = table, bool(unit)
    if key not in BACKENDS:
        base = open_party("replace", 1, unit=unit).datasets["t"].dataset
        BACKENDS[key] = open_source(make_data(table), base)
    return read_backend(BACKENDS[key], plan)


def list_pairs(
    sql: str, notion: str, accounting: str = "pure", largest: int = 2, **given: Any
) -> Iterator[tuple[Drawing, Drawing]]:
    tables, epsilon = list_tables(PEOPLE, notion, largest), EPSILON if accounting == "pure" else SMALL
    plans = {
        size: open_party(notion, size, accounting, **given).make_plan(sql, epsilon) for size in {*map(len, tables)}
    }
    drawings = {table: read_table(table, plans[len(table)]) for table in tables}
    yield from pair_neighbours(drawings, PEOPLE, notion)


def worst_loss(sql: str, notion: str, **given: Any) -> float:
    return max(lose(*pair) for pair in list_pairs(sql, notion, **given)) / float(EPSILON)


@pytest.mark.slow
@pytest.mark.parametrize("notion", NOTIONS)
def test_the_loss_to_a_person_is_at_most_epsilon(notion: str) -> None:
    for sql in [*QUESTIONS, *OF_ROWS]:
        assert open_party(notion, 2).make_plan(sql, EPSILON).guarantee.epsilon == EPSILON
        largest = 3 if sql == QUESTIONS[1] else 2
        assert 0.3 < worst_loss(sql, notion, largest=largest) <= 1 + ROUNDING, sql


@pytest.mark.slow
@pytest.mark.parametrize("notion", NOTIONS)
def test_the_loss_to_a_person_is_at_most_rho(notion: str) -> None:
    for sql in QUESTIONS:
        rho = open_party(notion, 2, "concentrated").make_plan(sql, SMALL).rho
        pairs = list_pairs(sql, notion, "concentrated")
        worst = max(share_rho((one, measure_cells(one)), (two, measure_cells(two)), False, rho) for one, two in pairs)
        assert 0.001 < worst <= 1 + ROUNDING, sql


# ---------------------------------------------------------------------------------------------- planted errors


def test_a_number_of_rows_that_a_row_changes_by_one_is_caught() -> None:
    """As if a person were a row."""
    assert worst_loss("SELECT COUNT(*) FROM t WHERE y = 1", "add-remove", unit=()) > 2.9


def test_a_number_of_rows_that_is_public_is_caught() -> None:
    assert worst_loss("SELECT COUNT(*) FROM t", "replace", unit=()) > 1


def test_a_public_size_in_spite_of_a_filter_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of values of at least 1 moves by more when someone enters than when someone is replaced."""
    sql = f"SELECT SUM(s) FROM (SELECT MAX(t) AS s FROM t WHERE y = 1 {UNIT})"
    assert 0.99 < worst_loss(sql, "replace") <= 1 + ROUNDING
    keep_everyone(monkeypatch)
    assert worst_loss(sql, "replace") > 1.9
