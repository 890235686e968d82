"""The client: questions that take longer than a request."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from idios.client import ServerError
from idios.errors import (
    AnswerFailed,
    BudgetExceeded,
    IdiosError,
)
from tests.client.scripted_server import ANSWER, RUNNING, SQL, TOKEN, Script, Step, failure, ok


def test_a_slow_question_is_followed_to_its_answer() -> None:
    told: list[tuple[str | None, float | None]] = []
    server = Script(
        ok(RUNNING, 202, retry_after="2"),
        ok({**RUNNING, "step": None, "share": None}, retry_after="0"),
        httpx2.ReadError("gone"),
        ok({**RUNNING, "step": "drawing", "share": 1}),
        ok({**RUNNING, "state": "answered", "answer": ANSWER.to_dict(), "error": None}),
    )
    answer = server.party().query(SQL, 0.5, wait=0, progress=lambda step, share: told.append((step, share)))
    assert answer == ANSWER
    assert told == [("counting", 0.25), (None, None), ("drawing", 1.0)]
    assert server.paths == ["POST /v1/query", *["GET /v1/questions/q%2F1"] * 4]
    assert server.pauses == [2, 0.1, 0.375, 1.125]
    assert {request.url.host for request in server.requests} == {"idios.example.org"}


@pytest.mark.parametrize(
    ("end", "raised"),
    [
        ({"state": "cancelled", "answer": None, "error": None}, AnswerFailed),
        ({"state": "failed", "error": {"code": "answer_failed", "message": "x"}}, AnswerFailed),
        ({"state": "failed", "error": {"error": {"code": "budget_exceeded", "message": "x"}}}, BudgetExceeded),
        ({"state": "answered", "answer": None}, ServerError),
        ({"state": "answered", "answer": {"rows": []}}, ServerError),
        ({"state": 7}, ServerError),
    ],
)
def test_a_slow_question_that_ends_without_an_answer(end: dict[str, Any], raised: type[IdiosError]) -> None:
    server = Script(ok(RUNNING, 202), ok({"id": "q", "elapsed": 1, **end}))
    party = server.party()
    with pytest.raises(raised):
        party.query(SQL, 1)
    assert server.steps == []


def test_a_question_the_server_lost_is_asked_again_with_the_same_key() -> None:
    lost = failure(404, "not_found", "there is no question q/1")
    server = Script(ok(RUNNING, 202), lost, ok(ANSWER.to_dict()))
    assert server.party().query(SQL, 0.5) == ANSWER
    assert server.paths == ["POST /v1/query", "GET /v1/questions/q%2F1", "POST /v1/query"]
    assert server.requests[1].headers["idempotency-key"] == server.requests[3].headers["idempotency-key"]
    assert server.requests[1].content == server.requests[3].content

    twice = Script(ok(RUNNING, 202), lost, ok(RUNNING, 202), lost)
    party = twice.party()
    with pytest.raises(ServerError, match="there is no question q/1"):
        party.query(SQL, 0.5)


def test_an_interrupt_stops_the_question() -> None:
    server = Script(ok(RUNNING, 202), KeyboardInterrupt(), ok({**RUNNING, "state": "cancelled"}))
    party = server.party()
    with pytest.raises(KeyboardInterrupt):
        party.query(SQL, 1)
    assert server.paths[-1] == "DELETE /v1/questions/q%2F1"
    assert server.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("fault", [httpx2.ConnectError("gone"), httpx2.Response(503), httpx2.Response(404)])
def test_an_interrupt_is_one_whatever_the_server_says(fault: Step) -> None:
    server = Script(ok(RUNNING, 202), fault)
    party = server.party()

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    party._transport.sleep = interrupted
    with pytest.raises(KeyboardInterrupt):
        party.query(SQL, 1)
    assert server.paths == ["POST /v1/query", "DELETE /v1/questions/q%2F1"]


def test_a_question_that_never_ends_is_left_in_time() -> None:
    server = Script(ok(RUNNING, 202), *[ok(RUNNING) for _ in range(100)])
    party = server.party(timeout=60)
    with pytest.raises(ServerError, match=r"still running.*ask the same question again"):
        party.query(SQL, 1)
    assert 50 < sum(server.pauses) < 60
    assert "DELETE" not in " ".join(server.paths)
