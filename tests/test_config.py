"""idios.toml: read strictly, every mistake named."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from idios.config import SERVER_KEYS, read_configuration, read_settings
from idios.core.calibration import Level
from idios.core.domain import Domain
from idios.datasets import DATASET_KEYS
from idios.declare.declared_columns import COLUMN_KEYS
from idios.declare.schema import Budget
from idios.errors import ConfigurationError
from idios.sql.derived import DERIVED_KEYS

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"
WHOLE = """
[ledger]
url = "sqlite:///book/ledger.db"
key_file = "ledger.key"

[datasets.people]
source = "people.parquet"
version = "2026-11"
neighbours = "add-remove"
protection = "group"
analysts = "trusted"
group = 5
budget = 10
min_epsilon = 0.1
max_groups = 50
floor = 2
fineness = 1000
parameters = { quantile = 0.1, k = [2, 4], trim = false }

[datasets.people.columns]
age    = { type = "integer", bounds = [0, 120], nullable = false }
income = { type = "number", step = 1, centre = 30000 }
born   = { type = "date", bounds = [1900-01-01, 2026-12-31] }
price  = { type = "decimal", decimals = 2 }
region = { type = "category", values = ["north", "south"] }
member = "boolean"
"""
PASSWORDS = """
[ledger]
url = "postgresql://keeper:hunter2@localhost/ledger"
key_file = "ledger.key"

[datasets.people]
source = "postgresql://reader:hunter3@localhost/data?table=people"
version = "1"
budget = 1

[datasets.people.columns]
age = { type = "integer" }
"""
SERVER = """
[server]
port = 8001
host = "0.0.0.0"

[datasets.people]
source = "people.csv"
budget = 1
columns = { age = "integer" }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "idios.toml"
    path.write_text(text)
    return path


def test_everything_a_controller_writes(tmp_path: Path) -> None:
    found = read_configuration(write(tmp_path, WHOLE))
    assert found.ledger_url == f"sqlite:///{tmp_path}/book/ledger.db"
    assert found.key_file == tmp_path / "ledger.key"
    people = found.datasets["people"]
    assert people.source == str(tmp_path / "people.parquet")
    assert people.analysts_trusted
    dataset = people.dataset
    assert dataset.budget == Budget(Fraction(10))
    assert dataset.protection.level is Level.GROUP
    assert (dataset.protection.group, dataset.protection.floor) == (5, 2)
    assert dataset.protection.fineness == 1000
    assert dataset.min_epsilon == Fraction(1, 10)
    assert dataset.parameters.k == {2, 4}
    assert dataset.parameters.trim is None
    assert dataset.parameters.quantile == Fraction(1, 10)
    assert dataset.columns["age"].grid == Domain(Fraction(1), 0, 120)
    assert dataset.columns["income"].domain == Domain(Fraction(1), centre=30000)
    assert dataset.columns["born"].grid.lower == -25567
    assert dataset.columns["price"].grid.step == Fraction(1, 100)
    assert dataset.columns["member"].grid == Domain(Fraction(1), 0, 1)
    assert not dataset.columns["age"].nullable
    assert dataset.columns["income"].nullable


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("budget = 10", "", "needs budget"),
        ("budget = 10", "budget = -1", "budget must be greater than 0"),
        ("budget = 10", "budgets = 10\nbudget = 10", "'budgets' is not known; known are source"),
        ('url = "sqlite:///book/ledger.db"', "path = 1", "'path' is not known; known are url"),
        ("[ledger]", "[book]", "'book' is not known"),
        ('neighbours = "add-remove"', 'neighbours = "swap"', '"replace" or "add-remove"'),
        ("group = 5", "", "needs group"),
        ('analysts = "trusted"', 'analysts = "all"', 'must be "trusted"'),
        ("max_groups = 50", 'shares_source = "yes"', "shares_source must be true or false, got 'yes'"),
        ("bounds = [0, 120]", "bounds = [120, 0]", "column 'age': bounds must be"),
        ("bounds = [0, 120]", "limit = 3", "'limit' is not known; known are type"),
        ('type = "number"', 'type = "float"', "type must be one of integer, number"),
        ("step = 1", "step = 0", "step must be greater than 0"),
        ('values = ["north", "south"]', "step = 1", "step belongs to numeric columns"),
        ('values = ["north", "south"]', 'values = "north"', "there is no code list 'north'"),
        ("decimals = 2", "nullable = true", "declares its step"),
        ("nullable = false", 'nullable = "no"', "nullable must be true or false"),
        ("1900-01-01", '"once"', "a bound must be a date"),
        ("centre = 30000", 'centre = "high"', "column 'income': centre must be a finite number"),
        ("floor = 2", "delta = 1e-6", "remove delta, which nothing needs any more"),
        ("k = [2, 4]", "k = 2", "must be a list of whole numbers"),
        ("quantile = 0.1", "median = 1", "'median' is not known"),
        ("[ledger]", "[ledger", "cannot be read"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    assert was in WHOLE
    with pytest.raises(ConfigurationError, match=message.replace("[", r"\[")):
        read_configuration(write(tmp_path, WHOLE.replace(was, becomes, 1)))


def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="idios init"):
        read_configuration(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="declares no data set"):
        read_configuration(write(tmp_path, ""))


def test_every_key_of_a_data_set_is_documented() -> None:
    page = PAGE.read_text()
    for key in (*DATASET_KEYS, *COLUMN_KEYS, *DERIVED_KEYS):
        assert f"`{key}`" in page, key


