"""What answers say about themselves: it follows from the declaration, the question and what is released alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from idios.answer.assembly import make_answer
from idios.answer.notes import COLLAPSED
from idios.answer.release import draw_table
from idios.core.sampling import SeededSource
from idios.ledger import StoredAnswer
from idios.model import Answer, Cost
from idios.party import TrustedParty

FEW = "may be far off where fewer than about"
RACES = ["Black", "Refused", "White"]
ALONE = "SELECT AVG(wage) AS w FROM workers WHERE race = 'Refused'"


@pytest.fixture(scope="module")
def opened_party() -> Iterator[TrustedParty]:
    races = ["White"] * 3000 + ["Black"] * 900 + ["Refused"] * 20
    columns = {
        "race": {"type": "category", "values": RACES},
        "wage": {"type": "integer"},
        "hours": {"type": "integer"},
        "age": {"type": "integer", "bounds": [0, 120]},
        "sex": {"type": "category", "values": ["f", "m"], "nullable": False},
    }
    rows = {
        "race": races,
        "wage": [2000 + i % 999 for i in range(len(races))],
        "hours": [i % 60 for i in range(len(races))],
        "age": [i % 90 for i in range(len(races))],
        "sex": ["fm"[i % 2] for i in range(len(races))],
    }
    with TrustedParty.open(rows, name="workers", columns=columns, protection="differential", budget=1000) as opened:
        yield opened


@pytest.fixture
def party(opened_party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> TrustedParty:
    """The same party for all tests, each with noise from the beginning of one seed."""
    monkeypatch.setattr(opened_party, "source", SeededSource(2))
    return opened_party


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


def test_an_answer_says_how_many_values_were_clipped(party: TrustedParty) -> None:
    answer = party.query("SELECT race, AVG(wage) AS wage, COUNT(*) AS n FROM workers GROUP BY race", epsilon=2)
    [told] = [note for note in answer.notes if "clipped" in note]
    assert re.match(r"wage: about \d+ of [34],\d\d\d values were clipped", told)
    for shown in (str(answer), answer._repr_html_()):
        assert told in shown
        assert "wage (noise, 95 %, of the clipped values)" in shown
    assert f"# note: {told}" in (answer.to_csv(metadata=True) or "")
    assert "n (noise, 95 %)" in str(answer)
    assert Answer.from_dict(answer.to_dict()) == answer
    # nothing is drawn where bounds are declared, and no group is left out by a key that is never missing
    assert party.query("SELECT sex, AVG(age), COUNT(*) FROM workers GROUP BY sex", epsilon=1).notes == ()


@pytest.mark.parametrize("statistic", ["AVG", "STDDEV"])
def test_a_group_with_next_to_no_values_is_null_and_named(party: TrustedParty, statistic: str) -> None:
    answer = party.query(f"SELECT race, {statistic}(wage) AS w FROM workers GROUP BY race ORDER BY race", epsilon=1)
    assert [row["w"] is None for row in answer.rows] == [False, True, False]
    assert any(note.endswith("NULL is Refused, where too few values are counted.") for note in answer.notes)
    assert ["w" in intervals for intervals in answer.interval_rows] == [True, False, True]
    ratio = party.query(f"SELECT {statistic}(wage) / COUNT(*) AS r FROM workers WHERE race = 'Refused'", epsilon=1)
    assert ratio.value is None
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
    assert not any("Refused" in note for note in party.query(sql, epsilon=1).notes)


def test_limits_that_found_nothing_are_told(party: TrustedParty) -> None:
    for sql in ("SELECT race, AVG(wage) AS w FROM workers GROUP BY race", ALONE):
        plan = party.make_plan(sql, 2)
        drawn = draw_table(plan, party.datasets["workers"].backend, None, SeededSource(1))
        tallies = tuple(tally and (10**6, *tally[1:]) for tally in drawn.tallies)
        assert f"w: {COLLAPSED}." in make_answer(plan, replace(drawn, tallies=tallies), id="a").notes
        point = tuple(tuple(pair and (pair[0], pair[0]) for pair in row) for row in drawn.clipped)
        assert f"w: {COLLAPSED}." in make_answer(plan, replace(drawn, clipped=point), id="b").notes


def test_sums_of_groups_are_told_that_one_sum_would_be_more_accurate(party: TrustedParty) -> None:
    quote = party.quote("SELECT race, SUM(wage), SUM(hours) FROM workers GROUP BY race", epsilon=1)
    assert quote.notes[-1].endswith("One SUM by a further key that tells the sums apart would have all of it.")
    assert not party.quote("SELECT race, SUM(wage) FROM workers GROUP BY race", epsilon=1).notes[1:]


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


def test_an_answer_of_before_that_was_clipped_to_one_value_is_shown_as_null(party: TrustedParty) -> None:
    sql = "SELECT race, AVG(wage) AS w, AVG(wage) / 2 AS h FROM workers GROUP BY race ORDER BY race"
    plan = party.make_plan(sql, 4)
    table = draw_table(plan, party.datasets["workers"].backend, None, SeededSource(1))
    point, wide = (Fraction(0), Fraction(0)), (Fraction(0), Fraction(4000))
    old = replace(
        table,
        cells=(("0",), ("0",), ("2500",)),
        clipped=((point,), (point,), (wide,)),
        intervals=((("0", "0"),), (("0", "0"),), (("2400", "2600"),)),
        noisy_sums=(),
        tallies=(),
    )
    cost = Cost(plan.epsilon, Fraction(0), plan.rho)
    entry = StoredAnswer("00" * 32, "workers", "1", plan.normal_form, cost, old.to_text(), 7, "2026-01-01T00:00:00")
    answer = make_answer(plan, entry.table, id="")
    assert [(row["w"], row["h"]) for row in answer.rows] == [(None, None), (None, None), (2500, 1250)]
    assert [sorted(row) for row in answer.interval_rows] == [[], [], ["h", "w"]]
    assert f"w of Black, Refused: {COLLAPSED}." in answer.notes
    assert "0 to 0" not in str(entry.released)
