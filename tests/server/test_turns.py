"""What is shown is counted, bounded, and rendered in the caller's turn; what nobody reads is not piled up."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from idios import pipeline
from idios.client import transport
from idios.ledger.rules import STOPPED
from idios.server import messages, middleware, question_queue, work_pool
from idios.server.console import pages
from idios.server.http_errors import Refused
from idios.server.messages import read_page
from tests.console.console_office import csrf, sign_in
from tests.server.office import BY_REGION, MEDIAN, Office, open_office, write_office
from tests.waiting import SECONDS, until

QUESTION = {"sql": BY_REGION, "epsilon": "0.5"}


def test_stored_answers_are_rendered_one_at_a_time_and_callers_take_turns(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer, asked again 45 times at once, free: more than a process has threads for requests."""
    office.ledger.grant("bob", "people")
    for who, sql in (("ada", MEDIAN), ("bob", BY_REGION)):
        assert office.ask(sql, who=who).status_code == 200
    opened, rendered, at_once = threading.Event(), [], []
    original = pipeline.make_answer

    def held(plan: Any, *given: Any, **named: Any) -> Any:
        rendered.append(plan.sql)
        at_once.append(1)
        assert opened.wait(SECONDS)
        assert len(at_once) == 1
        at_once.pop()
        return original(plan, *given, **named)

    monkeypatch.setattr(pipeline, "make_answer", held)
    statuses: list[int] = []

    def ask(who: str, sql: str) -> None:
        statuses.append(office.ask(sql, who=who).status_code)

    threads = [threading.Thread(target=ask, args=("ada", MEDIAN)) for _ in range(45)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: rendered)
        until(lambda: office.service.questions.taken == 45)
        for path in ("/v1/budget", "/v1/me"):
            assert office.call("GET", path, "bob").status_code == 200
        threads.append(threading.Thread(target=ask, args=("bob", BY_REGION)))
        threads[-1].start()
        until(lambda: "analyst:bob" in office.service.turns._waiting)
        assert rendered == [MEDIAN]
    finally:
        opened.set()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 46
    assert rendered[1] == BY_REGION, "another caller's answer waits behind one, not behind all"
    assert office.service.questions.taken == 0


