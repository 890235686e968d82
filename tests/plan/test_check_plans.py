"""What a plan tells of its checks: their ε, from which ε on the declared one is there, and what has none at all."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from idios.core.calibration import Protection
from idios.core.domain import Kind
from idios.core.neighbours import Neighbours
from idios.core.statistics import FINE, STATISTICS, InterquartileRange, StandardDeviation, Variance
from idios.declare.schema import Budget, Dataset
from idios.errors import InvalidInput, QuestionRefused
from idios.party import TrustedParty
from idios.plan.budget import needs_check
from idios.plan.planner import make_plan, plan_check
from idios.plan.question import Plan
from idios.sql.reader import read
from tests.sql.declared import declared

TINY = Fraction(1, 10**6)
CONCENTRATED = Budget(Fraction(5), Fraction(1, 10**6))
QUESTIONS = [
    "SELECT MEDIAN(age) FROM people",
    "SELECT MEDIAN(age) AS m, COUNT(*), AVG(age) FROM people WHERE age > 30",
    "SELECT sex, MEDIAN(age), QUANTILE(age, 0.75) FROM people GROUP BY sex",
]
LEVELS = [
    Protection.declare("differential"),
    Protection.declare("individual"),
    Protection.declare("group", group={"size": 3, "growth": "flat"}),
]


def planned(sql: str, people: Dataset, epsilon: Fraction | str, check: object = None) -> Plan:
    return make_plan(read(sql, {"people": people}), people, epsilon, check=check)


@pytest.mark.parametrize("budget", [Budget(Fraction(10)), CONCENTRATED], ids=["pure", "concentrated"])
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("protection", LEVELS, ids=lambda protection: str(protection.level))
@pytest.mark.parametrize("sql", QUESTIONS)
def test_from_the_epsilon_that_is_told_there_is_a_check_and_below_there_is_none(
    sql: str, protection: Protection, neighbours: Neighbours, budget: Budget
) -> None:
    people = declared(protection=protection, neighbours=neighbours, budget=budget, check=Fraction(1, 5))
    least = planned(sql, people, Fraction(2), 0).least_epsilon
    without = planned(sql, people, least)
    assert without.checks == {}
    assert without.checked_from
    enough = max(without.checked_from.values()) + 10 * TINY
    checked = planned(sql, people, enough)
    assert checked.checks.keys() == without.checked_from.keys()
    assert checked.checked_from == {}
    assert checked.least_epsilon <= least + 10 * TINY, "a declared check is left out first"
    little = planned(sql, people, max(least, min(without.checked_from.values()) - 10 * TINY))
    assert little.checks == {}


def test_both_parts_are_told_by_label() -> None:
    people = declared(protection=Protection.declare("differential"), check=Fraction(1, 5))
    made = planned("SELECT MEDIAN(age) AS m, MEDIAN(age) AS again, COUNT(*) FROM people WHERE age > 30", people, "1")
    assert made.checks == {"m": Fraction(1, 10), "again": Fraction(1, 10)}
    asked = planned("SELECT MEDIAN(age) FROM people", people, "1", "0.5")
    assert (asked.checks, asked.checked_from) == ({"MEDIAN(age)": Fraction(1, 2)}, {})
    assert planned("SELECT MEDIAN(age) FROM people", people, "1", 0).checks == {}
    assert planned("SELECT COUNT(*), AVG(age) FROM people", people, "1").checks == {}


# ------------------------------------------------------------------------------------------- what has no check

CALLS = [
    (kind.spellings[0].write("age", None if kind.parameter is None else kind.parameter.propose(FINE)), kind)
    for kind in STATISTICS
    if kind.spellings and Kind.INTEGER in kind.kinds
]
PLACES = {"whole": "", "selection": " WHERE income > 5", "groups": " GROUP BY sex"}


def find_unchecked(made: Plan) -> list[str]:
    """The statistics whose error is secret and that have no check."""
    return [each.label for each in made.aggregates if needs_check(each) and each.check is None]


@pytest.mark.parametrize("budget", [Budget(Fraction(10)), CONCENTRATED], ids=["pure", "concentrated"])
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("protection", LEVELS, ids=lambda protection: str(protection.level))
@pytest.mark.parametrize("place", PLACES)
def test_only_exact_distances_are_told(
    place: str, protection: Protection, neighbours: Neighbours, budget: Budget
) -> None:
    """Exact are those of ``exact_reach``, which enumeration holds (``test_distance_check``); public facts decide."""
    people = declared(protection=protection, neighbours=neighbours, budget=budget, check=Fraction(1, 5))
    people = replace(people, parameters=FINE, size=100_000 if neighbours is Neighbours.REPLACE else None)
    left_out = set()
    for call, kind in CALLS:
        sql = f"SELECT {call} FROM people{PLACES[place]}"
        alone, made = planned(sql, people, "2", 0), planned(sql, people, "2")
        [aggregate] = made.aggregates
        if aggregate.check is not None:
            assert aggregate.statistic.exact_reach(aggregate.neighbours) == math.inf
            assert planned(sql, people, "2", "0.2").checks.keys() == made.checks.keys()
        elif needs_check(aggregate):
            left_out.add(kind)
            assert made == alone, "all of ε goes to the answer"
            assert (made.checks, made.checked_from) == ({}, {})
            with pytest.raises(InvalidInput, match=r"how many records .* is off cannot be told here"):
                planned(sql, people, "2", "0.2")
            with pytest.raises(InvalidInput, match=r"how many records .* is off cannot be told here"):
                plan_check(alone, [["1"]] * len(alone.cells), "2")
    fitted = {Variance, StandardDeviation} if protection.level != "differential" else set()
    moving = neighbours is Neighbours.ADD_REMOVE or (place == "groups" and not fitted)
    assert left_out == fitted | ({InterquartileRange} if moving else set())


def test_the_others_of_a_question_keep_their_checks() -> None:
    people = declared(protection=Protection.declare("differential"), check=Fraction(1, 5))
    sql = "SELECT sex, IQR(age) AS i, MEDIAN(age) AS m FROM people GROUP BY sex"
    made = planned(sql, people, "4")
    assert list(made.checks) == ["m"]
    assert find_unchecked(made) == ["i"]
    assert made.checked_from == {}
    with pytest.raises(InvalidInput, match="i is off cannot be told here"):
        planned(sql, people, "4", "0.2")
    later = plan_check(planned(sql, people, "4", 0), [["1", "2"]] * 2, "2")
    assert list(later.checks) == ["m"]


@pytest.mark.parametrize("call", ["MEDIAN(age)", "IQR(age)", "TRIMMED_MEAN(age, 0.1)"])
def test_people_of_several_records_have_no_check(call: str) -> None:
    """It would be told in records, and their weighted quantiles have a safe bound for an envelope."""
    with TrustedParty.open(
        {"person": [1, 1, 2, 3], "age": [1, 2, 3, 4]},
        name="t",
        columns={"age": {"type": "integer", "bounds": [0, 120]}},
        unit="person",
        protection="differential",
        budget=100,
        check="0.2",
        parameters={"trim": "0.1"},
    ) as party:
        sql = f"SELECT {call} FROM t"
        if call == "IQR(age)":
            with pytest.raises(QuestionRefused):
                party.make_plan(sql, 50)
            return
        assert party.make_plan(sql, 50).checks == {}
        with pytest.raises(InvalidInput, match="ask without check"):
            party.make_plan(sql, 50, check="0.2")
