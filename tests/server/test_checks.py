"""How far off answers are, over HTTP and with the client's types."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from idios.codec import from_json
from idios.data.engines.duckdb import DuckDbBackend
from idios.model import Answer, DatasetList, Distance, QuestionRequest, Quote
from idios.server.question_queue import decode_record, encode_record
from tests.server.office import MEDIAN, Office
from tests.server.test_question_queue import Gate
from tests.waiting import until


def quote(office: Office, **body: Any) -> Quote:
    reply = office.call("POST", "/v1/quote", json={"sql": MEDIAN, "epsilon": "1", **body})
    assert reply.status_code == 200, reply.text
    return from_json(Quote, reply.json(), "reply")


def test_an_answer_is_checked_as_declared_or_asked(office: Office) -> None:
    declared = from_json(Answer, office.ask(epsilon="1").json(), "reply")
    assert isinstance(declared.check_rows[0]["MEDIAN(income)"], Distance)
    for check in ("0.4", 0.25, "1/3"):
        assert office.ask(epsilon="1", check=check).json()["checks"]
    assert "checks" not in office.ask(epsilon="0.5", check=0).json()
    assert office.ledger.balance("people").epsilon.spent == Fraction("4.5") - Fraction(1, 2)


def test_a_quote_tells_what_is_checked_and_from_when_on(office: Office) -> None:
    assert quote(office).checks == {"MEDIAN(income)": Fraction(1, 5)}
    assert quote(office, check="0.5").split == {"MEDIAN(income)": Fraction(1, 2)}
    without = quote(office, epsilon="0.2")
    assert (without.checks, without.checked_from) == ({}, {"MEDIAN(income)": Fraction(1, 4)})
    assert quote(office, check="0").checked_from == {}
    assert ("check of MEDIAN(income)", "none below ε = 0.25") in without.check_pairs


def test_the_data_set_tells_its_share(office: Office) -> None:
    described = office.call("GET", "/v1/datasets", "grace").json()["datasets"]
    assert [one.get("check") for one in described] == ["0.2", None]
    people, patients = from_json(DatasetList, {"datasets": described}, "reply").datasets
    assert "share of ε for checks: 0.2" in str(people)
    assert "checks" not in str(patients)


def test_a_check_is_bought_later(office: Office) -> None:
    office.ask(epsilon="1", check="0")
    wanted = {"check": "0", "then_check": "0.5"}
    assert quote(office, **wanted).cost == Fraction(1, 2)
    reply = office.ask(epsilon="1", headers={"Idempotency-Key": "later"}, **wanted)
    answer = from_json(Answer, reply.json(), "reply")
    assert answer.exact_rows == from_json(Answer, office.ask(epsilon="1", check="0").json(), "reply").exact_rows
    assert answer.check_rows
    assert answer.epsilon == Fraction(1, 2)
    again = office.ask(epsilon="1", headers={"Idempotency-Key": "later"}, **wanted).json()
    assert again["stored"]
    assert again["checks"] == reply.json()["checks"]
    assert office.ledger.balance("people").epsilon.spent == Fraction(3, 2)
    assert quote(office, **wanted).stored
    other = office.ask(epsilon="1", headers={"Idempotency-Key": "later"}, then_check="0.6")
    assert other.json()["error"]["code"] == "key_reused"


def test_what_was_not_answered_to_the_caller_cannot_be_checked(office: Office) -> None:
    body = {"sql": MEDIAN, "epsilon": "1", "check": "0"}
    assert office.call("POST", "/v1/query", "grace", json=body).status_code == 200
    refused = office.ask(epsilon="1", then_check="0.5")
    assert refused.status_code == 422
    assert "there is no stored answer to this question" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "more", "told"),
    [
        ("query", {"check": "0.2", "then_check": "0.5"}, "leave out check"),
        ("query", {"check": "1"}, "at least 0 and below 1"),
        ("query", {"check": "-0.1"}, "at least 0 and below 1"),
        ("query", {"check": "much"}, "check"),
        ("query", {"check": "0.01"}, "the check of MEDIAN(income)"),
        ("query", {"then_check": "0.5"}, "there is no stored answer"),
        ("query", {"then_check": "2000"}, "then_check must be at most 1,000"),
        ("sandbox", {"then_check": "0.5"}, "then_check"),
    ],
)
def test_what_cannot_be_checked_is_refused_before_it_is_charged(
    office: Office, path: str, more: dict[str, Any], told: str
) -> None:
    reply = office.call("POST", f"/v1/{path}", json={"sql": MEDIAN, "epsilon": "1", **more})
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert told in error["message"] + str(error["where"])
    assert office.ledger.balance("people").epsilon.spent == 0


def test_the_sandbox_shows_checks(office: Office) -> None:
    body = {"sql": MEDIAN, "epsilon": "1"}
    assert office.call("POST", "/v1/sandbox", json=body).json()["checks"]
    assert "checks" not in office.call("POST", "/v1/sandbox", json={**body, "check": 0}).json()


def test_the_record_of_a_running_question_has_its_check() -> None:
    for asked in (
        QuestionRequest(MEDIAN, "1", {"MEDIAN(income)": "2"}, "0.3"),
        QuestionRequest(MEDIAN, "1", then_check="0.5"),
    ):
        assert decode_record(encode_record(asked, "key")) == (asked, "key")
    earlier = '{"asked": {"sql": "s", "epsilon": "1", "split": null}, "key": "k"}'
    assert decode_record(earlier) == (QuestionRequest("s", "1"), "k")


def test_a_check_that_outlasts_its_request_is_found(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.ask(epsilon="1", check="0")
    gate = Gate()
    monkeypatch.setattr(DuckDbBackend, "open_snapshot", gate.hold(DuckDbBackend.open_snapshot))
    try:
        running = office.ask(epsilon="1", then_check="0.5", wait=0)
        assert running.status_code == 202
    finally:
        gate.open.set()
    href = running.json()["href"]
    until(lambda: office.call("GET", href).json()["state"] == "answered")
    assert office.call("GET", href).json()["answer"]["checks"]


def test_the_document_describes_checks(office: Office) -> None:
    schemas = office.client.get("/openapi.json").json()["components"]["schemas"]
    assert {"check", "then_check"} <= schemas["QueryBody"]["properties"].keys()
    assert "then_check" not in schemas["SandboxBody"]["properties"]
    assert "check" not in schemas["QuestionBody"]["properties"]
    assert {"checks", "checked_from"} <= schemas["Quote"]["properties"].keys()
    assert "checks" not in schemas["Quote"]["required"] + schemas["Answer"]["required"]
    distance = schemas["Answer"]["properties"]["checks"]["items"]["additionalProperties"]
    assert set(distance["properties"]) == {"low", "high", "percentiles", "unit"}
