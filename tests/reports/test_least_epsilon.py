"""The least ε for a public margin, held against a search through every number of three digits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from idios.answer.projection import expect_margins
from idios.errors import InvalidInput, Unanswerable
from idios.party import TrustedParty
from idios.reports.least_epsilon import find_place, round_place

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "pay": {"type": "number", "step": "0.5", "bounds": [-100, 50]},
    "region": {"type": "category", "values": ["north", "south"]},
}
TABLE = {"age": [i % 90 for i in range(400)], "pay": [1.5] * 400, "region": ["north", "south"] * 200}
ADULTS = "SELECT COUNT(*) FROM people WHERE age >= 18"


@pytest.fixture(scope="module")
def party() -> Iterator[TrustedParty]:
    with TrustedParty.open(TABLE, name="people", columns=COLUMNS, budget=5, protection="individual") as opened:
        yield opened


@pytest.mark.parametrize("number", ["0.05", "0.0512", "0.99999", "1", "1.001", "999", "999.5", "123456"])
def test_numbers_are_rounded_up_to_three_digits(number: str) -> None:
    exact = Fraction(number)
    rounded = round_place(find_place(exact))
    assert rounded == Fraction(f"{float(rounded):.3g}")
    assert round_place(find_place(exact) - 1) < exact <= rounded


@pytest.mark.parametrize(
    ("sql", "within", "units"),
    [
        (ADULTS, 20, 20),
        (ADULTS, "2%", 8),
        ("SELECT region, COUNT(*) FROM people GROUP BY region", "7.5", "7.5"),
        ("SELECT SUM(pay) FROM people", "1%", 400),
        ("SELECT COUNT(*) AS n, COUNT(DISTINCT age) AS ages FROM people WHERE age < 50", 9, 9),
    ],
)
def test_the_least_that_suffices(party: TrustedParty, sql: str, within: Any, units: Any) -> None:
    found = party.find_epsilon(sql, within)

    def widest(epsilon: Fraction) -> Fraction:
        return max(margin or Fraction(0) for margin in party.quote(sql, epsilon).margins.values())

    assert widest(found) <= Fraction(units)
    assert widest(round_place(find_place(found) - 1)) > Fraction(units)


def test_a_wide_margin_costs_the_least_epsilon(party: TrustedParty) -> None:
    assert party.find_epsilon(ADULTS, 10**6) == Fraction(1, 20)
    assert party.find_epsilon("SELECT region, COUNT(*) FROM people GROUP BY region", 10**6) == Fraction(1, 10)
    assert party.find_epsilon("SELECT COUNT(*) FROM people", "0.1%") == Fraction(1, 20)  # public, and free


def test_what_has_no_public_margin_says_so(party: TrustedParty) -> None:
    with pytest.raises(Unanswerable, match=r"MEDIAN\(age\) has no public margin \(the noise is fitted"):
        party.find_epsilon("SELECT COUNT(*), MEDIAN(age) FROM people", 5)
    wide = {"x": {"type": "integer", "bounds": [0, 10**15]}}
    other = TrustedParty.open({"x": [1]}, name="wide", columns=wide, budget=1)
    with other, pytest.raises(Unanswerable, match="no ε up to 1000000 keeps the margin within 1/1000000000"):
        other.find_epsilon("SELECT SUM(x) FROM wide", "1/1000000000")


def test_a_percentage_is_of_something_public(party: TrustedParty) -> None:
    with TrustedParty.open(TABLE, name="people", columns=COLUMNS, budget=5, neighbours="add-remove") as secret:
        assert secret.find_epsilon(ADULTS, 20) == party.find_epsilon(ADULTS, 20)
        with pytest.raises(InvalidInput, match="number of records, which is not public here"):
            secret.find_epsilon(ADULTS, "2%")
    for wrong in (0, "-3%", "x", "%"):
        with pytest.raises(InvalidInput, match="within must be"):
            party.find_epsilon(ADULTS, wrong)


SHARE = "SELECT region, SUM(age) / COUNT(*) AS rate FROM people GROUP BY region"


@pytest.mark.parametrize(
    ("sql", "within", "divisor"),
    [
        ("SELECT 2 * COUNT(*) - SUM(age) AS d FROM people WHERE age < 50", 500, None),
        (SHARE, "15 at 200", 200),
        ("SELECT region, SUM(age) / COUNT(*) AS a, COUNT(*) AS n FROM people GROUP BY region", "9 at 200", 200),
    ],
)
def test_the_least_for_what_is_computed(party: TrustedParty, sql: str, within: Any, divisor: int | None) -> None:
    found, units = party.find_epsilon(sql, within), Fraction(str(within).split()[0])

    def suffices(epsilon: Fraction) -> bool:
        margins = [each.at(divisor or 0) for each in expect_margins(party.make_plan(sql, epsilon)).values()]
        plain = [margin for label, margin in party.quote(sql, epsilon).margins.items() if label == "n"]
        return all(margin is not None and margin <= units for margin in margins + plain)

    assert suffices(found)
    assert not suffices(round_place(find_place(found) - 1))


def test_what_a_computed_column_uses_may_be_as_far_off_as_it_is(party: TrustedParty) -> None:
    found = party.find_epsilon(SHARE, "15 at 200")
    assert max(margin or 0 for margin in party.quote(SHARE, found).margins.values()) > 15


def test_a_computed_column_without_a_public_margin_says_what_would_do(party: TrustedParty) -> None:
    with pytest.raises(Unanswerable, match=r'follows from COUNT\(\*\), which is not public: .* within = "5 at 1000"'):
        party.find_epsilon(SHARE, 15)
    with pytest.raises(Unanswerable, match=r"m has no public margin \(MEDIAN\(age\): .* sums of columns with bounds"):
        party.find_epsilon("SELECT MEDIAN(age) / 2 AS m FROM people", 5)
    with pytest.raises(InvalidInput, match="rate is computed, so that a percentage is of nothing public"):
        party.find_epsilon(SHARE, "5%")
    for wrong in ("5 at ", "5 at x", "x at 5", "5 at 1/2"):
        with pytest.raises(InvalidInput, match="within"):
            party.find_epsilon(SHARE, wrong)
    assert party.plan({"rate": SHARE}, within="15 at 200").questions[0].margins.startswith("SUM(age) ± ")


def test_a_report_within_a_margin(party: TrustedParty) -> None:
    questions = {"adults": ADULTS, "pay": "SELECT SUM(pay) FROM people"}
    plan = party.plan(questions, within="2%")
    assert [q.epsilon for q in plan.questions] == [party.find_epsilon(sql, "2%") for sql in questions.values()]
    with pytest.raises(Unanswerable, match="question 'ages': MEDIAN"):
        party.plan({"ages": "SELECT MEDIAN(age) FROM people"}, within=5)
