"""What answers say about themselves: it follows from the declaration, the question and what is released alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from idios.answers import make_answer
from idios.core.sampling import SeededSource
from idios.model import Answer
from idios.notes import COLLAPSED
from idios.party import TrustedParty
from idios.release import draw_table

FEW = "may be far off where fewer than about"
RACES = ["Black", "Refused", "White"]
ALONE = "SELECT AVG(wage) AS w FROM workers WHERE race = 'Refused'"


@pytest.fixture(scope="module")
def party() -> Iterator[TrustedParty]:
    races = ["White"] * 3000 + ["Black"] * 900 + ["Refused"] * 20
    columns = {
        "race": {"type": "category", "values": RACES},
        "wage": {"type": "integer"},
        "age": {"type": "integer", "bounds": [0, 120]},
        "sex": {"type": "category", "values": ["f", "m"], "nullable": False},
    }
    rows = {
        "race": races,
        "wage": [2000 + i % 999 for i in range(len(races))],
        "age": [i % 90 for i in range(len(races))],
        "sex": ["fm"[i % 2] for i in range(len(races))],
    }
    with TrustedParty.open(rows, name="workers", columns=columns, protection="differential", budget=1000) as opened:
        yield opened


@pytest.fixture(scope="module")
def people() -> Iterator[TrustedParty]:
    columns = {
        "amount": {"type": "integer", "bounds": [0, None]},
        "region": {"type": "category", "values": ["north", "south"]},
    }
    rows = {
        "person": [i % 500 for i in range(2000)],
        "amount": [i % 70 for i in range(2000)],
        "region": [("north", "south")[i % 2] for i in range(2000)],
    }
    options: dict[str, Any] = {"unit": "person", "groups": 2, "protection": "differential", "budget": 1000}
    with TrustedParty.open(rows, name="orders", columns=columns, **options) as opened:
        yield opened


def test_an_answer_repeats_where_it_is_far_off_and_names_the_groups_that_count_fewer(party: TrustedParty) -> None:
    answer = party.query("SELECT race, AVG(wage) AS wage, COUNT(*) AS n FROM workers GROUP BY race", epsilon=2)
    [risk] = [note for note in answer.notes if FEW in note]
    few = {row["race"]: row["n"] for row in answer.rows}["Refused"]
    assert risk.startswith(f"wage {FEW} ")
    assert risk.endswith(f" values are selected, as in Refused ({few}).")
    for shown in (str(answer), answer._repr_html_()):
        assert risk in shown
        assert "wage (95 %, of the clipped values)" in shown
    assert f"# note: {risk}" in (answer.to_csv(metadata=True) or "")
    assert "n (95 %)" in str(answer)
    assert Answer.from_dict(answer.to_dict()) == answer
    alone = party.query("SELECT SUM(wage), COUNT(wage) AS n FROM workers WHERE race = 'Refused'", epsilon=1)
    assert alone.notes[0].endswith(f"as here, where {alone.rows[0]['n']} are counted.")
    uncounted = party.query("SELECT SUM(wage) FROM workers WHERE race = 'Refused'", epsilon=1)
    assert uncounted.notes[0].endswith("values are selected.")
    # nothing is drawn where bounds are declared, and no group is left out by a key that is never missing
    assert party.query("SELECT sex, AVG(age), COUNT(*) FROM workers GROUP BY sex", epsilon=1).notes == ()


@pytest.mark.parametrize("statistic", ["AVG", "STDDEV"])
def test_the_noisy_count_behind_an_answer_names_the_groups_and_withholds_their_interval(
    party: TrustedParty, statistic: str
) -> None:
    answer = party.query(f"SELECT race, {statistic}(wage) AS w FROM workers GROUP BY race ORDER BY race", epsilon=8)
    assert re.search(r"values are selected, as in Refused \(\d+\)\.$", answer.notes[0])
    assert ["w" in intervals for intervals in answer.interval_rows] == [True, False, True]
    ratio = party.query(f"SELECT {statistic}(wage) / COUNT(*) AS r FROM workers WHERE race = 'Refused'", epsilon=8)
    assert ratio.interval_rows == ()


def test_an_answer_that_is_null_says_where_that_is_to_be_expected(party: TrustedParty) -> None:
    sql = "SELECT race, QUANTILE(wage, 0.9) AS q FROM workers GROUP BY race"
    plan = party.make_plan(sql, 1)
    drawn = draw_table(plan, party.datasets["workers"].backend, None, SeededSource(1))
    told = f"q: {party.quote(sql, epsilon=1).null_risks['q']}. With a larger ε or fewer groups fewer suffice."
    assert told.startswith("q: NULL is possible where fewer than about ")
    unanswered = make_answer(plan, replace(drawn, cells=((None,),) * 3), id="a")
    answered = make_answer(plan, replace(drawn, cells=(("1",),) * 3), id="b")
    assert told in unanswered.notes
    assert told not in answered.notes


def test_rows_that_are_not_shown_are_not_named(party: TrustedParty) -> None:
    sql = "SELECT race, AVG(wage) AS wage, COUNT(*) AS n FROM workers GROUP BY race HAVING COUNT(*) > 500"
    assert "Refused" not in party.query(sql, epsilon=2).notes[0]


def test_limits_that_are_one_value_are_marked_in_their_row_and_told_below(party: TrustedParty) -> None:
    for sql, of in (("SELECT race, AVG(wage) AS w FROM workers GROUP BY race", "w of Refused"), (ALONE, "w")):
        plan = party.make_plan(sql, 2)
        drawn = draw_table(plan, party.datasets["workers"].backend, None, SeededSource(1))
        one = ((Fraction(160), Fraction(160)),)
        spread = ((Fraction(0), Fraction(9)),)
        refused = "Refused" if plan.groups else None
        clipped = tuple(one if group.get("race") == refused else spread for group in drawn.groups)
        answer = make_answer(plan, replace(drawn, clipped=clipped), id="a")
        assert f"{of}: {COLLAPSED}." in answer.notes
        assert str(answer).count("collapsed") == (2 if plan.groups else 1)
        assert COLLAPSED not in str(make_answer(plan, replace(drawn, clipped=tuple(spread for _ in clipped)), id="b"))


def test_records_whose_key_may_be_missing_are_in_no_group(party: TrustedParty, people: TrustedParty) -> None:
    sql = "SELECT race, sex, COUNT(*) FROM workers GROUP BY race, sex"
    told = ("Records whose race is missing or not declared are in no group.",)
    assert party.query(sql, epsilon=1).notes == party.quote(sql, epsilon=1).notes == told
    sql = "SELECT region, AVG(amount) FROM orders GROUP BY region"
    assert people.quote(sql, epsilon=4).notes[-1] == "Rows whose region is missing or not declared are in no group."
    sql = "SELECT r, COUNT(*) FROM (SELECT MAX(region) AS r FROM orders GROUP BY person) GROUP BY r"
    assert people.quote(sql, epsilon=4).notes == ("People whose r is missing or not declared are in no group.",)


def test_statistics_of_people_say_what_they_are_of(people: TrustedParty) -> None:
    sql = "SELECT COUNT(*), AVG(amount), SUM(amount) FROM orders"
    told = (
        "COUNT(*) is the sum of each person's number of rows; AVG(amount) is the mean of each person's mean of amount."
    )
    answer = people.query(sql, epsilon=6)
    assert people.quote(sql, epsilon=6).notes == (told,)
    assert answer.notes[-1] == told
    assert "COUNT(*): each person's number of rows outside [" in str(answer)
    assert "SUM(amount): each person's sum of amount outside [" in answer.clipped_note
    alike = "Each person counts alike: their rows are read as 20 evenly spaced values."
    assert people.query("SELECT MEDIAN(amount) FROM orders", epsilon=6).notes == (alike,)
    everyone = "SELECT COUNT(*) FROM (SELECT person FROM orders WHERE amount > 3 GROUP BY person)"
    assert people.query(everyone, epsilon=1).notes == ()


def test_a_capped_key_says_so() -> None:
    data = {"who": list(range(60)), "x": list(range(60))}
    columns = {"x": {"type": "integer", "bounds": [0, None]}}
    with TrustedParty.open(data, unit="who", columns=columns, budget=9, protection="differential") as party:
        [name] = party.datasets
        people = f"FROM (SELECT LEAST(SUM(x), 9) AS s FROM {name} GROUP BY who)"
        quote = party.quote(f"SELECT BIN(s, 5), COUNT(*) {people} GROUP BY BIN(s, 5)", epsilon=4)
        assert "s is each person's sum of x (values above 9 count as 9)." in quote.notes
        quote = party.quote(f"SELECT SUM(s) {people}", epsilon=4)
        assert quote.notes == ("SUM(s) is the sum of each person's sum of x (values above 9 count as 9).",)
        assert quote.reduction == "the rows of each person to LEAST(SUM(x), 9), which is never released"
