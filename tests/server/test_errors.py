"""One shape for every error: code, message, where, how to fix it."""

from __future__ import annotations

import pytest

from idios.data.engines.duckdb import DuckDbBackend
from idios.errors import SourceError
from idios.server.auth import COOKIE
from tests.server.office import MEDIAN, Office

SHAPE = {"code", "message", "where", "fix", "request"}


@pytest.mark.parametrize(
    ("method", "path", "who", "body", "status", "code"),
    [
        ("POST", "/v1/query", "ada", {"sql": "SELECT nothing", "epsilon": "1"}, 422, "question_refused"),
        ("POST", "/v1/query", "ada", {"sql": MEDIAN, "epsilon": "much"}, 422, "invalid_request"),
        ("POST", "/v1/query", "ada", {"sql": MEDIAN, "epsilon": "0.5", "wiat": 3}, 422, "invalid_request"),
        ("POST", "/v1/query", "ada", {"sql": MEDIAN}, 422, "invalid_request"),
        ("POST", "/v1/query", "ada", {"sql": "SELECT MAX(income) FROM people", "epsilon": "1"}, 422, "unanswerable"),
        ("POST", "/v1/query", "ada", {"sql": MEDIAN, "epsilon": "5"}, 409, "budget_exceeded"),
        ("POST", "/v1/query", None, {"sql": MEDIAN, "epsilon": "1"}, 401, "not_authenticated"),
        ("GET", "/v1/ledger", "ada", None, 403, "not_permitted"),
        ("GET", "/nowhere", None, None, 404, "not_found"),
        ("GET", "/v1/questions/" + "0" * 32, "ada", None, 404, "not_found"),
        ("PATCH", "/v1/query", "ada", None, 405, "no_such_method"),
        ("POST", "/v1/quote", "ada", {"sql": "x" * 70_000, "epsilon": "1"}, 413, "too_large"),
    ],
)
def test_every_error_has_one_shape(
    office: Office, method: str, path: str, who: str | None, body: object, status: int, code: str
) -> None:
    answered = office.call(method, path, who, json=body)
    assert answered.status_code == status, answered.text
    error = answered.json()["error"]
    assert error.keys() >= SHAPE
    assert error["code"] == code
    assert error["message"]
    assert error["fix"]
    assert error["request"] == answered.headers["X-Request-Id"]


def test_a_refused_question_says_where(office: Office) -> None:
    error = office.ask("SELECT MEDIAN(income)\nFROM people UNION b").json()["error"]
    assert error["where"] == {"in": "sql", "name": None, "line": 2, "column": 13}


def test_an_exceeded_budget_says_what_is_left(office: Office) -> None:
    error = office.ask(epsilon="5").json()["error"]
    assert (error["remaining"], error["requested"], error["quantity"]) == ("4", "5", "epsilon")


def test_what_nobody_foresaw_is_one_constant_message(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the income of Mr Smith is 3")

    monkeypatch.setattr(type(office.service.party), "price", broken)
    answered = office.call("POST", "/v1/quote", json={"sql": MEDIAN, "epsilon": "1"})
    assert answered.status_code == 500
    assert answered.json()["error"]["code"] == "internal_error"
    assert "Smith" not in answered.text


def test_every_response_has_the_headers(office: Office) -> None:
    for path in ("/healthz", "/v1/me", "/nowhere"):
        headers = office.call("GET", path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert "server" not in headers


@pytest.mark.parametrize("where", ["api", "console"])
def test_metrics_cannot_tell_a_question_that_failed_from_one_that_was_answered(
    office: Office, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def ask(sql: str) -> int:
        if where == "api":
            return int(office.ask(sql).status_code)
        cookie = office.service.auth.sessions.open(office.ledger.authenticate(office.tokens.ada).token)
        session = office.service.auth.sessions.read(cookie)
        assert session is not None
        office.client.cookies.set(COOKIE, cookie)
        form = {"sql": sql, "epsilon": "0.5", "action": "ask", "once": "1", "csrf": session.csrf}
        return int(office.client.post("/console/ask", data=form).status_code)

    def counted() -> list[str]:
        text = office.call("GET", "/metrics", "grace").text
        return [
            line
            for line in text.splitlines()
            if "idios_questions_total{" in line or '/ask"' in line or "/query" in line
        ]

    assert ask(MEDIAN) == 200
    first = counted()
    monkeypatch.setattr(DuckDbBackend, "open_snapshot", lambda *_: 1 / 0)
    assert ask("SELECT MEDIAN(age) FROM people") == 500
    assert len(first) == 2
    assert counted() == [line.replace(" 1.0", " 2.0") for line in first]


def test_an_inspection_of_data_that_cannot_be_read_says_that_nothing_was_charged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object) -> None:
        raise SourceError("the income of Mr Smith is 3")

    monkeypatch.setattr(DuckDbBackend, "open_snapshot", unreadable)
    answered = office.call("POST", "/v1/inspect", "grace", json={"sql": MEDIAN, "epsilon": "1"})
    assert (answered.status_code, answered.json()["error"]["code"]) == (500, "source_unreadable")
    assert "nothing was charged" in answered.text
    assert "Smith" not in answered.text
