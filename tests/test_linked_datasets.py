"""Links between data sets, as a controller declares them, and what is opened then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idios.codec import from_json, to_json
from idios.config import read_configuration
from idios.datasets import describe_unit
from idios.errors import ConfigurationError, DataChanged, LedgerError, QuestionRefused, SourceError
from idios.model import DatasetFacts
from idios.party import TrustedParty
from idios.server.catalogue import describe_dataset

FILE = """
[datasets.people]
source = "people.parquet"
unit = "person_id"
protection = "differential"
budget = 100
columns = { age = { type = "integer", bounds = [0, 120] } }

[datasets.orders]
source = "orders.parquet"
unit = "buyer"
links = { buyer = "people.person_id", product = "products.id" }
columns = { amount = { type = "integer" } }

[datasets.lines]
source = "lines.csv"
order = "day"
links = { bill = "orders.number", "product, maker" = "offers.product, offers.maker" }
columns = { price = { type = "integer" }, day = { type = "integer" } }

[datasets.notes]
source = "notes.csv"
links = { line = "lines.id" }
columns = { length = { type = "integer" } }

[datasets.offers]
source = "offers.csv"
public = true
columns = { stock = { type = "integer" } }

[datasets.products]
source = "products.csv"
public = true
links = { maker = "makers.name" }
columns = { kind = { type = "category", values = ["food", "toy"] } }

[datasets.makers]
source = "makers.csv"
public = true
columns = { size = { type = "integer" } }

