"""``idios init`` of people with several rows, in one or several files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from idios.cli.people import find_subject
from idios.config import read_configuration
from idios.errors import ConfigurationError, InvalidInput, SourceError
from tests.cli.runner import run, run_json, run_text

FILES = ("customers.csv", "orders.csv", "products.csv")
ACCEPTED = (
    *("--unit", "customers=id", "--unit", "orders=customer_id", "--public", "products"),
    *("--link", "orders.customer_id=customers.id", "--link", "orders.product=products.code"),
)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Customers, their orders and what they bought, in three files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "customers.csv").write_text("id,age\n" + "".join(f"{i},{20 + i % 50}\n" for i in range(100, 150)))
    (tmp_path / "orders.csv").write_text(
        "order_id,customer_id,product,amount,paid\n"
        + "".join(f"{i},{100 + i % 40},{('bread', 'ball')[i % 2]},{i % 17},{i % 2}\n" for i in range(200))
    )
    (tmp_path / "products.csv").write_text("code,kind,price\nbread,food,3\nball,toy,9\n")
    return tmp_path


def test_units_and_links_are_proposed_as_comments(shop: Path) -> None:
    told = run_text("init", *FILES, "--yes")
    written = (shop / "idios.toml").read_text()
    orders = written.partition("[datasets.orders]")[2].partition("[datasets.products]")[0]
    assert '\n# unit = "customer_id"  # its values repeat' in orders
    assert '\n# links = { customer_id = "customers.id", product = "products.code" }' in orders
    assert "paid" not in told.partition("may be")[2], "two values tell nobody apart"
    assert 'unit = "order_id"' not in written
    customers = written.partition("[datasets.customers]")[2].partition("[datasets.orders]")[0]
    assert '\n# unit = "id"  # orders.customer_id leads here' in customers
    assert "\n# public = true" in written.partition("[datasets.products]")[2]
    assert "orders.customer_id may be a unit: 40 values with 5 to 5 rows each" in told
    assert not any(re.search(r"\b(40|200)\b", line) for line in written.splitlines()), "a configuration is public"
    run("init", "orders.csv", "--yes", "--out", "one.toml")
    configuration = read_configuration(shop / "one.toml")
    assert configuration.datasets["orders"].dataset.unit == (), "nothing is declared"
    assert '# unit = "customer_id"' in (shop / "one.toml").read_text()


def test_a_file_without_keys_has_no_proposals(folder: Path) -> None:
    told = run_text("init", "people.csv", "--yes")
    assert "may be" not in told
    assert "Proposed from names" not in (folder / "idios.toml").read_text()


def test_what_is_said_of_people_is_declared(shop: Path) -> None:
    run_text(
        *("init", *FILES, "--yes", "--protection", "differential", "--budget", "20", "--values", "kind=food,toy"),
        *ACCEPTED,
    )
    found = run_json("check")["datasets"]
    assert list(found) == ["customers"]
    assert [link["dangling"] for link in found["customers"]["links"]] == [0, 0]
    sql = (
        "SELECT MEDIAN(spent) FROM (SELECT SUM(amount) AS spent FROM orders JOIN products ON product = code "
        "WHERE kind = 'food' GROUP BY customer_id)"
    )
    assert run_json("query", sql, "-e", "2")["rows"]
    # a file that is declared as rows of another data set's people is not declared anew
    before = (shop / "idios.toml").read_text()
    assert run_json("query", "orders.csv", sql, "-e", "2")["rows"]
    assert (shop / "idios.toml").read_text() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--unit", "id"], "a unit is NAME=COLUMN"),
        (["--unit", "clients=id"], "there is no data set 'clients'"),
        (["--link", "orders=customers"], "a link is DATASET.COLUMN=DATASET.COLUMN"),
        (["--link", "orders.customer_id=customers.id"], "declares no unit"),
        (["--name", "shop"], "--name is for one source"),
    ],
)
def test_what_cannot_be_declared_is_refused(shop: Path, options: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run("init", "customers.csv", "orders.csv", "--yes", *options)
    assert not (shop / "idios.toml").exists()


def test_keys_are_known_by_their_names() -> None:
    """As of TPC-H: o_custkey leads to customer.c_custkey."""
    for one, other in (
        (("customer_id", "orders"), ("id", "customers")),
        (("o_custkey", "orders"), ("c_custkey", "customer")),
        (("product", "orders"), ("code", "products")),
        (("person_id", "visits"), ("person_id", "people")),
    ):
        assert find_subject(*one) == find_subject(*other)
    assert find_subject("amount", "orders") != find_subject("id", "orders")


def test_values_of_public_tables_are_all_declared(shop: Path) -> None:
    """A code list needs its rare codes; in the tables of people the same would be someone's."""
    run_text("init", *FILES, "--yes", *ACCEPTED)
    products = read_configuration(shop / "idios.toml").datasets["customers"].linked["products"].dataset
    assert products.columns["kind"].domain.values == ("food", "toy")
    assert products.columns["code"].domain.values == ("ball", "bread")
    (shop / "idios.toml").unlink()
    run_text("init", "products.csv", "--yes")
    assert "food" not in (shop / "idios.toml").read_text()


