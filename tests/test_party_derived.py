"""Derived columns through the whole party: files, questions, the sandbox, the check, the catalogue."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from idios.core.calibration import Protection
from idios.data.backend import open_source
from idios.datasets import declare, read_columns
from idios.declare.schema import Column, Dataset
from idios.errors import InvalidInput, SourceError
from idios.model.dataset_facts import ColumnFacts
from idios.party import TrustedParty
from idios.plan.planner import make_plan
from idios.server.catalogue import describe_dataset
from idios.sql.reader import read
from tests.conformance.plans import call_tables_large

HELD: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "wage": {"type": "integer"},
    "region": {"type": "category", "values": ["north", "south"]},
}
DERIVED: dict[str, Any] = {
    "age_group": {"expression": "CASE WHEN age < 18 THEN 'child' ELSE 'adult' END"},
    "yearly": {"expression": "wage * 52", "bounds": [0, 5200]},
    "adult": {"expression": "age >= 18"},
    "place": {"expression": "COALESCE(region, 'none')"},
    "sum": {"expression": "wage + age"},
}
COLUMNS = HELD | DERIVED
INDIVIDUAL = Protection.declare("individual")


def people(rows: int = 400) -> dict[str, list[Any]]:
    draw = random.Random(4)
    return {
        "age": [draw.randint(0, 99) for _ in range(rows)],
        "wage": [None if draw.random() < 0.1 else draw.randint(-5, 150) for _ in range(rows)],
        "region": [draw.choice([None, "north", "south", "west"]) for _ in range(rows)],
    }


def true_values(data: dict[str, list[Any]]) -> dict[str, list[Any]]:
    wages = data["wage"]
    return {
        "age_group": ["child" if age < 18 else "adult" for age in data["age"]],
        "yearly": [None if wage is None else min(max(wage * 52, 0), 5200) for wage in wages],
        "place": [region if region in ("north", "south") else "none" for region in data["region"]],
        "sum": [None if wage is None else wage + age for wage, age in zip(wages, data["age"], strict=True)],
    }


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
@pytest.mark.parametrize("level", ["individual", "group", "differential"])
def test_derived_columns_are_asked_about_like_others(tmp_path: Path, form: str, level: str) -> None:
    data = people()
    source: Any = pa.table(data)
    if form != "frame":
        path = tmp_path / f"people.{form}"
        write = pa.csv.write_csv if form == "csv" else pa.parquet.write_table
        write(source, path)
        source = path
    group = {"group": 2} if level == "group" else {}
    with TrustedParty.open(
        source, name="people", columns=COLUMNS, protection=level, budget=10**9, ledger=tmp_path / "ledger.db", **group
    ) as party:
        truth = true_values(data)
        sql = "SELECT age_group, place, COUNT(*) AS n, SUM(yearly) AS s FROM people GROUP BY age_group, place"
        answer = party.query(sql, epsilon=10**6)
        assert [(row["age_group"], row["place"]) for row in answer.rows] == [
            (a, p) for a in ("child", "adult") for p in ("north", "south", "none")
        ]
        for row in answer.rows:
            inside = [
                yearly
                for a, p, yearly in zip(truth["age_group"], truth["place"], truth["yearly"], strict=True)
                if (a, p) == (row["age_group"], row["place"])
            ]
            assert abs(row["n"] - len(inside)) <= 1
            assert abs(row["s"] - sum(value for value in inside if value is not None)) <= 52 * 2
        share = party.query("SELECT AVG(adult) AS a FROM people WHERE yearly > 520", epsilon=10**5).rows[0]["a"]
        ages = [age for age, yearly in zip(data["age"], truth["yearly"], strict=True) if yearly and yearly > 520]
        assert abs(share - sum(age >= 18 for age in ages) / len(ages)) < 0.01


def test_two_wordings_are_one_question_and_paid_for_once(tmp_path: Path) -> None:
    with TrustedParty.open(
        people(), name="people", columns=COLUMNS, budget=10, ledger=tmp_path / "ledger.db", protection="differential"
    ) as party:
        first = party.query("SELECT COUNT(*) AS n FROM people WHERE age_group = 'child'", epsilon=1)
        second = party.query("SELECT COUNT(*) AS n FROM people WHERE age < 18", epsilon=1)
        third = party.query("SELECT COUNT(*) AS n FROM people WHERE NOT adult", epsilon=1)
        assert first.value == second.value == third.value
        assert first.remaining == third.remaining


def test_the_check_counts_what_is_missing_and_calls_nothing_broken() -> None:
    data = people()
    with TrustedParty.open(data, name="people", columns=COLUMNS, budget=1) as party:
        report = party.datasets["people"].backend.check()
    missing = data["wage"].count(None)
    found = {column.name: (column.missing, column.nulls, column.problems()) for column in report.columns}
    assert found["sum"] == (missing, missing, [])
    assert found["yearly"][0] == missing
    assert found["yearly"][2] == [f"{sum(w is not None and not 0 <= w <= 100 for w in data['wage'])} values are out of "
                                  "bounds, and read as the nearer one"]  # fmt: skip
    assert found["age_group"] == found["adult"] == found["place"] == (0, 0, [])
    assert report.sound


def test_the_sandbox_makes_up_what_they_are_derived_from() -> None:
    with TrustedParty.open(people(), name="people", columns=COLUMNS, budget=1, protection="differential") as party:
        answer = party.sandbox("SELECT place, MEDIAN(yearly), AVG(adult) FROM people GROUP BY place", epsilon=10)
    assert [row["place"] for row in answer.rows] == ["north", "south", "none"]


def test_analysts_are_told_the_expression() -> None:
    table = {"source": people(), "columns": COLUMNS, "budget": 1, "protection": "differential"}
    with TrustedParty.open(people(), name="people", columns=COLUMNS, budget=1, protection="differential") as party:
        facts = describe_dataset(party, declare("people", table))
    by_name = {column.name: column for column in facts.columns}
    assert by_name["age"].expression is None
    group: ColumnFacts = by_name["age_group"]
    assert (group.type, group.values, group.nullable, group.groups) == ("category", ("child", "adult"), False, True)
    assert group.expression == DERIVED["age_group"]["expression"]
    assert f"child, adult; derived: {group.expression}" in str(facts)


def test_the_source_need_not_hold_them_and_must_hold_what_they_use() -> None:
    data = people()
    del data["wage"]
    with pytest.raises(SourceError, match="no column 'wage'; it has"):
        TrustedParty.open(data, name="people", columns=COLUMNS, budget=1)
    only = {name: table for name, table in COLUMNS.items() if name != "wage"}
    with pytest.raises(InvalidInput, match="column 'yearly', expression: the column 'wage' is not declared"):
        TrustedParty.open(data, name="people", columns=only, budget=1)


@pytest.mark.slow
def test_large_tables_find_order_statistics_of_derived_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Samples, brackets and ends are for large tables; what they find is what a column of the source would give."""
    call_tables_large(monkeypatch)
    data = people(3000)
    columns = read_columns(HELD | {"sum": DERIVED["sum"], "low": {"expression": "0 - wage"}})
    held = data | {"sum": true_values(data)["sum"], "low": [None if w is None else -w for w in data["wage"]]}
    plain = {name: Column(name, c.kind, c.domain, c.nullable) for name, c in columns.items()}
    derived_set, plain_set = (Dataset("t", each, protection=INDIVIDUAL) for each in (columns, plain))
    for source, of_source in ((pa.table(data), pa.table(held)), (tmp_path / "a.parquet", tmp_path / "b.parquet")):
        if isinstance(source, Path):
            pa.parquet.write_table(pa.table(data), source)
            pa.parquet.write_table(pa.table(held), of_source)
        with open_source(source, derived_set) as one, open_source(of_source, plain_set) as other:
            for select in ("MEDIAN(sum)", "KTH_LARGEST(low, 2), KTH_SMALLEST(low, 3)", "IQR(sum), MEDIAN(low)"):
                for where in ("", " WHERE sum > 20", " WHERE region = 'north'"):
                    sql = f"SELECT {select} FROM t{where}"
                    plans = [
                        make_plan(read(sql, {"t": data_set}), data_set, 1) for data_set in (derived_set, plain_set)
                    ]
                    assert one.summarise(plans[0]) == other.summarise(plans[1]), sql
