"""A stored question's selection is described in words as the question said it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime

import pytest

from idios.party import TrustedParty
from idios.plan.question_words import LONG_CONDITION, describe_selection

COLUMNS = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "decimal", "step": "0.5"},
    "region": {"type": "category", "values": ["north", "south", "east"]},
    "born": {"type": "date", "bounds": ["1900-01-01", "2026-12-31"], "nullable": False},
    "seen": {"type": "timestamp", "nullable": False},
}


@pytest.fixture(scope="module")
def party() -> Iterator[TrustedParty]:
    rows = {
        "age": [1],
        "income": [1.0],
        "region": ["north"],
        "born": [date(2000, 1, 1)],
        "seen": [datetime(2000, 1, 1)],
    }
    with TrustedParty.open(rows, name="people", columns=COLUMNS, min_epsilon="1/1000", budget=1) as opened:
        yield opened


@pytest.mark.parametrize(
    ("where", "described"),
    [
        ("", ""),
        ("WHERE age BETWEEN 30 AND 40", "where age is from 30 to 40"),
        ("WHERE age > 65", "where age is at least 66"),
        ("WHERE age = 65", "where age is 65"),
        ("WHERE age <> 5", "where age is at most 4 or at least 6"),
        ("WHERE income <= 100", "where income is at most 100"),
        ("WHERE income < 100", "where income is at most 99.5"),
        ("WHERE income IS NULL", "where income is missing"),
        ("WHERE income IS NOT NULL", "where income is known"),
        ("WHERE region IN ('north', 'east')", "where region is north or east"),
        ("WHERE NOT (region = 'north')", "where region is south or east"),
        ("WHERE region = 'north' AND age < 10", "where age is at most 9 and region is north"),
        ("WHERE born >= '2000-01-01'", "where born is at least 2000-01-01"),
        ("WHERE seen >= TIMESTAMP '2000-01-01 12:00:00'", "where seen is at least 2000-01-01 12:00:00"),
        # one step before the calendar of Python begins
        ("WHERE seen < TIMESTAMP '0001-01-01 00:00:00'", "where seen is at most -62135596800000001"),
        (
            "WHERE age < 10 OR region = 'north'",
            "where (age is at most 9 or age is at least 10 and region is north)",
        ),
    ],
)
def test_conditions_in_words(party: TrustedParty, where: str, described: str) -> None:
    assert describe_selection(party.make_plan(f"SELECT COUNT(*) FROM people {where}", "0.5").normal_form) == described


def test_what_a_statistic_implies_is_not_said(party: TrustedParty) -> None:
    assert describe_selection(party.make_plan("SELECT MEDIAN(income) FROM people", "0.5").normal_form) == ""
    grouped = "SELECT region, COUNT(*) FROM people WHERE age > 65 GROUP BY region"
    assert describe_selection(party.make_plan(grouped, "0.5").normal_form) == "where age is at least 66"


def test_what_is_too_long_is_not_spelled_out(party: TrustedParty) -> None:
    ages = " OR ".join(f"age = {age}" for age in range(0, 120, 2))
    assert (
        describe_selection(party.make_plan(f"SELECT COUNT(*) FROM people WHERE {ages}", "0.5").normal_form)
        == LONG_CONDITION
    )
