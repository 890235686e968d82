"""``idios check``: the data against their declaration."""

from __future__ import annotations

from pathlib import Path

import pytest

from idios.errors import LedgerError
from tests.cli.runner import MEDIAN, run, run_json


def test_check_finds_what_is_not_as_declared(folder: Path) -> None:
    run("init", "people.csv", "--yes", "--bounds", "age=0..50")
    path = folder / "idios.toml"
    path.write_text(
        path.read_text().replace('income = { type = "number" }', 'income = { type = "number", nullable = false }')
    )
    result = run("check")
    assert result.exit_code == 1
    assert "nullable" in result.stdout
    report = run_json("check")["datasets"]["people"]
    assert not report["sound"]
    assert report["rows"] == 500


def test_check_tells_where_differential_would_cost_less(folder: Path) -> None:
    """With a floor of one step, noise fitted to ties is wider than what differential privacy takes."""
    lines = [f"{37 if i % 2 else 20 + i % 40},{i},{i * i}" for i in range(1, 1201)]
    (folder / "work.csv").write_text("\n".join(["hours,number,square", *lines]) + "\n")
    run("init", "work.csv", "--yes", "--no-ask", "--protection", "individual")
    told = run("check").stdout
    assert "MEDIAN(hours): differential would be nearer to the truth here, and promises more" in " ".join(told.split())
    assert run_json("check")["datasets"]["work"]["worse_than_differential"] == ["hours"]
    inspected = run("inspect", "SELECT MEDIAN(hours) FROM work", "-e", "1").stdout
    assert "differential would be nearer" in " ".join(inspected.split())
    path = folder / "idios.toml"
    path.write_text(
        path.read_text()
        .replace('\nprotection = "individual"', '\n# protection = "individual"')
        .replace('# protection = "differential"', 'protection = "differential"')
    )
    assert run_json("check")["datasets"]["work"]["worse_than_differential"] == []
    assert "nearer to the truth" not in run("check").stdout


def test_check_counts_people_and_rows_of_nobody(folder: Path) -> None:
    lines = [f"{'' if i % 10 == 9 else i % 40},{i}" for i in range(200)]
    (folder / "orders.csv").write_text("\n".join(["customer,amount", *lines]) + "\n")
    (folder / "idios.toml").write_text(
        '[datasets.orders]\nsource = "orders.csv"\nunit = "customer"\nunit_word = "customer"\nbudget = 5\n'
        '[datasets.orders.columns]\namount = { type = "integer", bounds = [0, 500] }\n'
    )
    told = " ".join(run("check").stdout.split())
    assert "36 customers with 5 to 5 rows each (quartiles 5, 5, 5); 20 rows belong to nobody and are left out" in told
    assert run_json("check")["datasets"]["orders"]["people"] == {
        "word": "customer",
        "people": 36,
        "rows_of_nobody": 20,
        "rows_each": [5, 5, 5, 5, 5],
        "breaks_unique": False,
    }
    quoted = run("quote", "SELECT MEDIAN(a) FROM (SELECT AVG(amount) AS a FROM orders GROUP BY customer)", "-e", "1")
    assert "the rows of each customer to AVG(amount)" in " ".join(quoted.stdout.replace("│", " ").split())


LINKED = """
[datasets.customers]
source = "customers.csv"
unit = "id"
unit_word = "customer"
protection = "differential"
budget = 5
columns = { age = { type = "integer" } }

[datasets.orders]
source = "orders.csv"
unit = "customer"
links = { customer = "customers.id", product = "products.code" }
columns = { amount = { type = "integer" } }

[datasets.products]
source = "products.csv"
public = true
columns = { kind = { type = "category", values = ["food", "toy"] } }
"""


def test_check_follows_links(folder: Path) -> None:
    (folder / "customers.csv").write_text("id,age\n" + "".join(f"{i},{20 + i}\n" for i in range(30)))
    (folder / "orders.csv").write_text(
        "customer,product,amount\n" + "".join(f"{i % 35},{('b', 'x', '')[i % 3]},{i}\n" for i in range(70))
    )
    (folder / "products.csv").write_text("code,kind\nb,food\nc,toy\n")
    (folder / "idios.toml").write_text(LINKED)
    told = " ".join(run("check").stdout.split())
    for expected in (
        "orders: 70 rows",
        "products: 2 rows",
        "customers: 30 customers with 1 to 1 rows each (quartiles 1, 1, 1)",
        "orders: 35 customers with 2 to 2 rows each (quartiles 2, 2, 2)",
        "In all tables together: 35 customers",
        "orders.customer = customers.id: 10 rows have a key that leads nowhere",
        "orders.product = products.code: 23 rows have no key, 23 rows have a key that leads nowhere",
    ):
        assert expected in told, told
    found = run_json("check")["datasets"]["customers"]
    assert found["everyone"] == 35
    assert found["tables"]["products"]["sound"]
    assert found["links"][1] == {
        "link": "orders.product = products.code", "missing": 23, "dangling": 23, "repeated": 0
    }  # fmt: skip


def test_check_counts_sentinels_and_tells_of_columns_that_are_missing_everywhere(folder: Path) -> None:
    (folder / "lines.jsonl").write_text('{"age": 41}\n{"age": 99}\n{"age": 7}\n' * 20)
    run("init", "lines.jsonl", "--yes")
    path = folder / "idios.toml"
    written = path.read_text().replace('age = { type = "integer" }', 'age = { type = "integer", missing = [99] }')
    path.write_text(written + 'wage = { type = "integer" }\n')
    report = run_json("check")["datasets"]["lines"]
    assert [column["missing"] for column in report["columns"]] == [20, 60]
    assert "every value is missing" in " ".join(run("check").stdout.replace("│", " ").split())