[datasets.firms]
source = "firms.parquet"
budget = 1
columns = { size = { type = "integer" } }
"""
SQL = (
    "SELECT COUNT(*), SUM(amount) FROM orders JOIN people ON buyer = person_id JOIN products ON product = id "
    "LEFT JOIN makers ON maker = name WHERE kind = 'food' AND size > 2"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"person_id": [1, 2, 3], "age": [20, 30, 40]}), tmp_path / "people.parquet")
    orders = {"buyer": [1, 1, 2, 4, None], "product": [7, 8, 7, 7, 7], "amount": [5, 6, 7, 8, 9]}
    orders["number"] = [1, 2, 3, None, 5]
    pq.write_table(pa.table(orders), tmp_path / "orders.parquet")
    pq.write_table(pa.table({"size": [1, 2]}), tmp_path / "firms.parquet")
    (tmp_path / "products.csv").write_text("id,kind,maker\n7,food,x\n8,toy,x\n9,food,y\n")
    (tmp_path / "makers.csv").write_text("name,size\nx,3\ny,1\n")
    lines = ["A,1,7,x,10,1", "B,1,7,y,20,2", "C,3,8,x,30,3", "D,5,8,x,40,4", "E,9,8,x,50,5", "F,,8,x,60,6"]
    (tmp_path / "lines.csv").write_text("\n".join(["id,bill,product,maker,price,day", *lines]))
    (tmp_path / "notes.csv").write_text("line,length\nA,1\nA,2\nC,4\nD,8\nE,16\nZ,32\n,64\n")
    (tmp_path / "offers.csv").write_text("product,maker,stock\n7,x,1\n7,y,2\n8,y,4\n")
    (tmp_path / "idios.toml").write_text(FILE)
    return tmp_path


def test_one_budget_pays_for_the_people_in_all_tables(folder: Path) -> None:
    with TrustedParty.from_config(folder / "idios.toml") as party:
        assert set(party.datasets) == {"people", "firms"}
        assert [each.dataset for each in party.ledger.datasets()] == ["firms", "people"]
        found = party.inspect(SQL, 10)
        assert {cell.statistic: cell.value for cell in found.cells} == {"COUNT(*)": 2, "SUM(amount)": 12}
        answer = party.query(SQL, 10)
        assert party.query(SQL, 10).id == answer.id
        assert party.ledger.balance("people").epsilon.spent == 10
        assert "any one person with all their rows" in str(answer.guarantee)
        party.query("SELECT COUNT(*) FROM orders", 1)
        assert party.ledger.balance("people").epsilon.spent == 11
        assert party.sandbox(SQL, 10).sandbox
        assert party.limited_to(["people"]).quote(SQL, 10).cost == 0
        with pytest.raises(QuestionRefused, match="no data set 'orders'"):
            party.limited_to(["firms"]).quote(SQL, 10)


@pytest.mark.parametrize(
    ("asked", "edits", "told"),
    [
        (
            SQL,  # what was read as public becomes private: it was protected by nothing
            {'links = { maker = "makers.name" }\n': "", '"makers.csv"\npublic = true': '"makers.csv"\nbudget = 1'},
            "'makers' is declared as a data set of its own, but was asked about as public: nothing protects",
        ),
        (
            "SELECT COUNT(*) FROM firms WHERE size > 1",  # what was asked about as private is read as public
            {"makers.name": "firms.size", '"firms.parquet"\nbudget = 1': '"firms.parquet"\npublic = true'},
            "'firms' is declared as public, but was asked about as a data set of its own: its people were promised",
        ),
    ],
)
def test_a_table_stays_public_or_private_once_it_was_asked_about(
    folder: Path, asked: str, edits: dict[str, str], told: str
) -> None:
    path = folder / "idios.toml"
    edited = FILE
    for before, after in edits.items():
        assert before in edited
        edited = edited.replace(before, after)
    for text in (FILE, edited, FILE):  # until something was asked
        path.write_text(text)
        TrustedParty.from_config(path).close()
    with TrustedParty.from_config(path) as party:
        party.query(asked, 1)
    path.write_text(edited)
    with pytest.raises(LedgerError, match=told):
        TrustedParty.from_config(path)


def test_rows_that_belong_to_rows_are_part_of_the_same_data_set(folder: Path) -> None:
    questions = {
        "SELECT COUNT(*), SUM(price) FROM lines": [3, 60],
        "SELECT COUNT(*), SUM(length) FROM notes": [3, 7],
        "SELECT COUNT(*), SUM(stock) FROM lines JOIN offers USING (product, maker)": [2, 3],
        "SELECT COUNT(*), SUM(length) FROM notes JOIN lines ON line = id JOIN orders ON bill = number JOIN people ON "
        "person_id = buyer WHERE age > 20": [1, 4],
        "SELECT COUNT(*), SUM(l) FROM (SELECT LAST(price) AS l FROM lines JOIN orders ON bill = number "
        "GROUP BY buyer)": [2, 50],
    }
    with TrustedParty.from_config(folder / "idios.toml") as party:
        for sql, expected in questions.items():
            assert [cell.value for cell in party.inspect(sql, 10).cells] == expected, sql
            party.query(sql, 1)
            assert party.sandbox(sql, 10).sandbox
        assert party.ledger.balance("people").epsilon.spent == len(questions)
        (folder / "lines.csv").write_text("id,bill,product,maker,price,day\n")
        with pytest.raises(DataChanged):
            party.query("SELECT COUNT(*) FROM people", 1)
    for number in ([1, 1, 3, None, 5], [1, 2, 3, 5, 5]):
        path = folder / "orders.parquet"
        pq.write_table(pq.read_table(path).drop(["number"]).append_column("number", pa.array(number)), path)
        with pytest.raises(SourceError, match="number is no key of 'orders': 1 of its values") as caught:
            TrustedParty.from_config(folder / "idios.toml")
        assert "'lines'" in str(caught.value)


def test_rows_may_belong_to_those_that_tell_people_apart() -> None:
    """Where everyone has one row, what others have links to that, and rows of others are nobody's."""
    with TrustedParty.open(
        {"id": [1, 2, None]} | {"age": [5, 6, 7]},
        name="people",
        unit="id",
        budget=100,
        columns={"age": "integer"},
        linked={
            "orders": {
                "source": {"buyer": [1, 1, 3, None], "number": [1, 2, 3, 4], "amount": [1, 2, 4, 8]},
                "links": {"buyer": "people.id"},
                "columns": {"amount": "integer"},
            },
            "items": {
                "source": {"order": [1, 2, 2, 3, None], "price": [1, 2, 4, 8, 16]},
                "links": {"order": "orders.number"},
                "columns": {"price": "integer"},
            },
        },
    ) as party:
        assert party.datasets["people"].dataset.size == 2
        for sql, value in (
            ("SELECT SUM(price) FROM items", 7),
            ("SELECT SUM(s) FROM (SELECT SUM(price) AS s FROM items JOIN orders ON items.order = number JOIN people ON "
             "buyer = people.id GROUP BY people.id)", 7),
            ("SELECT COUNT(*) FROM (SELECT SUM(amount) FROM people LEFT JOIN orders ON buyer = id GROUP BY id)", 2),
        ):  # fmt: skip
            assert party.inspect(sql, 10).cells[0].value == value, sql
            assert party.sandbox(sql, 10).sandbox


