"""The client: what a server tells, and once a real server end to end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import idios
from idios.client import ServerError
from tests.client.scripted_server import ANSWER, ME, QUOTE, SQL, TOKEN, Script, ok

OFFERED = {"name": "MEDIAN", "call": "MEDIAN(income)", "answerable": True, "why": None}


REFUSED = {"name": "MAX", "call": "MAX(income)", "answerable": False, "why": "needs an upper bound"}


def column(name: str, kind: str, **facts: Any) -> dict[str, Any]:
    usual = {"step": "1", "bounds": None, "nullable": True, "groups": False, "values": None, "functions": []}
    return {"name": name, "type": kind, **usual, **facts}


DATASET = {
    "name": "people",
    "version": "2026-11",
    "neighbours": "replace",
    "level": "group",
    "group": 5,
    "delta": "0",
    "analysts_trusted": True,
    "min_epsilon": "0.05",
    "max_groups": 1000,
    "release_seconds": None,
    "parameters": {"quantile": "0.05", "k": [1, 2], "trim": None},
    "columns": [
        column("age", "integer", bounds=["0", "120"], nullable=False, groups=True),
        column("income", "number", functions=[OFFERED, REFUSED]),
        column("low", "number", bounds=["0", None]),
        column("high", "number", bounds=[None, "5"]),
        column("region", "category", step=None, values=["<b>", "s"], groups=True),
    ],
}


def test_data_sets_print_as_tables() -> None:
    party = Script(ok({"datasets": [DATASET]})).party()
    found = party.datasets()
    assert [one.name for one in found] == ["people"]
    assert str(found).splitlines() == [
        "data set  version  level  least ε  columns",
        "people    2026-11  group  0.05     age, income, low, high, region",
    ]
    assert repr(found) == str(found)
    people = found[0]
    assert people.group == 5
    assert [column.domain for column in people.columns] == ["0 to 120", "no bounds", "from 0", "up to 5", "<b>, s"]
    assert [one.why for one in people.columns[1].functions] == [None, "needs an upper bound"]
    assert "level: group, 5 records" in str(people)
    assert "income  number    no bounds  yes   no        MEDIAN\n" in str(people)
    assert "&lt;b&gt;, s" in people._repr_html_()
    assert "<b>" not in people._repr_html_() + found._repr_html_()


def test_a_data_set_of_people_tells_its_unit_and_its_tables() -> None:
    orders = {
        "name": "orders", "public": False, "unit": ["buyer"], "order": "day",
        "links": {"buyer": "people.id"}, "columns": [column("amount", "integer")],
    }  # fmt: skip
    facts = {
        "unit": ["id"],
        "unit_word": "household",
        "order": "day",
        "tables": [orders],
        "links": {"area": "areas.code"},
    }
    people = Script(ok({"datasets": [DATASET | facts]})).party().datasets()[0]
    told = str(people).splitlines()
    for line in (
        "level: group, 5 households",
        "unit: household, by id",
        "order of rows: day",
        "links: area = areas.code",
        "table orders: by buyer; in the order of day; buyer = people.id",
    ):
        assert line in told
    assert "orders.amount  integer" in str(people)


@pytest.mark.parametrize("change", [{"columns": [{}]}, {"group": "many"}, {"max_groups": True}, {"name": None}])
def test_data_sets_of_another_kind_are_refused(change: dict[str, Any]) -> None:
    party = Script(ok({"datasets": [{**DATASET, **change}]})).party()
    with pytest.raises(ServerError, match="something else than was asked for"):
        party.datasets()


def test_budgets() -> None:
    limited = {"budget": "10", "spent": "1/3", "remaining": "29/3"}
    unlimited = {"budget": None, "spent": "0", "remaining": None}
    line = {"dataset": "people", "analyst": "ana", "epsilon": limited, "delta": unlimited}
    found = Script(ok({"budgets": [line]})).party().budget()
    assert found[0].epsilon.remaining == Fraction(29, 3)
    assert found[0].delta.budget is None
    assert str(found).splitlines()[1].split() == ["people", "ana", "10", "1/3", "29/3", "no", "limit"]


def released(sequence: int) -> dict[str, Any]:
    return {
        "sequence": sequence,
        "id": f"id{sequence}",
        "time": "2026-11-15T08:00:00.123456+00:00",
        "dataset": "people",
        "version": "1",
        "epsilon": "0.5",
        "delta": "0",
        "guarantee": "A promise.",
        "statistics": ["COUNT(*)"],
        "groups": [{"region": "north"}, {"region": "south"}],
        "cells": [["12"], [None]],
        "margins": ["7/2"],
    }


def test_answers_are_fetched_page_by_page() -> None:
    server = Script(
        ok({"answers": [released(9), released(7)], "next": 7}), ok({"answers": [released(3)], "next": None})
    )
    found = server.party().answers("people")
    assert server.paths == []
    assert next(found).sequence == 9
    assert len(server.paths) == 1
    rest = list(found)
    assert [one.sequence for one in rest] == [7, 3]
    assert server.paths == [
        "GET /v1/answers?limit=100&dataset=people",
        "GET /v1/answers?limit=100&dataset=people&before=7",
    ]
    assert rest[0].margins == (Fraction(7, 2),)
    assert str(rest[0]).splitlines() == [
        "people, 2026-11-15T08:00:00, ε = 0.5",
        "region  COUNT(*)",
        "north   12",
        "south   NULL",
        "A promise.",
    ]
    assert "<td" in rest[0]._repr_html_()


def test_what_was_clipped_arrives() -> None:
    limits = {"clipped": [[["-1200", "1/3"]], [None]]}
    [found] = Script(ok({"answers": [{**released(1), **limits}], "next": None})).party().answers()
    assert found.clipped == (((Fraction(-1200), Fraction(1, 3)),), (None,))
    answer = {**ANSWER.to_dict(), "clipped": [{"MEDIAN(income)": ["-1200", "88000"]}]}
    asked = Script(ok(answer)).party().query(SQL, epsilon="0.5")
    assert asked.clipped == {"MEDIAN(income)": (-1200, 88000)}
    assert "Values outside [−1,200, 88,000] were clipped to it." in str(asked)
    with pytest.raises(ServerError, match="clipped"):
        Script(ok({**answer, "clipped": [{"MEDIAN(income)": ["2", "1"]}, {}]})).party().query(SQL, epsilon="0.5")


def test_pages_that_never_end_are_noticed() -> None:
    page = {"answers": [released(9)], "next": 9}
    party = Script(ok(page), ok(page)).party()
    with pytest.raises(ServerError, match="again and again"):
        list(party.answers())


def test_cells_that_do_not_match_their_heads_are_refused() -> None:
    party = Script(ok({"answers": [{**released(1), "cells": [["12"]]}], "next": None})).party()
    with pytest.raises(ServerError, match="cells must be a list of 2"):
        list(party.answers())


@contextmanager
def real_server(handle: Callable[[BaseHTTPRequestHandler, Any], None]) -> Iterator[str]:
    """A real HTTP server on this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            handle(self, json.loads(body) if body else None)

        def log_message(self, *rest: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def reply(request: BaseHTTPRequestHandler, status: int, content: Any) -> None:
    written = json.dumps(content).encode()
    request.send_response(status)
    request.send_header("Content-Length", str(len(written)))
    request.send_header("Retry-After", "0")
    request.end_headers()
    request.wfile.write(written)


def test_the_lines_of_the_page_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
    lines = page.partition("```python\n")[2].partition("```")[0]
    replies = {
        "/v1/me": ME,
        "/v1/datasets": {"datasets": [DATASET]},
        "/v1/quote": QUOTE,
        "/v1/query": ANSWER.to_dict(),
        "/v1/budget": {"budgets": []},
    }

    def handle(request: BaseHTTPRequestHandler, body: Any) -> None:
        reply(request, 200, replies[request.path])

    monkeypatch.setenv("IDIOS_TOKEN", TOKEN)
    with real_server(handle) as url:
        exec(compile(lines.replace("https://idios.example.org", url), "client.md", "exec"), {})
    said = capsys.readouterr().out
    assert "29436.5 1/2 7/2" in said
    assert str(ANSWER.guarantee) in said


def test_end_to_end_with_a_connection_cut_after_the_work_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDIOS_TOKEN", TOKEN)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nothing listens there: it must not be used
    columns = {"income": {"type": "number", "step": 1}}
    done: dict[str, dict[str, Any]] = {}
    cut = [True]

    def handle(request: BaseHTTPRequestHandler, body: Any) -> None:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        status, content = 200, None
        if request.path == "/v1/me":
            content = {"name": "ana", "role": "analyst"}
        elif request.path == "/v1/query":
            key = request.headers["Idempotency-Key"]
            if key not in done:
                done[key] = party.query(body["sql"], body["epsilon"]).to_dict()
            if cut.pop() if cut else False:
                request.close_connection = True
                request.connection.close()
                return
            status, content = 202, {"id": key, "state": "running", "step": None, "share": None, "elapsed": 0}
        elif request.path.startswith("/v1/questions/"):
            content = {"id": "x", "state": "answered", "elapsed": 1, "answer": done[request.path.rpartition("/")[2]]}
        reply(request, status, content)

    with (
        idios.TrustedParty.open({"income": range(2001)}, name="people", columns=columns, budget=4) as party,
        real_server(handle) as url,
        idios.connect(url) as remote,
    ):
        remote._transport.sleep = lambda seconds: None
        answer = remote.query(SQL, 0.5)
        here = party.query(SQL, 0.5)
    assert len(done) == 1
    assert answer.value == here.value
    assert answer.remaining == here.remaining == Fraction(7, 2)
    assert answer.guarantee == here.guarantee


def test_a_report_is_planned_by_quotes_and_asked_question_by_question() -> None:
    account = {"budget": "4", "spent": "0", "remaining": "4"}
    budget = {"budgets": [{"dataset": "people", "analyst": "ana", "epsilon": account, "delta": account}]}
    quote = {**QUOTE, "rho": "1/18", "pure": True, "more": 9}
    quotes, answers = [ok(quote)] * 2, [ok(ANSWER.to_dict())] * 2
    script = Script(*quotes, *quotes, ok(budget), *quotes, ok(budget), *answers, ok(budget))
    plan = script.party().plan({"middle": SQL, "again": f"{SQL} WHERE age > 3"}, epsilon=1, split={"middle": 3})
    assert script.paths == [*["POST /v1/quote"] * 4, "GET /v1/budget"]
    assert [question.epsilon for question in plan.questions] == [Fraction(3, 4), Fraction(1, 4)]
    assert (plan.totals[0].cost, plan.totals[0].remaining_after) == (Fraction(2, 3), Fraction(10, 3))
    report = plan.ask()
    assert script.paths[7:] == ["GET /v1/budget", *["POST /v1/query"] * 2, "GET /v1/budget"]
    assert [json.loads(request.content)["epsilon"] for request in script.requests[-3:-1]] == ["0.75", "0.25"]
    assert report["again"].value == 29436.5
    assert [(name, answer.value) for name, answer in report.items()] == [("middle", 29436.5), ("again", 29436.5)]
