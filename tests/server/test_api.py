"""The HTTP interface as an analyst and a controller use it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.server.office import BY_REGION, MEDIAN, Office, break_after_issuing


def test_who_am_i(office: Office) -> None:
    assert office.call("GET", "/v1/me").json() == {"name": "ada", "role": "analyst"}
    assert office.call("GET", "/v1/me", "grace").json() == {"name": "grace", "role": "controller"}


def test_the_declared_schema_and_what_can_be_asked(office: Office) -> None:
    (people,) = office.call("GET", "/v1/datasets").json()["datasets"]
    assert people["name"] == "people"
    assert people["level"] == "differential"
    columns = {column["name"]: column for column in people["columns"]}
    assert columns["age"]["bounds"] == ["0", "120"]
    assert columns["region"]["values"] == ["north", "south"]
    offers = {offer["name"]: offer for offer in columns["income"]["functions"]}
    assert offers["MEDIAN"] == {"name": "MEDIAN", "call": "MEDIAN(income)", "answerable": True, "why": None}
    assert offers["SUM"]["answerable"]
    assert not offers["MAX"]["answerable"]
    assert "bound" in offers["MAX"]["why"]
    assert {name["name"] for name in office.call("GET", "/v1/datasets", "grace").json()["datasets"]} == {
        "people",
        "patients",
    }
    assert office.call("GET", "/v1/datasets", "bob").json() == {"datasets": []}


def test_every_offer_is_answered_as_it_is_written(office: Office) -> None:
    """A call that is shown as answerable can be pasted into a question, and one that is not is refused."""
    for dataset in office.call("GET", "/v1/datasets", "grace").json()["datasets"]:
        for column in dataset["columns"]:
            assert column["functions"]
            for offer in column["functions"]:
                sql = f"SELECT {offer['call']} FROM {dataset['name']}"
                quoted = office.call("POST", "/v1/quote", "grace", json={"sql": sql, "epsilon": "1"})
                assert quoted.status_code == (200 if offer["answerable"] else 422), offer


def test_quote_then_query_then_the_same_again(office: Office) -> None:
    body = {"sql": MEDIAN, "epsilon": "0.5"}
    quoted = office.call("POST", "/v1/quote", json=body).json()
    assert (quoted["cost"], quoted["remaining_before"], quoted["remaining_after"]) == ("0.5", "4", "3.5")
    assert office.call("GET", "/v1/budget").json()["budgets"][0]["epsilon"]["spent"] == "0"
    first = office.ask()
    assert first.status_code == 200
    answer = first.json()
    assert answer["remaining"] == "3.5"
    assert not answer["stored"]
    assert answer["guarantee"]["notation"] == "0.5-DP"
    again = office.ask("select median(INCOME) as m from people").json()
    assert again["stored"]
    assert list(again["rows"][0].values()) == list(answer["rows"][0].values())
    assert again["remaining"] == "3.5"
    assert office.call("GET", "/v1/budget").json()["budgets"][0]["epsilon"] == {
        "budget": "4",
        "spent": "0.5",
        "remaining": "3.5",
    }


def test_without_a_cap_everything_says_what_is_left_of_the_data_set(office: Office) -> None:
    granted = office.call("PUT", "/v1/analysts/ada/grants/people", "grace", json={})
    assert granted.json()["epsilon"] == {"budget": None, "spent": "0", "remaining": "10"}
    office.ask(epsilon="3", who="grace")
    quoted = office.call("POST", "/v1/quote", json={"sql": MEDIAN, "epsilon": "0.5"}).json()
    assert (quoted["remaining_before"], quoted["remaining_after"]) == ("7", "6.5")
    assert office.ask().json()["remaining"] == "6.5"
    (own,) = office.call("GET", "/v1/budget").json()["budgets"]
    assert own["epsilon"] == {"budget": None, "spent": "0.5", "remaining": "6.5"}
    whole = office.call("GET", "/v1/budget", "grace").json()["budgets"][0]
    assert own["delta"]["remaining"] == whole["delta"]["remaining"] == "0"
    assert office.call("GET", "/v1/analysts", "grace").json()["grants"] == [own]


def test_a_balance_says_what_it_promises(office: Office) -> None:
    for who in ("ada", "grace"):
        assert office.call("GET", "/v1/budget", who).json()["budgets"][0]["promise"] == "differential, replace"
    granted = office.call("PUT", "/v1/analysts/ada/grants/people", "grace", json={})
    assert granted.json()["promise"] == "differential, replace"


def test_nothing_is_answered_with_a_promise_that_was_replaced(office: Office) -> None:
    """Another process of the ledger was started with another declaration, before anything was asked."""
    (declared,) = (each for each in office.ledger.datasets() if each.dataset == "people")
    office.ledger.declare(replace(declared, promise=declared.promise._replace(protection="group of 5")))
    for path in ("query", "quote"):
        refused = office.call("POST", f"/v1/{path}", json={"sql": MEDIAN, "epsilon": "0.5"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "data_changed")
        assert "declared with another promise" in refused.json()["error"]["message"]
    assert office.call("GET", "/readyz").json()["error"]["code"] == "data_changed"
    assert office.ledger.balance("people").epsilon.spent == 0
    office.ledger.declare(declared)
    assert office.call("GET", "/readyz").status_code == 200
    assert office.ask().status_code == 200


def test_groups(office: Office) -> None:
    answer = office.ask(BY_REGION).json()
    assert [row["region"] for row in answer["rows"]] == ["north", "south"]
    assert answer["margin"]["COUNT(*)"] is not None


def test_history_is_the_callers_own(office: Office) -> None:
    office.ask(MEDIAN)
    office.ask(BY_REGION)
    office.ask("SELECT MEDIAN(age) FROM people", who="grace")
    own = office.call("GET", "/v1/answers?limit=1").json()
    assert own["answers"][0]["statistics"] == ["COUNT(*)"]
    rest = office.call("GET", f"/v1/answers?limit=1&before={own['next']}").json()
    assert rest["answers"][0]["statistics"] == ["MEDIAN(income)"]
    assert office.call("GET", f"/v1/answers?limit=1&before={rest['next']}").json() == {"answers": [], "next": None}
    assert len(office.call("GET", "/v1/answers", "grace").json()["answers"]) == 3
    assert office.call("GET", "/v1/answers", "bob").json()["answers"] == []


def test_the_sandbox_is_free(office: Office) -> None:
    body = {"sql": MEDIAN, "epsilon": "100"}
    tried = office.call("POST", "/v1/sandbox", json=body)
    assert tried.status_code == 200
    assert tried.json()["sandbox"] is True
    assert office.call("GET", "/v1/budget").json()["budgets"][0]["epsilon"]["spent"] == "0"
    assert office.ledger.answers() == []


def test_the_controller_looks_behind_a_question(office: Office) -> None:
    body = {"sql": MEDIAN, "epsilon": "0.5"}
    (cell,) = office.call("POST", "/v1/inspect", "grace", json=body).json()["cells"]
    assert Fraction(cell["value"]) > 0
    rows = office.call("POST", "/v1/compare", "grace", json=body).json()["rows"]
    assert {row["level"] for row in rows} >= {"individual", "differential"}
    kinds = [entry["kind"] for entry in office.call("GET", "/v1/ledger", "grace").json()["entries"]]
    assert kinds[:2] == ["inspected", "inspected"]


def test_the_ledger_is_searched_and_verified(office: Office) -> None:
    office.ask()
    found = office.call("GET", "/v1/ledger?kind=reserved&analyst=ada", "grace").json()
    assert [entry["content"]["analyst"] for entry in found["entries"]] == ["ada"]
    assert office.call("GET", "/v1/ledger?text=PATIENTS", "grace").json()["entries"]
    verified = office.call("POST", "/v1/ledger/verify", "grace", json={"anchor": found["head"]}).json()
    assert verified["ok"]
    cut = f"{int(found['head'].partition(':')[0]) + 1}:{'0' * 64}"
    assert not office.call("POST", "/v1/ledger/verify", "grace", json={"anchor": cut}).json()["ok"]


def test_letting_an_analyst_in_and_out(office: Office) -> None:
    assert office.call("POST", "/v1/analysts", "grace", json={"name": "eve"}).status_code == 201
    granted = office.call("PUT", "/v1/analysts/eve/grants/people", "grace", json={"epsilon": "0.5"})
    assert granted.json()["epsilon"]["remaining"] == "0.5"
    issued = office.call("POST", "/v1/tokens", "grace", json={"name": "eve", "days": 1}).json()
    assert office.ask(who=issued["token"]).status_code == 200
    shown = office.call("GET", "/v1/analysts", "grace")
    assert issued["token"] not in shown.text
    assert issued["name"] in shown.text
    assert office.call("DELETE", "/v1/analysts/eve/grants/people", "grace").status_code == 200
    assert office.call("GET", "/v1/datasets", issued["token"]).json() == {"datasets": []}
    assert office.call("DELETE", f"/v1/tokens/{issued['name']}", "grace").status_code == 200
    assert office.call("GET", "/v1/me", issued["token"]).status_code == 401


def test_a_secret_is_sent_though_the_ledger_fails_just_then(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as faults:
        break_after_issuing(office, faults)
        reply = office.call("POST", "/v1/tokens", "grace", json={"name": "ada", "days": 1})
    assert reply.status_code == 201
    issued = reply.json()
    assert office.ledger.authenticate(issued["token"]).token == issued["name"]


def test_raising_and_retiring(office: Office) -> None:
    raised = office.call("POST", "/v1/datasets/people/raise", "grace", json={"epsilon": "12"}).json()
    assert raised["epsilon"]["budget"] == "12"
    assert office.call("POST", "/v1/datasets/people/raise", "grace", json={"epsilon": "11"}).status_code == 422
    assert office.call("POST", "/v1/datasets/people/retire", "grace").status_code == 200
    refused = office.ask()
    assert refused.status_code == 403
    assert "retired" in refused.json()["error"]["message"]
    kinds = [entry["kind"] for entry in office.call("GET", "/v1/ledger?limit=2", "grace").json()["entries"]]
    assert kinds == ["retired", "raised"]


def test_health_needs_no_token(office: Office) -> None:
    assert office.call("GET", "/healthz", None).json() == {"status": "ok"}
    assert office.call("GET", "/readyz", None).json() == {"status": "ready"}


def test_metrics_tell_nothing_of_the_data(office: Office) -> None:
    office.ask()
    office.ask()
    text = office.call("GET", "/metrics", "grace").text
    assert 'idios_spent{dataset="people",quantity="epsilon"} 0.5' in text
    assert 'idios_questions_total{dataset="people",outcome="charged"} 1.0' in text
    assert 'idios_questions_total{dataset="people",outcome="stored"} 1.0' in text
    assert 'route="/v1/query"' in text
    assert "seconds" not in text


def test_an_answer_is_told_in_the_callers_own_words(office: Office) -> None:
    office.ledger.grant("bob", "people")
    asked = {
        "ada": "SELECT COUNT(*) AS adas FROM people WHERE age > 40",
        "bob": "SELECT COUNT(*) FROM people WHERE age>=41",
    }
    answers = {who: office.ask(sql, who=who).json() for who, sql in asked.items()}
    assert {who: answer["sql"] for who, answer in answers.items()} == asked
    assert "adas" not in str(answers["bob"])
    listed = office.call("GET", "/v1/answers", "bob")
    assert "adas" not in listed.text
    for field in ("question", "version", "time", "sequence"):
        assert answers["ada"][field] == answers["bob"][field]
    assert answers["bob"]["question"] == "number of records where age is at least 41"
    [(low, high)] = answers["bob"]["intervals"][0].values()
    assert Fraction(low) <= Fraction(answers["bob"]["rows"][0]["COUNT(*)"]) <= Fraction(high)