def test_analysts_are_told_what_can_be_joined(folder: Path) -> None:
    configuration = read_configuration(folder / "idios.toml")
    with TrustedParty.from_config(folder / "idios.toml") as party:
        facts = describe_dataset(party, configuration.datasets["people"])
    public = {"products": True, "makers": True, "offers": True}
    assert {table.name: table.public for table in facts.tables} == {
        "orders": False, "lines": False, "notes": False, **public
    }  # fmt: skip
    assert facts.tables[1].links == {"bill": "orders.number", "product, maker": "offers.product, offers.maker"}
    assert not any(column.groups for column in facts.tables[1].columns)
    assert facts.tables[1].text.startswith("by its link to other rows; in the order of day; bill = orders.number")
    assert facts.tables[0].links == {"buyer": "people.person_id", "product": "products.id"}
    for table in (facts.tables[0], facts.tables[2]):
        assert {"COUNT", "SUM", "AVG"} <= {function.name for function in table.columns[0].functions}
    kind = facts.tables[3].columns[0]
    assert not kind.functions, "it is public"
    assert not kind.groups, "rows of one person may be in many groups of what they are joined to"
    assert from_json(DatasetFacts, to_json(facts), "a data set").tables == facts.tables
    assert "orders.amount" in str(facts)


def test_a_changed_file_of_any_table_is_noticed(folder: Path) -> None:
    with TrustedParty.from_config(folder / "idios.toml") as party:
        party.query(SQL, 10)
        (folder / "makers.csv").write_text("name,size\nx,1\n")
        with pytest.raises(DataChanged):
            party.query("SELECT COUNT(*) FROM people", 1)
    with TrustedParty.from_config(folder / "idios.toml") as party:
        assert party.quote(SQL, 10).cost == 10  # other data, another question
        assert party.quote("SELECT COUNT(*) FROM orders", 1).cost == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("people.person_id", "persons.person_id", "linked to 'persons', which is not declared"),
        ("people.person_id", "people", 'must be linked to "data set.column"'),
        ("offers.product, offers.maker", "offers.product", "as many columns of one data set"),
        ("offers.product, offers.maker", "offers.product, maker", "as many columns of one data set"),
        ("offers.product, offers.maker", "offers.product, makers.name", "as many columns of one data set"),
        ("offers.product, offers.maker", "offers.product, offers.product", "a key has different columns"),
        ("orders.number", "firms.size", "which declares no unit: declare one there, or here"),
        ("orders.number", "notes.id", "its links lead in a circle"),
        (
            "orders.number",
            'orders.number", other = "people.person_id',
            "by one link, and it is linked to orders.number",
        ),
        ('order = "day"', "budget = 3", "budget belongs in [datasets.people]"),
        ('order = "day"', 'order = "price_day"', "order must be a declared column"),
        ('unit = "buyer"', 'unit = "buyer"\nlines = 3', "'lines' is not known"),
        ("people.person_id", "people.age", "a link to the private 'people' is to its unit, which is person_id"),
        ("people.person_id", "firms.size", "a link to the private 'firms' is to a unit, and it declares none"),
        ("people.person_id", "orders.buyer", "linked to itself"),
        ('links = { buyer = "people.person_id", ', 'links = { product2 = "people.person_id", ', "from its own unit"),
        ('unit = "buyer"', 'unit = "buyer"\nbudget = 3', "budget belongs in [datasets.people]"),
        ('unit = "buyer"', 'unit = "buyer"\nneighbours = "replace"', "neighbours belongs in [datasets.people]"),
        ('buyer = "people.person_id", ', "", "it needs budget"),
        ('buyer = "people.person_id", ', 'buyer = "people.person_id", other = "firms.size", ', "of one data set"),
        ("lines.id", "products.id", "links need a unit"),
        ("makers.name", "people.person_id", "public links to public data sets only"),
        ("public = true", "public = true\nbudget = 3", "budget is no part of what is public"),
        ("public = true", "public = 1", "public must be true or false"),
        ("budget = 1\n", 'budget = 1\nlinks = { a = "makers.name" }\n', "links need a unit"),
        ("{ maker =", '"makers" #', "links must be a table"),
    ],
)
def test_links_that_cannot_be_are_refused(folder: Path, old: str, new: str, message: str) -> None:
    assert old in FILE
    (folder / "idios.toml").write_text(FILE.replace(old, new))
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(folder / "idios.toml")
    assert message in str(caught.value)


