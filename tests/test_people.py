"""People with several rows, from a file to an answer: declarations, words, `check`, the sandbox, the catalogue."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.core.accounting import compose_parallel, compose_sequential, round_up
from idios.core.calibration import Level
from idios.core.guarantee import Guarantee
from idios.core.neighbours import Neighbours
from idios.datasets import declare
from idios.errors import InvalidInput, SourceError
from idios.model import Answer, Quote
from idios.party import TrustedParty
from idios.sandbox import ROWS, TWIN_PEOPLE, make_twin
from idios.server.catalogue import describe_dataset

COLUMNS = {
    "amount": {"type": "integer", "bounds": [0, 100], "nullable": False},
    "region": {"type": "category", "values": ["north", "south"]},
    "day": {"type": "date"},
}
NAMES = ["ann", "bob", "Bob", "", "01", "1"]
PEOPLE = 120


def make_orders() -> pa.Table:
    """Each person i has 1 + i % 4 orders; five belong to nobody."""
    owners = [i for i in range(PEOPLE) for _ in range(1 + i % 4)]
    names = [f"{NAMES[i % 6]}-{i}" for i in owners]
    count = len(owners) + 5
    return pa.table(
        {
            "person": pa.array([*names, *[None] * 5], pa.string()),
            "amount": pa.array([i % 50 for i in range(count)], pa.int64()),
            "region": pa.array([("north", "south")[i % 2] for i in range(count)], pa.string()),
            "day": pa.array([None] * count, pa.date32()),
        }
    )


def open_orders(source: Any, **declared: Any) -> TrustedParty:
    given: dict[str, Any] = {"unit": "person", "protection": "differential", "budget": 1000} | declared
    return TrustedParty.open(source, name="orders", columns=COLUMNS, order="day", **given)


def keep(kind: str, folder: Path) -> Any:
    table = make_orders()
    if kind == "csv":
        lines = [",".join("" if value is None else str(value) for value in row.values()) for row in table.to_pylist()]
        path = folder / "orders.csv"
        path.write_text("\n".join(["person,amount,region,day", *lines]) + "\n")
        return path
    if kind == "parquet":
        pq.write_table(table, folder / "orders.parquet")
        return folder / "orders.parquet"
    if kind == "duckdb":
        with duckdb.connect(str(folder / "orders.duckdb")) as connection:
            connection.register("frame", table)
            connection.execute("CREATE TABLE orders AS SELECT * FROM frame")
        return f"{folder / 'orders.duckdb'}::orders"
    return table


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb", "frame"])
def test_every_kind_of_file(kind: str, tmp_path: Path) -> None:
    with open_orders(keep(kind, tmp_path)) as party:
        assert party.datasets["orders"].dataset.size == PEOPLE
        report = party.datasets["orders"].backend.check()
        assert str(report.people) == (
            "120 people with 1 to 4 rows each (quartiles 1, 2, 3); 5 rows belong to nobody and are left out"
        )
        sql = "SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM orders GROUP BY person) WHERE n = 4"
        [cell] = party.inspect(sql, 5).cells
        assert cell.value == 30


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_a_unit_may_be_a_declared_column_too(kind: str, tmp_path: Path) -> None:
    columns = COLUMNS | {"person": {"type": "category", "values": ["ann-0", "bob-1"]}}
    with TrustedParty.open(keep(kind, tmp_path), name="orders", columns=columns, unit="person", budget=5) as party:
        [cell] = party.inspect(
            "SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM orders WHERE person = 'bob-1' GROUP BY person)", 1
        ).cells
        assert cell.value == 1


def test_answers_and_quotes_speak_of_people() -> None:
    sql = "SELECT MEDIAN(total) FROM (SELECT person, SUM(amount) AS total FROM orders GROUP BY person)"
    with open_orders(make_orders(), unit_word="household", budget=1000, check="0.2") as party:
        quote = party.quote(sql, 5)
        assert quote.reduction == "the rows of each household to SUM(amount), which is never released"
        assert "households off" in str(quote)
        assert Quote.from_dict(quote.to_dict()) == quote
        answer = party.query(sql, 5)
        assert "any one household with all their rows" in str(answer.guarantee)
        assert Answer.from_dict(answer.to_dict()).guarantee == answer.guarantee
        assert "household" in str(answer.check_rows[0]["MEDIAN(total)"])
        assert "household" in str(party.ledger.answers("orders")[0])


def test_promises_for_records_and_for_people_do_not_compose() -> None:
    record = Guarantee(Level.DIFFERENTIAL, Fraction(1), Neighbours.REPLACE)
    person = replace(record, unit="person")
    assert compose_sequential([person, person]).unit == compose_parallel([person, person]).unit == "person"
    assert round_up(person, (Fraction(1), Fraction(1))).unit == "person"
    with pytest.raises(InvalidInput, match="cannot be composed"):
        compose_sequential([record, person])


def test_twins_have_several_rows() -> None:
    with open_orders(make_orders()) as party:
        backend = party.twins.of(party.datasets["orders"].dataset)
        assert (backend.rows(), backend.count_units()) == (ROWS, TWIN_PEOPLE)
        sql = "SELECT COUNT(*) FROM (SELECT person FROM orders GROUP BY person)"
        assert party.sandbox(sql, 1).rows == ({"COUNT(*)": TWIN_PEOPLE},)
        assert party.query(sql, 1).rows == ({"COUNT(*)": PEOPLE},)
    assert "person" in make_twin(party.datasets["orders"].dataset.columns, ("person",)).column_names


def make_clients(*more: Any) -> pa.Table:
    """One row each, a row of nobody, and more."""
    owners = [*range(400), None, *more]
    return pa.table({"client": pa.array(owners, pa.int64()), "amount": [i % 50 for i in range(len(owners))]})


CLIENTS = {"amount": {"type": "integer", "bounds": [0, 100], "nullable": False}}
OF_CLIENTS = (
    *(
        "SELECT COUNT(*) FROM clients",
        "SELECT COUNT(*) FROM clients WHERE amount > 3",
        "SELECT SUM(amount) FROM clients",
    ),
    *("SELECT MEDIAN(amount) FROM clients", "SELECT AVG(amount) FROM clients", "SELECT VARIANCE(amount) FROM clients"),
    "SELECT BIN(amount, 25) AS b, COUNT(*), AVG(amount) FROM clients GROUP BY b",
)


@pytest.mark.parametrize("level", ["differential", "individual"])
def test_where_each_person_has_one_row_it_is_a_record(level: str) -> None:
    """The same statistics, mechanisms and noise as of records without a unit: no limits are drawn within bounds."""
    given: dict[str, Any] = {"name": "clients", "columns": CLIENTS, "budget": 1000, "protection": level}
    people = TrustedParty.open(make_clients(), unit="client", unique=True, **given)
    records = TrustedParty.open(make_clients().slice(0, 400), **given)
    with people, records:
        for sql in OF_CLIENTS:
            one, other = people.make_plan(sql, 2), records.make_plan(sql, 2)
            assert [each.choice for each in one.aggregates] == [each.choice for each in other.aggregates], sql
            found, expected = people.inspect(sql, 2), records.inspect(sql, 2)
            assert [(cell.value, cell.noise) for cell in found.cells] == [
                (cell.value, cell.noise) for cell in expected.cells
            ], sql
        assert people.query(OF_CLIENTS[0], 1).rows == ({"COUNT(*)": 400},)
        assert people.quote(OF_CLIENTS[0], 1).cost == 0
        assert "any one person with all their rows" in str(people.query(OF_CLIENTS[2], 1).guarantee)
        assert people.sandbox(OF_CLIENTS[3], 1).sandbox
        assert people.datasets["clients"].backend.check().sound


def test_a_person_with_two_rows_is_found_where_each_has_one() -> None:
    given: dict[str, Any] = {"name": "clients", "columns": CLIENTS, "budget": 1, "unit": "client"}
    with pytest.raises(SourceError, match=r"client is no key of 'clients': 2 of its values .* Declare no unique"):
        TrustedParty.open(make_clients(7, 7, 8), unique=True, **given)
    with TrustedParty.open(make_clients(7, 7, 8), **given) as party:
        assert party.datasets["clients"].backend.check().sound, "nothing says that each has one row"


def test_only_questions_about_the_tables_where_each_person_has_one_row_are_about_records() -> None:
    orders = {"client": [i % 300 for i in range(900)], "product": ["bread", "ball"] * 450, "paid": [1, 2, 3] * 300}
    paid = {"paid": {"type": "integer", "bounds": [0, 9], "nullable": False}}
    kinds = {"kind": {"type": "category", "values": ["food", "toy"]}}
    linked: dict[str, Any] = {
        "orders": {"source": orders, "unit": "client", "columns": paid} | {"links": {"client": "clients.client"}},
        "products": {"source": {"code": ["bread", "ball"], "kind": ["food", "toy"]}, "public": True, "columns": kinds},
    }
    linked["orders"]["links"]["product"] = "products.code"
    join = "orders JOIN clients ON orders.client = clients.client"
    with TrustedParty.open(
        *(make_clients(),), name="clients", columns=CLIENTS, budget=9, unit="client", unique=True, linked=linked
    ) as party:
        for column, source, records in (("amount", "clients", 1), ("paid", "orders", 20), ("amount", join, 20)):
            assert party.make_plan(f"SELECT MEDIAN({column}) FROM {source}", 4).dataset.records == records, source
        assert party.quote("SELECT COUNT(*) FROM clients", 4).cost, "someone may have orders alone"


def test_the_catalogue_tells_the_unit() -> None:
    declared = declare(
        "orders",
        {"source": make_orders(), "columns": COLUMNS, "unit": "person", "budget": 1, "protection": "differential"},
    )
    with open_orders(make_orders()) as party:
        facts = describe_dataset(party, declared)
    assert (facts.unit, facts.unit_word, facts.order, facts.size) == (("person",), "person", "day", PEOPLE)
    assert "people" in str(facts)
    assert not any(column.groups for column in facts.columns)
    offered = {function.name for function in facts.columns[0].functions}
    assert {"COUNT", "SUM", "AVG", "MEDIAN", "PERCENTILE_DISC", "TRIMMED_MEAN", "WINSORIZED_MEAN"} <= offered
    assert not offered & {"VARIANCE", "STDDEV", "IQR", "KTH_LARGEST", "MIN", "MAX", "MODE"}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"unit": []}, "name of a column"),
        ({"unit": ["a", "a"]}, "different names"),
        ({"unit": 3}, "name of a column"),
        ({"unit_word": "Household"}, "small letters"),
        ({"unit": None, "unit_word": "household"}, "declare unit"),
        ({"order": "region"}, "order must be"),
        ({"order": "nothing"}, "order must be"),
        ({"unit": None, "order": "day"}, "declare unit"),
        ({"unit": None, "unique": True}, "declare unit"),
        ({"unique": "yes"}, "true or false"),
    ],
)
def test_wrong_declarations(wrong: dict[str, Any], why: str) -> None:
    table = {"source": "t.csv", "columns": COLUMNS, "budget": 1, "unit": "person"} | wrong
    with pytest.raises(InvalidInput, match=why):
        declare("orders", {key: value for key, value in table.items() if value is not None})


def test_a_unit_that_is_not_there(tmp_path: Path) -> None:
    for kind in ("csv", "parquet", "frame"):
        with pytest.raises(SourceError, match="nobody"):
            open_orders(keep(kind, tmp_path), unit="nobody")
