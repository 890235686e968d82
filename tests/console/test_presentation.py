"""What the history says of a question's conditions is what the question said."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from idios.party import TrustedParty
from idios.server.console.conditions import LONGER, selected
from idios.server.console.presentation import mark_error, present_entry

COLUMNS = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "decimal", "step": "0.5"},
    "region": {"type": "category", "values": ["north", "south", "east"]},
    "born": {"type": "date", "bounds": ["1900-01-01", "2026-12-31"], "nullable": False},
}


@pytest.fixture(scope="module")
def party() -> Iterator[TrustedParty]:
    rows = {"age": [1], "income": [1.0], "region": ["north"], "born": [date(2000, 1, 1)]}
    with TrustedParty.open(
        rows, name="people", columns=COLUMNS, protection="differential", delta="1e-6", budget=1
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    ("where", "said"),
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
        (
            "WHERE age < 10 OR region = 'north'",
            "where (age is at most 9 or age is at least 10 and region is north)",
        ),
    ],
)
def test_conditions_in_words(party: TrustedParty, where: str, said: str) -> None:
    assert selected(party.plan(f"SELECT COUNT(*) FROM people {where}", "0.5").normal_form) == said


def test_what_a_statistic_implies_is_not_said(party: TrustedParty) -> None:
    assert selected(party.plan("SELECT MEDIAN(income) FROM people", "0.5").normal_form) == ""
    grouped = "SELECT region, COUNT(*) FROM people WHERE age > 65 GROUP BY region"
    assert selected(party.plan(grouped, "0.5").normal_form) == "where age is at least 66"


def test_what_is_too_long_is_not_spelled_out(party: TrustedParty) -> None:
    ages = " OR ".join(f"age = {age}" for age in range(0, 120, 2))
    assert selected(party.plan(f"SELECT COUNT(*) FROM people WHERE {ages}", "0.5").normal_form) == LONGER


def test_entries_are_told_exactly_and_briefly() -> None:
    told = present_entry(
        {"question": "q" * 100, "epsilon": "1/3", "analyst": "ada", "expires": "2027-01-02T03:04:05.6Z"}
    )
    assert [(one.name, one.shown, one.folded) for one in told] == [
        ("epsilon", "≈\u202f0.3333", False),
        ("analyst", "ada", False),
        ("expires", "2027-01-02 03:04:05", False),
        ("question", "q" * 100, True),
    ]
    assert told[0].exact == "1/3"


@pytest.mark.parametrize(
    ("line", "column", "mark"),
    [(1, 1, ("", "ab", " c")), (2, 2, ("d", "(", "e")), (1, 99, ("ab c", " ", "")), (9, 1, None), (None, None, None)],
)
def test_places_are_marked(line: int | None, column: int | None, mark: tuple[str, str, str] | None) -> None:
    assert mark_error("ab c\nd(e", {"in": "sql", "name": None, "line": line, "column": column}) == mark
