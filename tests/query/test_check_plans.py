"""What a plan tells of its checks: their ε, and from which ε on the declared one is there."""

from __future__ import annotations

from fractions import Fraction

import pytest

from idios.core.calibration import Protection
from idios.core.neighbours import Neighbours
from idios.query.plan import Plan
from idios.query.planner import make_plan
from idios.query.reader import read
from idios.query.schema import Budget, Dataset
from tests.query.declared import declared

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