ALONE = {'links = { buyer = "people.person_id", product = "products.id" }': "budget = 1"}


RENAMED = {"[datasets.orders]": "[datasets.purchases]", "orders.number": "purchases.number"}
PROMISED = "person_id with lines.bill = orders.number, notes.line = lines.id, orders.buyer = people.person_id"


@pytest.mark.parametrize(
    "changes",
    [ALONE, {**ALONE, 'unit = "person_id"': 'unit = "age"'}, RENAMED, {"orders.number": "people.person_id"}],
)
def test_who_a_promise_is_made_to_does_not_change_once_something_was_asked(
    folder: Path, changes: dict[str, str]
) -> None:
    """A change of public tables, of the order of tables and of all else may go on."""
    path = folder / "idios.toml"
    path.write_text(FILE)
    before = read_configuration(path).datasets["people"].dataset
    assert describe_unit(before) == PROMISED
    with TrustedParty.from_config(path) as party:
        party.query(SQL, 1)
    path.write_text(
        FILE.replace(', product = "products.id"', "").replace("budget = 100", 'budget = 100\norder = "age"')
    )
    TrustedParty.from_config(path).close()
    changed = FILE
    for old, new in changes.items():
        changed = changed.replace(old, new)
    path.write_text(changed)
    with pytest.raises(LedgerError, match=f"asked about with the unit {PROMISED}: "):
        TrustedParty.from_config(path)


def open_linked(**linked: Any) -> TrustedParty:
    return TrustedParty.open(
        {"person_id": [1, 2]} | {"age": [1, 2]},
        name="people",
        unit="person_id",
        links={"age": "ages.id"},
        budget=1,
        columns={"age": "integer"},
        linked={"ages": {"public": True, "columns": {"word": {"type": "category", "values": ["a"]}}} | linked},
    )


def test_tables_of_other_engines_and_without_their_keys_are_refused() -> None:
    with pytest.raises(SourceError, match="keep both in one engine"):
        open_linked(source="postgresql://nobody@localhost/none?table=ages")
    with pytest.raises(SourceError, match="no column 'id'"):
        open_linked(source={"word": ["a"]})
    with pytest.raises(SourceError, match="id is no key of the public 'ages': 1 of its values occur more than once"):
        open_linked(source={"id": [1, 2, 2, None, None], "word": ["a", "a", None, "a", None]})
    with open_linked(source={"id": ["1", "01", None, None], "word": ["a", None, "a", "a"]}) as party:
        assert repr(party).startswith("<TrustedParty people: age with ages: word (")