def two(one: str, other: str, *words: str) -> str:
    """A configuration of two data sets with these sources, and a word about sharing for each."""
    declared = """
[datasets.{name}]
source = '{source}'
budget = {budget}
{word}
[datasets.{name}.columns]
age = "integer"
"""
    words = (*words, "", "")
    return declared.format(name="people", source=one, budget=3, word=words[0]) + declared.format(
        name="patients", source=other, budget="4.5", word=words[1]
    )


def test_two_budgets_for_the_same_people_need_a_word(tmp_path: Path) -> None:
    told = r"\[datasets.people\] and \[datasets.patients\] have one source: they are two budgets for the same people"
    word = "shares_source = true"
    for words in ((), (word,), ("", word), (word, "shares_source = false")):
        with pytest.raises(ConfigurationError, match=told):
            read_configuration(write(tmp_path, two("people.csv", "people.csv", *words)))
    found = read_configuration(write(tmp_path, two("people.csv", "people.csv", word, word)))
    assert all(one.shares_source for one in found.datasets.values())
    assert not read_configuration(write(tmp_path, two("people.csv", "patients.csv"))).datasets["people"].shares_source


def test_three_budgets_for_the_same_people(tmp_path: Path) -> None:
    third = two("people.csv", "people.csv").replace("patients", "others").partition("[datasets.others]")
    with pytest.raises(ConfigurationError, match=r"people\] and \[datasets.patients\] and .* are 3 budgets for"):
        read_configuration(write(tmp_path, two("people.csv", "people.csv") + "".join(third[1:])))


def test_the_format_of_a_csv_file(tmp_path: Path) -> None:
    declared = WHOLE.replace(
        'source = "people.parquet"', 'source = "people.csv"\ncsv = { delimiter = ";", nulls = ["NA"] }'
    )
    people = read_configuration(write(tmp_path, declared)).datasets["people"]
    assert (people.csv_format.delimiter, people.csv_format.nulls, people.csv_format.header) == (";", ("NA",), True)
    for wrong, message in (
        (declared.replace('";"', '";;"'), "delimiter must be one ASCII character"),
        (declared.replace("nulls", "null"), "'null' is not known"),
        (declared.replace("people.csv", "people.parquet"), "the source is none"),
        (declared.replace('{ delimiter = ";", nulls = ["NA"] }', '";"'), "csv must be a table"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            read_configuration(write(tmp_path, wrong))


def test_no_password_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "idios.toml"
    path.write_text(PASSWORDS)
    configuration = read_configuration(path, {})
    assert "hunter2" in configuration.ledger_url
    assert "hunter3" in configuration.datasets["people"].source
    assert "hunter" not in repr(configuration)


# [server] and the environment: read strictly, in the right order, and documented.


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "idios.toml").write_text(SERVER)
    found = read_configuration(
        tmp_path / "idios.toml",
        {"IDIOS_PORT": "9000", "IDIOS_LEDGER_URL": "postgresql://base", "IDIOS_LEDGER_KEY_FILE": "/keys/ledger.key"},
    )
    assert (found.server.port, found.server.host) == (9000, "0.0.0.0")
    assert found.ledger_url == "postgresql://base"
    assert found.key_file == Path("/keys/ledger.key")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"prot": 1}, "known are host, port"),
        ({"port": "8000"}, "port must be a whole number, got '8000'"),
        ({"port": True}, "port must be a whole number"),
        ({"port": 70000}, "at most 65535"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"log_questions": "yes"}, "log_questions must be true or false"),
        ({"tls_key": "key.pem"}, "both tls_cert and tls_key"),
        ({"behind_proxy": "localhost"}, "behind_proxy must be the address of a proxy"),
        ({"behind_proxy": "127.0.0.1, proxy.example.org"}, "behind_proxy must be the address of a proxy"),
        ({"behind_proxy": "10.0.0.1/8"}, "behind_proxy must be the address of a proxy"),
        ({"behind_proxy": "127.0.0.1,"}, "behind_proxy must be the address of a proxy"),
    ],
)
def test_settings_that_cannot_be_are_refused(table: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        read_settings(table, {})


@pytest.mark.parametrize("written", ["127.0.0.1", "::1", "10.1.2.0/24, fd00:1::/64", "10.0.0.0/8"])
def test_proxies_are_addresses_and_networks(written: str) -> None:
    assert not read_settings({"behind_proxy": written}, {}).believes_anybody


@pytest.mark.parametrize("written", ["*", "0.0.0.0/0", "::/0", "127.0.0.1, 0.0.0.0/1", "2000::/3"])
def test_settings_that_believe_any_proxy_are_known(written: str) -> None:
    assert read_settings({"behind_proxy": written}, {}).believes_anybody


def test_a_variable_is_read_as_its_key(tmp_path: Path) -> None:
    assert read_settings({}, {"IDIOS_LOG_QUESTIONS": "True"}).log_questions
    assert read_settings({}, {"IDIOS_HOST": "8080"}).host == "8080"
    for bad in ("eighty", "8_0", "８０", "--80", "-", "9" * 5000):
        with pytest.raises(ConfigurationError, match="IDIOS_PORT"):
            read_settings({}, {"IDIOS_PORT": bad})


def test_every_key_of_the_server_is_documented() -> None:
    table = PAGE.read_text().partition("## `[server]`")[2].partition("\n## ")[0]
    for key in SERVER_KEYS:
        assert f"`{key}`" in table, key
