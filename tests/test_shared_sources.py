"""Which sources are one, as far as they tell."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from idios import TrustedParty
from idios.config import find_shared_sources

BASE = "postgresql://reader@host/base?table=people"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One file under four names, and another one."""
    for name in ("people.csv", "others.csv", "people.duckdb"):
        (tmp_path / name).write_text("age\n1\n")
    (tmp_path / "symbolic.csv").symlink_to("people.csv")
    os.link(tmp_path / "people.csv", tmp_path / "hard.csv")
    (tmp_path / "sub").mkdir()
    (tmp_path / "linked").symlink_to("sub")
    return tmp_path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("people.csv", "people.csv"),
        ("people.csv", "./people.csv"),
        ("people.csv", "sub/../people.csv"),
        ("people.csv", "symbolic.csv"),
        ("people.csv", "hard.csv"),
        ("absent.csv", "sub/../absent.csv"),
        ("sub/absent.csv", "linked/absent.csv"),
        ("people.duckdb::people", "people.duckdb::main.people"),
        ("people.duckdb::people", 'people.duckdb::"People"'),
    ],
)
def test_one_file(folder: Path, one: str, other: str) -> None:
    assert find_shared_sources({"a": f"{folder}/{one}", "b": f"{folder}/{other}"}) == [("a", "b")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("people.csv", "others.csv"),
        ("absent.csv", "missing.csv"),
        ("people.duckdb::people", "people.duckdb::patients"),
        ("people.duckdb::people", "people.duckdb::other.people"),
    ],
)
def test_two_files(folder: Path, one: str, other: str) -> None:
    assert find_shared_sources({"a": f"{folder}/{one}", "b": f"{folder}/{other}"}) == []


@pytest.mark.parametrize(
    "other",
    [
        "postgres://host/base?table=people",
        "postgresql://writer:secret@HOST:5432/base?table=public.people",
        'postgresql://host/base?sslmode=require&table="people"',
        "postgresql:///base?host=host&table=people",
        "postgresql://host?dbname=base&table=people",
        "postgresql://base@host?table=people",
        "postgresql://elsewhere/none?host=host&port=5432&dbname=base&table=people",
        "postgresql://host/b%61se?table=people",
    ],
)
def test_one_table_of_postgresql(other: str) -> None:
    assert find_shared_sources({"a": BASE, "b": other}) == [("a", "b")]


def test_this_machine_has_several_names() -> None:
    names = ("localhost", "127.0.0.1", "[::1]", "", "%2Fvar%2Frun%2Fpostgresql")
    sources = {name: f"postgresql://{name}/base?table=people" for name in names}
    assert find_shared_sources(sources) == [names]


@pytest.mark.parametrize(
    "other",
    [
        "postgresql://other/base?table=people",
        "postgresql://host:5433/base?table=people",
        "postgresql://host/other?table=people",
        "postgresql://host/base?table=patients",
        "postgresql://host/base?table=People",
        "postgresql://host/base?table=other.people",
        "postgresql://host:1,host:2/base?table=people",
        "postgresql://host:x/base?table=people",
        "postgresql://host/base",
        "spark:people",
        "people.csv",
    ],
)
def test_two_tables(other: str) -> None:
    assert find_shared_sources({"a": BASE, "b": other}) == []


def test_tables_of_spark() -> None:
    same = {"a": "spark:people", "b": "spark:default.PEOPLE", "c": "spark:spark_catalog.default.people"}
    assert find_shared_sources({**same, "d": "spark:other.people", "e": "spark:patients"}) == [("a", "b", "c")]


def test_a_name_that_is_none_is_left_to_the_opening() -> None:
    assert find_shared_sources({"a": 'spark:"people', "b": 'spark:"people', "c": "spark:"}) == [("a", "b")]


def configured(folder: Path, patients: str) -> Path:
    declared = """
[datasets.{name}]
source = "{source}"
budget = {budget}
protection = "individual"
shares_source = true
[datasets.{name}.columns]
age = "integer"
"""
    people = declared.format(name="people", source="people.csv", budget=3)
    (folder / "idios.toml").write_text(people + declared.format(name="patients", source=patients, budget="4.5"))
    return folder / "idios.toml"


def test_a_warning_tells_what_may_be_spent_about_the_same_people(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with TrustedParty.from_config(configured(folder, "hard.csv")) as party:
        [warning] = [record for record in caplog.records if record.name == "idios.controller"]
        assert warning.levelno == logging.WARNING
        assert "people and patients have one source" in warning.getMessage()
        assert "ε = 7.5 " in warning.getMessage()
        party.ledger.raise_budget("people", epsilon=party.ledger.balance("people").epsilon.budget * 2)
    caplog.clear()
    with TrustedParty.from_config(configured(folder, "hard.csv")):
        assert "ε = 10.5 " in caplog.text
        assert "promise" not in caplog.text


def test_it_says_where_the_sum_is_of_different_promises(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = configured(folder, "hard.csv")
    path.write_text(path.read_text().replace("budget = 3\n", 'budget = 3\nneighbours = "add-remove"\n'))
    with TrustedParty.from_config(path):
        assert (
            "the sum of their budgets; their promises differ, and the sum is of none of them: people is indi"
            in caplog.text
        )
        assert "individual, add-remove; patients is individual, replace" in caplog.text


def test_a_data_set_that_is_new_where_another_was_given_up_is_warned_about(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A renamed or retired data set is a fresh budget to the ledger, and not to the people in it."""
    path = folder / "idios.toml"
    for name, said in (("people", ""), ("persons", "people (ε = 1 spent, differential, replace)"), ("persons", "")):
        keys = 'source = "people.csv"\nversion = "1"\nbudget = 2\nprotection = "differential"'
        path.write_text(f'[datasets.{name}]\n{keys}\n[datasets.{name}.columns]\nage = "integer"\n')
        caplog.clear()
        with TrustedParty.from_config(path) as party:
            party.query(f"SELECT COUNT(*) FROM {name} WHERE age > 1", 1)
        assert ("new to the ledger, with a budget of its own: persons; on record" in caplog.text) is bool(said)
        assert said in caplog.text
        assert ("up to the sum of both budgets, under the weaker of both promises" in caplog.text) is bool(said)


def test_sources_of_their_own_are_not_warned_about(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with TrustedParty.from_config(configured(folder, "others.csv")):
        assert not [record for record in caplog.records if record.name == "idios.controller"]