@pytest.fixture
def turns_of(office: Office, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Whose turn it was whenever a reply was made, or a page."""
    seen: list[str | None] = []
    for owner, name in ((messages, "Response"), (pages, "HTMLResponse")):
        original = getattr(owner, name)

        class Noted(original):  # type: ignore[misc,valid-type]
            def __init__(self, *given: Any, **options: Any) -> None:
                seen.append(next(iter(office.service.turns._running), None))
                super().__init__(*given, **options)

        monkeypatch.setattr(owner, name, Noted)
    return seen


def test_every_long_reply_is_made_in_the_callers_turn(office: Office, turns_of: list[str | None]) -> None:
    later = office.ask(MEDIAN, wait=0)
    href = later.headers["Location"]
    until(lambda: office.call("GET", href).json()["state"] == "answered")
    turns_of.clear()
    for method, path, body in (
        ("GET", "/v1/datasets", None),
        ("POST", "/v1/quote", QUESTION),
        ("POST", "/v1/query", QUESTION),
        ("POST", "/v1/query", QUESTION),
        ("GET", href, None),
        ("DELETE", href, None),
        ("GET", "/v1/answers", None),
    ):
        assert office.call(method, path, json=body).status_code == 200
    assert turns_of == ["analyst:ada"] * 7


def test_every_page_of_an_analyst_is_made_in_their_turn(office: Office, turns_of: list[str | None]) -> None:
    ada = sign_in(office, office.tokens.ada)
    href = office.ask(MEDIAN, wait=0).headers["Location"]
    until(lambda: office.call("GET", href).json()["state"] == "answered")
    form = {"csrf": csrf(ada.get("/console/ask").text), "once": "a", "sql": BY_REGION, "epsilon": "0.5"}
    turns_of.clear()
    for path in ("/console/datasets", "/console/history", "/console/ask", href.replace("/v1", "/console")):
        assert ada.get(path).status_code == 200
    for action, status in (("quote", 200), ("ask", 200), ("ask", 200), ("write", 200)):
        assert ada.post("/console/ask", data={**form, "action": action}).status_code == status
    assert ada.post("/console/ask", data={**form, "sql": "SELECT nothing", "action": "quote"}).status_code == 422
    assert turns_of == ["analyst:ada"] * 9


def test_an_answer_that_would_be_too_long_is_refused_before_it_is_charged(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 60_000
    monkeypatch.setattr(question_queue, "LONGEST_ANSWER", most)
    monkeypatch.setattr(question_queue, "GROUP", 0)
    named = ", ".join(f'COUNT(*) AS "{"name " * 20}{i}"' for i in range(5))
    long = f"SELECT BIN(age, 1), {named} FROM people GROUP BY BIN(age, 1)"
    for path in ("/v1/quote", "/v1/query", "/v1/sandbox"):
        refused = office.call("POST", path, json={"sql": long, "epsilon": "0.5"})
        assert refused.status_code == 422
        assert "sends at most 60,000" in refused.json()["error"]["message"]
    assert office.ledger.balance("people").epsilon.spent == 0
    fewer = office.ask(f"{long} ORDER BY 2 LIMIT 5", epsilon="0.5")
    assert fewer.status_code == 200
    assert len(fewer.content) <= most


def test_client_and_server_have_one_bound() -> None:
    assert transport.LONGEST_REPLY is question_queue.LONGEST_REPLY
    assert question_queue.LONGEST_ANSWER < transport.LONGEST_REPLY


def test_a_stored_answer_leaves_no_row_however_short_the_wait(office: Office) -> None:
    assert office.ask(MEDIAN).status_code == 200
    for _ in range(3):
        again = office.ask(MEDIAN, wait=0)
        assert again.status_code == 200
        assert again.json()["stored"]
    with office.ledger._database.reading() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM idios_running").scalar() == 0


def test_stopping_again_and_again_leaves_one_entry(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*given: Any, **_: Any) -> Any:
        given[2].cancel()
        given[2].check()

    monkeypatch.setattr(pipeline, "draw_table", stopped)
    for _ in range(4):
        assert office.ask(MEDIAN).status_code == 500
    failed = [entry for entry in office.ledger.entries() if entry.kind == "failed"]
    assert [STOPPED in entry.payload for entry in failed] == [True]


def test_what_is_not_read_is_counted_until_it_is(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "PART", 100)
    monkeypatch.setattr(work_pool, "MOST_UNREAD", 300)
    reading = asyncio.Event()

    async def leave_unread() -> list[bytes]:
        sent: list[bytes] = []

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                sent.append(message["body"])
                await reading.wait()

        await office.client.app(request, receive, send)
        return sent

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    request = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/v1/datasets",
        "raw_path": b"/v1/datasets",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "server": ("test", 80),
        "client": ("test", 1),
        "headers": [(b"authorization", f"Bearer {office.tokens.ada}".encode())],
    }

    async def run() -> list[bytes]:
        unread = asyncio.create_task(leave_unread())
        while not office.service.turns._unread:
            await asyncio.sleep(0.01)
        with pytest.raises(Refused):
            await office.service.turns.render("analyst:ada", lambda: None)
        assert await office.service.turns.render("analyst:bob", lambda: 7) == 7
        reading.set()
        return await unread

    sent = office.client.portal.call(run)  # type: ignore[union-attr]
    assert max(map(len, sent)) == 100
    assert not office.service.turns._unread
    assert b"".join(sent) == office.call("GET", "/v1/datasets").content


def test_a_page_is_one_long_item_too_long_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST", 1000)

    class Item:
        def __init__(self, sequence: int) -> None:
            self.sequence = sequence

    asked: list[int] = []

    def read(before: int | None, limit: int) -> list[Item]:
        asked.append(limit)
        first = 100 if before is None else before - 1
        return [Item(number) for number in range(first, first - limit, -1)]

    for size, count in ((900, 2), (10, 100), (5000, 1)):
        items, following = read_page(read, lambda _, size=size: size, None, 500)  # type: ignore[misc]
        assert len(items) == count
        assert following == 101 - count
        assert sum(size for _ in items) < 1000 + size + 1


def test_a_page_of_the_console_shows_the_first_rows(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idios.server.console.presentation.MOST_CELLS", 30)
    monkeypatch.setattr("idios.server.console.analyst_pages.MOST_LISTED", 5)
    ada = sign_in(office, office.tokens.ada)
    sql = "SELECT BIN(age, 1) AS age, COUNT(*) AS n FROM people GROUP BY BIN(age, 1)"
    form = {"csrf": csrf(ada.get("/console/ask").text), "once": "a", "sql": sql, "epsilon": "0.5", "action": "ask"}
    page = ada.post("/console/ask", data=form).text
    assert "The first 10 of 121 rows" in page
    assert page.count('<th scope="row">') == 10
    listed = ada.get("/console/history").text
    assert "121 rows, of which the first 5 are listed here" in listed
    assert listed.count('<th scope="row">') == 5
    assert len(office.ask(sql, epsilon="0.5").json()["rows"]) == 121


def test_a_busy_caller_is_told_what_went_wrong(tmp_path: Path) -> None:
    """The page that tells is not itself refused for what waits."""
    office = open_office(write_office(tmp_path), concurrent_questions=1, waiting_questions=0)
    with office.client:
        ada = sign_in(office, office.tokens.ada)
        token = csrf(ada.get("/console/ask").text)
        office.service.turns._taken["analyst:ada"] = 5
        form = {"csrf": token, "once": "a", "sql": MEDIAN, "epsilon": "0.5", "action": "quote"}
        page = ada.post("/console/ask", data=form)
        assert page.status_code == 503
        assert "oo many questions are waiting" in page.text
        assert MEDIAN in page.text, "what was written is there again"
        del office.service.turns._taken["analyst:ada"]
