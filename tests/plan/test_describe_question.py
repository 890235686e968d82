"""A stored question is told in words that are those of its normal form, whoever asked it and however."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from idios.codec import canonical
from idios.core.statistics import STATISTICS
from idios.party import TrustedParty
from idios.plan.question_words import (
    WORDS,
    describe_question,
    describe_selection,
    describe_statistics,
    name_statistics,
)

COLUMNS = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "income": {"type": "decimal", "step": "0.5", "bounds": [0, 10000]},
    "region": {"type": "category", "values": ["north", "south", "east"]},
}


@pytest.fixture(scope="module")
def party() -> Iterator[TrustedParty]:
    rows = {"age": [1, 40], "income": [1.0, 2.0], "region": ["north", "south"]}
    with TrustedParty.open(
        rows, name="people", columns=COLUMNS, min_epsilon="1/1000", budget=1, protection="individual"
    ) as opened:
        yield opened


def form(party: TrustedParty, sql: str) -> str:
    plan = party.make_plan(sql, "0.5")
    for tell in (describe_question, describe_statistics, describe_selection, name_statistics):
        assert tell(plan.form) == tell(plan.normal_form), "what a plan holds of its form says what the text says"
    assert canonical(json.loads(plan.normal_form)) == plan.normal_form
    return plan.normal_form


@pytest.mark.parametrize(
    ("sql", "described"),
    [
        ("SELECT COUNT(*) FROM people", "number of records"),
        (
            "SELECT MEDIAN(income) AS med FROM people WHERE age BETWEEN 20 AND 60",
            "median of income where age is from 20 to 60",
        ),
        (
            "SELECT region, MEDIAN(income) FROM people WHERE age >= 18 GROUP BY region",
            "median of income where age is at least 18, by region",
        ),
        (
            "SELECT AVG(age), COUNT(*), SUM(age) FROM people",
            "number of records, mean of age and sum of age",
        ),
        ("SELECT COUNT(*), COUNT(income) FROM people", "number of records where income is known; number of records"),
        ("SELECT COUNT(DISTINCT region) FROM people", "number of distinct values of region"),
        ("SELECT QUANTILE(age, 0.25), QUANTILE(age, 0.5) FROM people", "median of age and 0.25 quantile of age"),
        ("SELECT KTH_LARGEST(age, 2) FROM people", "k-th largest age, k = 2"),
        ("SELECT TRIMMED_MEAN(age, 0.05) FROM people", "mean of age with 0.05 trimmed off each end"),
        (
            "SELECT BIN(age, 10), COUNT(*) FROM people GROUP BY BIN(age, 10)",
            "number of records, by age in 13 bins, from 0 to 9, …, 120",
        ),
        (
            "SELECT BIN(age, 50), region, COUNT(*) FROM people WHERE age < 100 GROUP BY BIN(age, 50), region",
            "number of records where age is at most 99, by age, from 0 to 49 or from 50 to 99 and region",
        ),
    ],
)
def test_questions_in_words(party: TrustedParty, sql: str, described: str) -> None:
    assert describe_question(form(party, sql)) == described


def test_each_statistic_in_words_and_as_a_call(party: TrustedParty) -> None:
    asked = form(party, "SELECT COUNT(income) AS secret_name, COUNT(*) AS n, MODE(region) FROM people WHERE age > 65")
    assert describe_statistics(asked) == (
        "number of records where age is at least 66 and income is known",
        "number of records where age is at least 66",
        "mode of region where age is at least 66",
    )
    assert name_statistics(asked) == (
        "COUNT(*) where age is at least 66 and income is known",
        "COUNT(*) where age is at least 66",
        "MODE(region)",
    )


def test_every_statistic_of_sql_has_words_and_a_call() -> None:
    for statistic in STATISTICS:
        written = f'{{"statistics": [["{statistic.name}", "0.25", "x", 0, "1"]], "groups": [], "selections": [true]}}'
        [call] = name_statistics(written)
        assert call.startswith(statistic.spellings[0].name if statistic.spellings else statistic.name)
        [words] = describe_statistics(written)
        assert "_" not in words
        assert ("0.25" in words) == (statistic.parameter is not None)
    assert set(WORDS) <= {statistic.name for statistic in STATISTICS}


def test_a_check_says_of_what_it_is(party: TrustedParty) -> None:
    sql = "SELECT MEDIAN(age) FROM people"
    with TrustedParty.open(
        {"age": list(range(100))}, name="p", columns={"age": COLUMNS["age"]}, budget=3, protection="individual"
    ) as own:
        own.query(sql.replace("people", "p"), 1)
        plan = own.make_check_plan(sql.replace("people", "p"), 1, 1)
        assert describe_question(plan.normal_form) == "distance of the answer with ε = 1 to: median of age"