def test_tables_of_a_database_are_looked_at_likewise(shop: Path, postgresql_url: str) -> None:
    """The names of data sets are those of tables, and no address with a password is shown."""
    import psycopg

    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        connection.execute("CREATE SCHEMA shop")
        connection.execute(
            "CREATE TABLE shop.customers AS SELECT i AS id, 20 + i % 50 AS age FROM generate_series(1, 50) i"
        )
        connection.execute(
            "CREATE TABLE shop.orders AS SELECT 1 + i % 40 AS customer_id, i AS x FROM generate_series(1, 90) i"
        )
        try:
            told = run_text("init", *(f"{postgresql_url}?table=shop.{name}" for name in ("customers", "orders")))
            assert " ".join(told.split()).count("Names and types alone were read, and no record: codes, values") == 2
            address = f"{postgresql_url}?table=shop.orders"
            read = run("init", address, "--yes", "--out", "orders.toml").stderr
            assert "It was made by reading 90 records." in " ".join(read.split())
            with pytest.raises(ConfigurationError, match=r"orders\.toml exists already"):
                run("init", address, "--out", "orders.toml")
        finally:
            connection.execute("DROP SCHEMA shop CASCADE")
    assert "orders.customer_id may be a unit: 40 values with 2 to 3 rows each" in " ".join(told.split())
    assert postgresql_url not in told + read
    assert '# links = { customer_id = "customers.id" }' in (shop / "idios.toml").read_text()


def test_a_link_is_proposed_where_part_of_the_keys_match(shop: Path) -> None:
    """With how many to the controller; in the file, which is public, without a number."""
    lines = (shop / "customers.csv").read_text().splitlines()
    (shop / "customers.csv").write_text("\n".join(lines[:1] + lines[4:]) + "\n")  # three of the forty who order
    told = " ".join(run_text("init", *FILES, "--yes").split())
    assert "orders.customer_id may be linked to customers.id: 185 of 200 rows with a key lead to a row there" in told
    assert "orders.product may be linked to products.code: 200 of 200 rows" in told
    written = (shop / "idios.toml").read_text()
    assert (
        '\n# links = { customer_id = "customers.id", product = "products.code" }  # not all their values are keys there'
        in written
    )
    assert not re.search(r"\b(185|200)\b", written)
    (shop / "idios.toml").unlink()
    (shop / "customers.csv").write_text("id,age\n" + "".join(f"{i},{20 + i % 50}\n" for i in range(200, 250)))
    run("init", *FILES, "--yes")
    assert "customers.id" not in (shop / "idios.toml").read_text(), "none of the keys match"


def test_a_link_leads_to_the_table_that_has_more_of_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the files: half of the people were visited, and each of these is a person."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("person_id,age\n" + "".join(f"{i},{20 + i % 50}\n" for i in range(100)))
    Path("visits.csv").write_text("person_id,day\n" + "".join(f"{i},{i % 28}\n" for i in range(0, 100, 2)))
    for number, files in enumerate((["people.csv", "visits.csv"], ["visits.csv", "people.csv"])):
        told = " ".join(run_text("init", *files, "--yes", "--out", f"{number}.toml").split())
        assert "visits.person_id may be linked to people.person_id: 50 of 50 rows" in told
        assert "people.person_id may be linked" not in told


def test_one_row_of_each_person_is_proposed_and_declared(shop: Path) -> None:
    run("init", *FILES, "--yes")
    customers = (shop / "idios.toml").read_text().partition("[datasets.customers]")[2].partition("[datasets.orders]")[0]
    assert "\n# unique = true  # each value of this unit occurs once" in customers
    (shop / "idios.toml").unlink()
    run_text("init", *FILES, "--yes", *ACCEPTED)
    written = (shop / "idios.toml").read_text()
    assert written.count("# unique = true") == 1
    assert written.index('unit = "id"') < written.index("# unique = true") < written.index("[datasets.orders]")
    (shop / "idios.toml").write_text(written.replace("# unique = true", "unique = true"))
    assert run_json("quote", "SELECT IQR(age) FROM customers", "-e", "1")["cost"] == "1", "of rows it is not offered"
    lines = (shop / "customers.csv").read_text()
    (shop / "customers.csv").write_text(lines + "100,30\n")
    with pytest.raises(SourceError, match="id is no key of 'customers': 1 of its values"):
        run("check")
