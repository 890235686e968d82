"""Reports: shares, prices and answers of several questions as one, and a crash at every step of asking them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from idios.errors import AnswerFailed, BudgetExceeded, InvalidInput, QuestionRefused, Unanswerable
from idios.ledger import Ledger
from idios.party import TrustedParty
from idios.reports import report as module
from idios.reports.report import ReportPlan

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120], "nullable": False},
    "region": {"type": "category", "values": ["north", "south"]},
}
TABLE = {"age": [i % 90 for i in range(400)], "region": ["north", "south"] * 200}
ADULTS = "SELECT COUNT(*) FROM people WHERE age >= 18"
QUESTIONS = {
    "adults": ADULTS,
    "ages": "SELECT MEDIAN(age) FROM people",
    "regions": "SELECT region, COUNT(*) FROM people GROUP BY region",
}


def open_party(ledger: Path | Ledger | None = None, **options: Any) -> TrustedParty:
    declared = {"name": "people", "columns": COLUMNS, "budget": 5, "version": "1", **options}
    return TrustedParty.open(TABLE, ledger=ledger, **declared)


@pytest.fixture
def party() -> Iterator[TrustedParty]:
    with open_party() as opened:
        yield opened


def spent(party: TrustedParty, analyst: str | None = None) -> Fraction:
    return party.ledger.balance("people", analyst).epsilon.spent


def shares(plan: ReportPlan) -> dict[str, str]:
    return {question.name: str(question.epsilon) for question in plan.questions}


# The plan.


def test_epsilon_is_divided_evenly_or_as_the_split_says(party: TrustedParty) -> None:
    assert shares(party.plan(QUESTIONS, 3)) == {"adults": "1", "ages": "1", "regions": "1"}
    assert shares(party.plan(QUESTIONS, 1, split={"ages": 2})) == {"adults": "1/4", "ages": "1/2", "regions": "1/4"}
    plan = party.plan(QUESTIONS, "0.9")
    assert [total.cost for total in plan.totals] == [Fraction(9, 10)]
    assert (plan.totals[0].remaining_before, plan.totals[0].remaining_after) == (5, Fraction(41, 10))
    assert plan.affordable
    assert spent(party) == 0


def test_shares_follow_from_the_questions_and_not_from_what_is_stored(party: TrustedParty) -> None:
    before = shares(party.plan(QUESTIONS, 3))
    party.query(ADULTS, 1)
    party.query(QUESTIONS["ages"], "0.5")
    plan = party.plan(QUESTIONS, 3)
    assert shares(plan) == before
    assert [question.price for question in plan.questions] == ["free: stored", "ε = 1", "ε = 1"]
    assert plan.totals[0].cost == 2


def test_what_is_public_takes_no_share(party: TrustedParty) -> None:
    plan = party.plan({"size": "SELECT COUNT(*) FROM people", **QUESTIONS}, 3)
    assert [str(question.share) for question in plan.questions] == ["0", "1", "1", "1"]
    assert plan.questions[0].price == "free: public"
    assert plan.ask()["size"].value == 400
    assert spent(party) == 3


def test_two_questions_that_mean_the_same_are_one_charge(party: TrustedParty) -> None:
    plan = party.plan({"a": ADULTS, "b": "select count(*) as n from people where not age < 18"}, 3)
    assert [question.same_as for question in plan.questions] == [None, "a"]
    assert plan.totals[0].cost == Fraction(3, 2)
    report = plan.ask()
    assert report["a"].value == report["b"].value
    assert dict(report.items()) == report.answers
    assert (list(report), list(report.keys()), len(report)) == (["a", "b"], ["a", "b"], 2)
    assert [answer.value for answer in report.values()] == [report["a"].value] * 2
    assert (report.get("c"), "a" in report, "c" in report) == (None, True, False)
    assert report.charged == {"people": Fraction(3, 2)}
    assert spent(party) == Fraction(3, 2)
    uneven = party.plan({"a": ADULTS, "b": ADULTS}, 3, split={"a": 2})  # another ε is another question
    assert [question.same_as for question in uneven.questions] == [None, None]


def test_the_sum_must_be_affordable_before_anything_is_charged(party: TrustedParty) -> None:
    plan = party.plan(QUESTIONS, 6)
    assert all(question.quote.affordable for question in plan.questions)
    assert not plan.affordable
    assert plan.shortage == "data set 'people': ε = 1 left of the data set's budget when it comes to 'regions'"
    assert "not affordable" in str(plan)
    with pytest.raises(BudgetExceeded, match="as a whole"):
        plan.ask()
    assert spent(party) == 0
    assert party.plan(QUESTIONS, 5).affordable  # to the last bit of the budget


def test_a_plan_looks_at_the_budget_again_when_it_is_asked(party: TrustedParty) -> None:
    plan = party.plan(QUESTIONS, 3)
    party.query("SELECT AVG(age) FROM people", 3)
    assert plan.affordable
    with pytest.raises(BudgetExceeded, match="as a whole"):
        plan.ask()
    assert spent(party) == 3


def test_an_analyst_has_two_budgets(party: TrustedParty) -> None:
    party.ledger.add_analyst("ada")
    party.ledger.grant("ada", "people", epsilon=Fraction(2))
    short = party.plan(QUESTIONS, 3, analyst="ada")
    assert str(short.shortage).endswith("ε = 0 left of the analyst's cap when it comes to 'regions'")
    party.ledger.grant("ada", "people", epsilon=Fraction(100))
    beyond = party.plan(QUESTIONS, 6, analyst="ada")
    assert str(beyond.shortage).endswith("ε = 1 left of the data set's budget when it comes to 'regions'")
    party.ledger.grant("ada", "people")
    assert party.plan(QUESTIONS, 6, analyst="ada").shortage == beyond.shortage
    party.ledger.grant("ada", "people", epsilon=Fraction(100))
    party.query(ADULTS, 2)
    party.query(QUESTIONS["ages"], 2)
    party.query("SELECT AVG(age) FROM people", 1)  # the data set's budget is spent, and what is stored remains
    stored = party.plan({name: QUESTIONS[name] for name in ("adults", "ages")}, 4, analyst="ada")
    assert stored.affordable
    assert stored.ask().charged == {"people": 4}
    assert (spent(party), spent(party, "ada")) == (5, 4)


def test_each_data_set_has_the_whole_epsilon() -> None:
    ledger = Ledger.open("sqlite://")
    people, others = open_party(ledger), open_party(ledger, name="others", budget=2)
    with TrustedParty({**people.datasets, **others.datasets}, ledger) as party:
        plan = party.plan({**QUESTIONS, "other": "SELECT AVG(age) FROM others"}, 3)
        assert list(shares(plan).values()) == ["1", "1", "1", "3"]
        assert [(total.dataset, total.cost) for total in plan.totals] == [("people", 3), ("others", 3)]
        assert plan.shortage == "data set 'others': ε = 2 left of the data set's budget when it comes to 'other'"
        with pytest.raises(BudgetExceeded):
            plan.ask()
        report = party.plan({**QUESTIONS, "other": "SELECT AVG(age) FROM others"}, 2).ask()
        assert report.charged == {"people": 2, "others": 2}
        assert {total.dataset: total.remaining_after for total in report.totals} == {"people": 3, "others": 0}


def test_every_question_needs_its_least_epsilon(party: TrustedParty) -> None:
    grouped = {"counts": ADULTS, "medians": "SELECT region, MEDIAN(age) FROM people GROUP BY region"}
    message = r"'medians' gets ε = 0.05 of 0.1, and needs at least 0.1: plan the report with epsilon = 0.2 or more"
    with pytest.raises(InvalidInput, match=message):
        party.plan(grouped, "0.1")
    assert party.plan(grouped, "0.2").affordable
    with pytest.raises(InvalidInput, match=r"epsilon = 0.4 or more"):
        party.plan(grouped, "0.001", split={"counts": 3})
    assert party.plan(grouped, "0.4", split={"counts": 3}).affordable


def test_squares_add_up_with_concentrated_accounting() -> None:
    budget = {"epsilon": 5, "delta": "1e-6"}
    with open_party(budget=budget, accounting="concentrated", protection="differential") as party:
        plan = party.plan(QUESTIONS, "0.6")
        assert Fraction("0.35999") < sum(question.epsilon**2 for question in plan.questions) <= Fraction("0.36")
        assert plan.totals[0].rho <= Fraction("0.18")
        report = plan.ask()
        assert report.complete
        left = party.ledger.balance("people").rho
        assert left is not None
        assert (report.totals[0].rho, report.totals[0].remaining_rho_after) == (left.spent, left.remaining)
        assert plan.ask().totals[0].rho == 0
        beyond = party.plan({f"{i}": f"SELECT COUNT(*) FROM people WHERE age > {i}" for i in range(8)}, "0.9")
        assert all(question.quote.affordable for question in beyond.questions)
        assert "ρ" in str(beyond.shortage)
        with pytest.raises(InvalidInput, match=r"epsilon = 0\.0708 or more"):
            party.plan({"a": ADULTS, "b": QUESTIONS["regions"]}, "0.01")
        assert party.plan({"a": ADULTS, "b": QUESTIONS["regions"]}, "0.0708").affordable
        whole = party.plan(QUESTIONS, 4)  # more than ρ allows: only pure accounting could pay, and there ε adds up
        assert sum(question.epsilon for question in whole.questions) == 4


@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        ({}, {"epsilon": 1}, "questions by name"),
        ([ADULTS], {"epsilon": 1}, "questions by name"),
        ({"": ADULTS}, {"epsilon": 1}, "printable text"),
        ({"a\nb": ADULTS}, {"epsilon": 1}, "printable text"),
        ({"a": ADULTS}, {"epsilon": 0}, "greater than 0"),
        ({"a": ADULTS}, {}, "either epsilon"),
        ({"a": ADULTS}, {"epsilon": 1, "within": 5}, "either epsilon"),
        ({"a": ADULTS}, {"epsilon": 1, "split": {"b": 1}}, "'b', which is no question here: a"),
        ({"a": ADULTS}, {"epsilon": 1, "split": {"a": 0}}, "greater than 0"),
        ({"a": ADULTS}, {"epsilon": 1, "split": [1]}, "by the names of questions"),
    ],
)
def test_what_is_no_report_is_refused(questions: Any, options: Any, message: str, party: TrustedParty) -> None:
    with pytest.raises(InvalidInput, match=message):
        party.plan(questions, **options)


def test_a_refusal_names_the_question(party: TrustedParty) -> None:
    with pytest.raises(QuestionRefused, match=r"question 'bad': the column 'height' is not declared") as refused:
        party.plan({**QUESTIONS, "bad": "SELECT MEDIAN(height) FROM people"}, 3)
    assert refused.value.position == (1, 15)
    unbounded = open_party(columns={"age": {"type": "integer"}})
    with unbounded, pytest.raises(Unanswerable, match="question 'top': MAX"):
        unbounded.plan({"top": "SELECT MAX(age) FROM people"}, 3)


def test_a_risk_that_several_columns_have_is_told_once() -> None:
    with open_party(columns={"age": {"type": "integer"}, "twice": {"expression": "age * 2"}}) as unbounded:
        (planned,) = unbounded.plan({"sums": "SELECT SUM(age) AS a, SUM(twice) AS b FROM people"}, 3).questions
    assert planned.risks.startswith("a, b: NULL or far off where fewer")
    assert planned.risks.count("far off") == 1


def test_plans_and_reports_print_themselves(party: TrustedParty) -> None:
    plan = party.plan({**QUESTIONS, "<b>": ADULTS}, 4)
    lines = str(plan).splitlines()
    assert lines[0].split() == ["question", "data", "set", "ε", "to", "pay", "margin", "(noise,", "95", "%)", "risk"]
    assert lines[1].split() == ["adults", "people", "1", "ε", "=", "1", "±", "3"]
    assert lines[-1] == "people: to pay ε = 3; ε = 5 left, ε = 2 after"
    assert "&lt;b&gt;" in plan._repr_html_()
    content = json.loads(json.dumps(plan.to_dict()))
    assert [question["same_as"] for question in content["questions"]] == [None, None, None, "adults"]
    expected = {"dataset": "people", "cost": "3", "remaining_before": "5", "remaining_after": "2", "shortage": None}
    assert expected.items() <= content["totals"][0].items()
    report = plan.ask()
    assert str(report).startswith("adults\nCOUNT(*) = ")
    assert str(report).endswith("people: charged ε = 3; ε = 2 left")
    assert "&lt;b&gt;" in report._repr_html_()
    told = json.loads(json.dumps(report.to_dict()))
    assert (list(told["answers"]), told["totals"][0]["cost"], told["complete"]) == ([*QUESTIONS, "<b>"], "3", True)


# Asking.


def test_a_failure_is_kept_and_the_rest_is_asked(party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = party.plan(QUESTIONS, 3)
    steps: list[tuple[str, float]] = []
    with monkeypatch.context() as patched:
        original = party.compute

        def fail_once(charged: Any, *rest: Any) -> Any:
            made = original(charged, *rest)
            return replace(made, table=None, error=OSError()) if "MEDIAN" in charged.plan.aggregates[0].label else made

        patched.setattr(party, "compute", fail_once)
        report = plan.ask(lambda name, share: steps.append((name, share)))
    assert steps == [("adults", 0), ("ages", pytest.approx(1 / 3)), ("regions", pytest.approx(2 / 3))]
    assert (list(report.answers), list(report.failures)) == (["adults", "regions"], ["ages"])
    assert report.failures["ages"] == str(AnswerFailed())
    assert not report.complete
    assert "ages\nnot answered: the question was charged" in str(report)
    assert "not answered" in report._repr_html_()
    assert report.charged == {"people": 3}
    assert [question.price for question in plan.quote_again().questions][1] == "free: paid before"
    completed = plan.ask()
    assert completed.complete
    assert completed.charged == {"people": 0}
    assert spent(party) == 3


def test_budget_that_others_spend_meanwhile_is_a_failure(party: TrustedParty) -> None:
    plan = party.plan(QUESTIONS, 3)

    def spend(name: str, share: float) -> None:
        if name == "ages":
            party.query("SELECT AVG(age) FROM people", "3.5")

    report = plan.ask(spend)
    assert list(report.answers) == ["adults"]
    assert report.charged == {"people": 1}
    assert spent(party) == Fraction(9, 2)


class Crash(BaseException):
    """The process ends here: nothing may catch it."""


def crash_at(step: int, party: TrustedParty, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Let the party die at its step of this number; the steps are before and after everything that is durable."""
    taken = 0

    def count(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            nonlocal taken
            taken += 1
            if taken == step:
                raise Crash
            result = call(*given, **named)
            taken += 1
            if taken == step:
                raise Crash
            return result

        return counted

    backend = party.datasets["people"].backend
    for owner, name in ((party.ledger, "reserve"), (party.ledger, "release"), (backend, "open_snapshot")):
        monkeypatch.setattr(owner, name, count(getattr(owner, name)))
    return lambda: taken


def run_until_crash(step: int, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, dict[str, Any]]:
    """Plan and ask with a crash at this step; whether it came to that, and what was shown before it."""
    shown: dict[str, Any] = {}
    with monkeypatch.context() as patched, open_party(ledger) as party:
        plan = party.plan(QUESTIONS, 3)
        crash_at(step, party, patched)
        query = plan.asker.query

        def show(sql: str, epsilon: Fraction) -> Any:
            answer = query(sql, epsilon)
            shown[sql] = answer.rows
            return answer

        try:
            replace(plan, asker=replace(plan.asker, query=show)).ask()
        except Crash:
            return True, shown
    return False, shown


def check_resumption(step: int, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Crash at this step and ask again: all is answered, charged once, stored once, and what was shown stays."""
    crashed, shown = run_until_crash(step, ledger, monkeypatch)
    with open_party(ledger) as party:
        before = spent(party)
        plan = party.plan(QUESTIONS, 3)
        assert shares(plan) == {"adults": "1", "ages": "1", "regions": "1"}
        assert plan.totals[0].cost == 3 - before
        report = plan.ask()
        assert report.complete
        assert report.charged == {"people": 3 - before}
        assert spent(party) == 3
        stored = party.ledger.answers("people")
        assert [answer.epsilon for answer in stored] == [1, 1, 1]
        assert len({answer.key for answer in stored}) == 3
        for sql, rows in shown.items():
            assert next(report[name].rows for name in QUESTIONS if QUESTIONS[name] == sql) == rows
        again = plan.ask()
        assert [again[name].rows for name in QUESTIONS] == [report[name].rows for name in QUESTIONS]
        assert again.charged == {"people": 0}
        assert party.ledger.verify().ok
    return crashed


@pytest.mark.slow
def test_a_crash_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = 1
    while check_resumption(step, tmp_path / f"{step}.db", monkeypatch):
        step += 1
    assert step == 3 * 6 + 1  # three questions, each of three calls, before and after


def test_charging_again_on_resumption_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: questions are asked with an ε that differs from run to run, so that nothing is found again."""
    original, started = TrustedParty.plan, 0

    def plan(party: TrustedParty, *given: Any, **named: Any) -> ReportPlan:
        nonlocal started
        made, started = original(party, *given, **named), started + 1
        late = started > 1
        query = made.asker.query
        return replace(made, asker=replace(made.asker, query=lambda sql, e: query(sql, e + Fraction(late, 100))))

    monkeypatch.setattr(TrustedParty, "plan", plan)
    with pytest.raises(AssertionError):
        check_resumption(7, tmp_path / "ledger.db", monkeypatch)


def test_shares_that_depend_on_what_is_stored_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: ε is divided among those that are not stored yet."""
    original = module.plan_report

    def divide_among_missing(asker: Any, questions: Any, epsilon: Any, split: Any = None) -> ReportPlan:
        plan = original(asker, questions, epsilon, split)
        missing = [question for question in plan.questions if not question.quote.stored]
        epsilons = [q.epsilon if q.quote.stored else Fraction(epsilon, len(missing)) for q in plan.questions]
        return module.quote_report(asker, questions, epsilons)

    monkeypatch.setattr("idios.party.plan_report", divide_among_missing)
    with pytest.raises(AssertionError):
        check_resumption(7, tmp_path / "ledger.db", monkeypatch)
