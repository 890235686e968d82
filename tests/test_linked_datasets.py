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
    orders = {"buyer": [1, 1, 2, 4], "product": [7, 8, 7, 7], "amount": [5, 6, 7, 8]}
    pq.write_table(pa.table(orders), tmp_path / "orders.parquet")
    pq.write_table(pa.table({"size": [1, 2]}), tmp_path / "firms.parquet")
    (tmp_path / "products.csv").write_text("id,kind,maker\n7,food,x\n8,toy,x\n9,food,y\n")
    (tmp_path / "makers.csv").write_text("name,size\nx,3\ny,1\n")
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


def test_analysts_are_told_what_can_be_joined(folder: Path) -> None:
    configuration = read_configuration(folder / "idios.toml")
    with TrustedParty.from_config(folder / "idios.toml") as party:
        facts = describe_dataset(party, configuration.datasets["people"])
    assert {table.name: table.public for table in facts.tables} == {"orders": False, "products": True, "makers": True}
    assert facts.tables[0].links == {"buyer": "people.person_id", "product": "products.id"}
    assert [function.name for function in facts.tables[0].columns[0].functions][:4] == ["COUNT", "SUM", "AVG", "MEDIAN"]
    kind = facts.tables[1].columns[0]
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
        ("people.person_id", "people.age", "a link to the private 'people' is to its unit, which is person_id"),
        ("people.person_id", "firms.size", "a link to the private 'firms' is to a unit, and it declares none"),
        ("people.person_id", "orders.buyer", "linked to itself"),
        ('links = { buyer = "people.person_id", ', 'links = { product2 = "people.person_id", ', "from its own unit"),
        ('unit = "buyer"', 'unit = "buyer"\nbudget = 3', "budget is declared in [datasets.people]"),
        ('unit = "buyer"', 'unit = "buyer"\nneighbours = "replace"', "neighbours is declared in [datasets.people]"),
        ('buyer = "people.person_id", ', "", "it needs budget"),
        ('buyer = "people.person_id", ', 'buyer = "people.person_id", other = "firms.size", ', "of one data set"),
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


@pytest.mark.parametrize(
    "changes", [ALONE, {**ALONE, 'unit = "person_id"': 'unit = "age"'}, {"[datasets.orders]": "[datasets.purchases]"}]
)
def test_who_a_promise_is_made_to_does_not_change_once_something_was_asked(
    folder: Path, changes: dict[str, str]
) -> None:
    """A change of public tables, of the order of tables and of all else may go on."""
    path = folder / "idios.toml"
    path.write_text(FILE)
    before = read_configuration(path).datasets["people"].dataset
    assert describe_unit(before) == "person_id with orders.buyer = people.person_id"
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
    with pytest.raises(
        LedgerError, match=r"asked about with the unit person_id with orders.buyer = people.person_id: "
    ):
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
    open_linked(source={"id": ["1", "01", None, None], "word": ["a", None, "a", "a"]}).close()