def test_what_reads_as_missing_is_counted_as_missing(folder: Path) -> None:
    (folder / "lines.jsonl").write_text('{"age": 41}\n{"age": null}\n{"age": "old"}\n{"age": 7}\n' * 20)
    run("init", "lines.jsonl", "--yes", "--no-sample")
    path = folder / "idios.toml"
    path.write_text(path.read_text().replace("# age", "age").replace('values = ["…"]', 'values = ["41"]'))
    declared = 'age = { type = "category", values = ["41"] }'
    assert declared in path.read_text()
    shown = " ".join(run("check").stdout.replace("│", " ").split())
    assert "age 60 40 values are not declared, and read as missing" in shown
    path.write_text(path.read_text().replace(declared, 'age = { type = "integer" }'))
    shown = " ".join(run("check").stdout.replace("│", " ").split())
    assert "age 40 20 values do not have the declared type, and read as missing" in shown


def test_names_that_need_quotes_are_told(folder: Path) -> None:
    (folder / "odd.csv").write_text("net income,limit,age\n" + "10,3,41\n" * 20)
    run("init", "odd.csv", "--yes", "--no-sample")
    assert 'Names that questions write in double quotes: "limit", "net income"' in " ".join(run("check").stdout.split())
    run("init", "people.csv", "--yes", "--out", "people.toml")
    assert "double quotes" not in run("check", "--config", "people.toml").stdout
    (folder / "2023 data.csv").write_text("age\n" + "41\n" * 20)
    run("init", "2023 data.csv", "--yes", "--out", "data.toml")
    told = " ".join(run("check", "--config", "data.toml").stdout.split())
    assert '"2023 data": 20 rows' in told
    assert 'in double quotes: "2023 data"' in told


def test_check_fails_where_most_values_do_not_fit(folder: Path) -> None:
    (folder / "ages.csv").write_text("age\n" + "41\n" * 10 + "7\n" * 11 + "\n" * 30)
    for bounds, code in (("0..20", 0), ("20..90", 1), ("0..50", 0)):
        (folder / "idios.toml").unlink(missing_ok=True)
        run("init", "ages.csv", "--yes", "--no-sample", "--bounds", f"age={bounds}")
        result = run("check")
        assert result.exit_code == code, bounds
        assert ("most of its values" in " ".join(result.stdout.replace("│", " ").split())) is bool(code)


def test_check_fixes_nothing(folder: Path) -> None:
    run("init", "people.csv", "--yes")
    before = run("ledger", "head").stdout
    run("check")
    assert run("ledger", "head").stdout == before
    path = folder / "idios.toml"
    path.write_text(path.read_text().replace("budget = 10 ", "budget = 20 "))
    run("check")
    run("analyst", "add", "ada")
    run("analyst", "grant", "ada", "people", "--epsilon", "1")  # a part of a budget, which is fixed by that
    path.write_text(path.read_text().replace("budget = 20 ", "budget = 30 "))
    for command in (["check"], ["query", MEDIAN, "-e", "1"]):
        with pytest.raises(LedgerError, match="or run `idios ledger raise people --epsilon 30`"):
            run(*command)
    run("ledger", "raise", "people", "--epsilon", "30")
    assert run("check").exit_code == 0


def test_check_says_what_fits_where_many_values_have_another_type(folder: Path) -> None:
    lines = [f"{i},{i if i % 3 else f'{i}.5'},{i}.01.2020,{'abc'[i % 3]}" for i in range(1, 31)] * 10
    (folder / "late.csv").write_text("\n".join(["n,income,born,letter", *lines]) + "\n")
    columns = {"n": "integer", "income": "integer", "born": "date", "letter": "date"}
    declared = "".join(f'{name} = {{ type = "{kind}" }}\n' for name, kind in columns.items())
    (folder / "idios.toml").write_text(
        f'[datasets.late]\nsource = "late.csv"\nbudget = 5\n[datasets.late.columns]\n{declared}'
    )
    told = " ".join(run("check").stdout.replace("│", " ").split())
    assert 'a sample of the file fits income = { type = "number" }' in told
    assert 'a sample of the file fits born = { type = "date", format = "%d.%m.%Y" }' in told
    assert 'a sample of the file fits letter = { values = ["a", "b", "c"] }' in told
    assert told.count("a sample") == 3
    (folder / "late.csv").write_text("n;income\n" + "".join(f"{i};{i},5\n" for i in range(1, 99)))
    (folder / "idios.toml").write_text(
        '[datasets.late]\nsource = "late.csv"\nbudget = 5\ncsv = { delimiter = ";" }\n'
        '[datasets.late.columns]\nincome = { type = "number" }\n'
    )
    told = " ".join(run("check").stdout.replace("│", " ").split())
    assert 'income = { type = "number" } with csv = { delimiter = ";", header = true, decimal = "," }' in told
    (folder / "late.csv").write_text("n;income\n" + "".join(f"{i};{i} kg\n" for i in range(1, 99)))
    told = " ".join(run("check").stdout.replace("│", " ").split())
    assert "declare its type or format, which `idios init` proposes" in told
