"""The client: what is tried again, what is refused, and what is no Idios server."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from email.utils import formatdate
from fractions import Fraction
from typing import Any

import httpx2
import pytest

from idios.client import ServerError, connect, transport
from idios.client.transport import PATIENCE
from idios.errors import (
    AnswerFailed,
    BudgetExceeded,
    IdiosError,
    InvalidInput,
    KeyReused,
    NotPermitted,
    QuestionRefused,
    Unanswerable,
)
from tests.client.scripted_server import ANSWER, QUOTE, SQL, TOKEN, Script, failure, ok


def test_a_question_and_its_answer() -> None:
    server = Script(ok(ANSWER.to_dict()))
    party = server.party()
    answer = party.query(SQL, 0.5, split={"MEDIAN(income)": 2}, wait=10)
    assert answer == ANSWER
    assert answer.value == 29436.5
    asked = server.requests[1]
    assert asked.url == "https://idios.example.org/v1/query"
    assert json.loads(asked.content) == {
        "sql": SQL,
        "epsilon": "0.5",
        "split": {"MEDIAN(income)": "2"},
        "wait": 10,
    }
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert len(asked.headers["idempotency-key"]) == 32
    assert party.me.name == "ana"
    assert repr(party) == "<RemoteParty https://idios.example.org as ana (analyst)>"


def test_every_question_has_a_key_of_its_own() -> None:
    server = Script(ok(ANSWER.to_dict()), ok(ANSWER.to_dict()))
    party = server.party()
    party.query(SQL, 1)
    party.query(SQL, 1)
    first, second = (request.headers["idempotency-key"] for request in server.requests[1:])
    assert first != second


def test_quotes_and_sandbox_carry_no_key() -> None:
    server = Script(ok(QUOTE), ok({**ANSWER.to_dict(), "sandbox": True}))
    party = server.party()
    assert party.quote(SQL, "1/3").cost == Fraction(1, 3)
    assert party.sandbox(SQL, 1).sandbox
    assert server.paths == ["POST /v1/quote", "POST /v1/sandbox"]
    assert not any("idempotency-key" in request.headers for request in server.requests)


def test_an_answer_lost_on_the_way_is_asked_for_with_the_same_key() -> None:
    charged: set[str] = set()

    def works_then_breaks(request: httpx2.Request) -> httpx2.Response:
        charged.add(request.headers["idempotency-key"])
        raise httpx2.ReadError("connection reset", request=request)

    def again(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["idempotency-key"] in charged
        return ok(ANSWER.to_dict())

    server = Script(works_then_breaks, httpx2.RemoteProtocolError("gone"), httpx2.ConnectError("refused"), again)
    assert server.party().query(SQL, 0.5) == ANSWER
    assert len(charged) == 1
    assert server.pauses == [0.375, 0.75, 1.5]
    assert len({request.content for request in server.requests[1:]}) == 1


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_passing_statuses_are_tried_again_with_the_same_key(status: int) -> None:
    server = Script(
        failure(status, "busy", "too much to do"), httpx2.Response(status, html="<h1>no</h1>"), ok(ANSWER.to_dict())
    )
    assert server.party().query(SQL, 0.5) == ANSWER
    assert len({request.headers["idempotency-key"] for request in server.requests[1:]}) == 1
    assert server.pauses == [0.375, 0.75]


def test_retry_after_is_honoured() -> None:
    slow = failure(429, "too_many_requests", "600 requests a minute are allowed")
    slow.headers["retry-after"] = "7"
    dated = httpx2.Response(503, headers={"retry-after": formatdate(usegmt=True)})
    odd = httpx2.Response(503, headers={"retry-after": "soon"})
    server = Script(slow, dated, odd, ok({"datasets": []}))
    assert len(server.party().datasets()) == 0
    assert server.pauses == [7.5, 0.5, 1.5]


def test_retry_after_beyond_patience_is_not_slept_through() -> None:
    slow = failure(429, "too_many_requests", "600 requests a minute are allowed", fix="ask less often")
    slow.headers["retry-after"] = "3600"
    server = Script(slow)
    party = server.party()
    with pytest.raises(ServerError, match="600 requests a minute are allowed; ask less often") as caught:
        party.query(SQL, 1)
    assert "not to be called again for 3600 seconds" in caught.value.__notes__[-1]
    assert server.pauses == []


def test_patience_ends() -> None:
    server = Script(*[httpx2.Response(503) for _ in range(100)])
    party = server.party()
    with pytest.raises(ServerError, match=r"busy or being restarted \(status 503\)"):
        party.query(SQL, 1)
    assert PATIENCE - 20 < sum(server.pauses) < PATIENCE
    assert max(server.pauses) == 15  # the longest pause, by a chance of one half


def test_the_time_limit_of_the_caller_holds() -> None:
    server = Script(*[httpx2.ReadTimeout("slow") for _ in range(100)])
    party = server.party(timeout=3)
    with pytest.raises(ServerError, match=r"did not answer in time.*costs nothing more"):
        party.query(SQL, 1)
    assert sum(server.pauses) < 3


REFUSALS: list[tuple[int, str, type[IdiosError]]] = [
    (422, "question_refused", QuestionRefused),
    (422, "unanswerable", Unanswerable),
    (409, "budget_exceeded", BudgetExceeded),
    (409, "key_reused", KeyReused),
    (401, "not_authenticated", NotPermitted),
    (403, "not_permitted", NotPermitted),
    (400, "invalid_request", InvalidInput),
    (422, "invalid_request", InvalidInput),
    (413, "too_large", InvalidInput),
    (500, "answer_failed", AnswerFailed),
    (500, "internal", ServerError),
    (404, "not_found", ServerError),
    (405, "method_not_allowed", ServerError),
]


@pytest.mark.parametrize(("status", "code", "raised"), REFUSALS)
def test_refusals_are_raised_as_here_and_never_tried_again(status: int, code: str, raised: type[IdiosError]) -> None:
    server = Script(failure(status, code, "said by the server", fix="do this"))
    party = server.party()
    with pytest.raises(raised) as caught:
        party.query(SQL, 1)
    assert type(caught.value) is raised
    assert len(server.requests) == 2
    assert "request r1" in caught.value.__notes__
    if raised is AnswerFailed:
        assert str(caught.value) == str(AnswerFailed())
    else:
        assert "said by the server" in str(caught.value)
    assert "do this" in [str(caught.value).rpartition("; ")[2], *caught.value.__notes__]


def test_a_refused_question_shows_where() -> None:
    where = {"in": "sql", "name": None, "line": 2, "column": 6}
    server = Script(failure(422, "question_refused", "there is no table people", where=where))
    party = server.party()
    with pytest.raises(QuestionRefused) as caught:
        party.quote(SQL, 1)
    assert caught.value.position == (2, 6)
    assert str(caught.value) == str(QuestionRefused("there is no table people", SQL, SQL.index("people")))
    assert str(caught.value).endswith("FROM people\n       ^")


@pytest.mark.parametrize("where", [None, {}, {"line": 9, "column": 1}, {"line": 1, "column": 99}, {"line": "1"}, 7])
def test_a_refused_question_without_a_place(where: Any) -> None:
    server = Script(failure(422, "question_refused", "nothing is selected", where=where))
    party = server.party()
    with pytest.raises(QuestionRefused) as caught:
        party.quote(SQL, 1)
    assert str(caught.value) == "nothing is selected"


def test_the_place_is_not_said_twice() -> None:
    local = QuestionRefused("there is no table people", SQL, SQL.index("people"))
    server = Script(failure(422, "question_refused", str(local), where={"line": 2, "column": 6}))
    party = server.party()
    with pytest.raises(QuestionRefused) as caught:
        party.quote(SQL, 1)
    assert str(caught.value) == str(local)


def test_an_exceeded_budget_tells_what_is_left() -> None:
    server = Script(failure(409, "budget_exceeded", "ε = 1 asked, 1/3 left", remaining="1/3", quantity="delta"))
    party = server.party()
    with pytest.raises(BudgetExceeded, match="1/3 left") as caught:
        party.query(SQL, 1)
    assert caught.value.remaining == Fraction(1, 3)
    assert caught.value.requested == 1
    assert caught.value.quantity == "delta"


@pytest.mark.parametrize(
    "reply",
    [
        httpx2.Response(200, html="<html>Log in</html>"),
        httpx2.Response(200, content=b'{"half":'),
        httpx2.Response(200, content=b"\xff\xfe"),
        httpx2.Response(200, content=b"[" * 100_000),
        httpx2.Response(200, json=[1]),
        httpx2.Response(200, json={"other": "service"}),
        httpx2.Response(204),
        httpx2.Response(404, html="<h1>Not found</h1>"),
        httpx2.Response(400, json={"detail": "bad"}),
        httpx2.Response(500, json={"error": "bad"}),
    ],
)
def test_what_is_no_idios_server_is_said_to_be_none(reply: httpx2.Response) -> None:
    server = Script(reply)
    party = server.party()
    with pytest.raises(ServerError, match="check that the address is that of an Idios server"):
        party.query(SQL, 1)
    assert len(server.requests) == 2


def test_a_server_never_reached_is_not_waited_for() -> None:
    server = Script()
    server.steps = [httpx2.ConnectError("[Errno 111] Connection refused")]
    with pytest.raises(ServerError, match=r"cannot be reached \(\[Errno 111\] Connection refused\); check the address"):
        server.party()
    assert server.pauses == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sql": 7}, "must be a text"),
        ({"epsilon": 0}, "epsilon must be greater than 0"),
        ({"epsilon": "much"}, "epsilon must be a finite number"),
        ({"split": [1, 2]}, "split must name the statistics"),
        ({"split": {"COUNT(*)": -1}}, "a part of split must be greater than 0"),
        ({"wait": 61}, "wait must be between 0 and 60"),
        ({"wait": -1}, "wait must be between 0 and 60"),
    ],
)
def test_what_cannot_be_asked_is_not_sent(arguments: dict[str, Any], message: str) -> None:
    server = Script()
    party = server.party()
    with pytest.raises(InvalidInput, match=message):
        party.query(**{"sql": SQL, "epsilon": 1, **arguments})
    assert server.paths == []


def test_a_closed_connection_says_so() -> None:
    with Script().party() as party:
        pass
    with pytest.raises(ServerError, match=r"closed; call idios\.connect again"):
        party.budget()


def test_a_packed_reply_is_not_unpacked() -> None:
    packed = httpx2.Response(200, content=gzip.compress(b"0" * 10**6), headers={"Content-Encoding": "gzip"})
    with pytest.raises(ServerError, match="compressed reply"):
        Script(packed).party().budget()
    server = Script(ok({"budgets": []}))
    server.party().budget()
    assert server.requests[1].headers["accept-encoding"] == "identity"


def test_a_reply_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LONGEST_REPLY", 10_000)
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 10**6:
            sent += 1000
            yield b" " * 1000

    with pytest.raises(ServerError, match="longer than 10,000 bytes"):
        Script(httpx2.Response(200, content=endless())).party().budget()
    assert sent < 20_000


def test_a_reply_that_drips_is_left_at_the_deadline() -> None:
    server = Script()

    def dripping() -> Iterator[bytes]:
        for _ in range(1000):
            server.now += 50
            yield b" "

    server.steps.append(httpx2.Response(200, content=dripping()))
    party = server.party(timeout=900)
    with pytest.raises(ServerError, match="did not answer in time"):
        party.budget()
    assert server.now <= 1000 + 900 + 50


def test_headers_that_drip_are_left_at_the_deadline() -> None:
    """Each byte comes in time; without a limit on the whole the call would end when the server does."""
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not over.wait(0.05):
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        break

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        ended = threading.Timer(20, over.set)
        ended.start()
        try:
            with pytest.raises(ServerError, match="did not answer in time"):
                connect(f"http://127.0.0.1:{listener.getsockname()[1]}", TOKEN, timeout=0.5)
            assert not over.is_set(), "the call ended by itself"
        finally:
            ended.cancel()
            over.set()
    thread.join(5)
