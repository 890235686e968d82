"""Long replies are made off the event loop, and no page of a list is endless."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from fastapi import Response

from idios.codec import from_json, to_json
from idios.model import AnswerPage
from idios.server import messages
from idios.server.messages import STEP
from idios.server.routes.controller import EntryPage
from tests.server.office import BY_REGION, MEDIAN, Office

QUESTION = {"sql": BY_REGION, "epsilon": "0.5"}


@pytest.mark.parametrize(
    ("method", "path", "who", "body"),
    [
        ("GET", "/v1/datasets", "ada", None),
        ("POST", "/v1/quote", "ada", QUESTION),
        ("POST", "/v1/query", "ada", QUESTION),
        ("POST", "/v1/sandbox", "ada", QUESTION),
        ("GET", "/v1/answers", "ada", None),
        ("POST", "/v1/inspect", "grace", QUESTION),
        ("POST", "/v1/compare", "grace", QUESTION),
        ("GET", "/v1/ledger", "grace", None),
    ],
)
def test_what_can_be_long_is_written_in_a_thread(
    office: Office, monkeypatch: pytest.MonkeyPatch, method: str, path: str, who: str, body: Any
) -> None:
    wrote: list[int] = []

    class Noted(Response):
        def __init__(self, *given: Any, **options: Any) -> None:
            wrote.append(threading.get_ident())
            super().__init__(*given, **options)

    monkeypatch.setattr(messages, "Response", Noted)
    loops: list[int] = []
    office.client.portal.call(lambda: loops.append(threading.get_ident()))  # type: ignore[union-attr]
    reply = office.call(method, path, who, json=body)
    assert reply.status_code == 200
    assert reply.json()
    assert len(wrote) == 1
    assert wrote != loops


def test_a_page_of_long_answers_is_shorter_than_was_asked_for(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2 * STEP + 1):
        assert office.ask(f"{MEDIAN} WHERE age > {number}", "0.05").status_code == 200
    whole = office.call("GET", "/v1/answers", params={"limit": 500}).json()
    assert len(whole["answers"]) == 2 * STEP + 1
    assert whole["next"] is None
    monkeypatch.setattr(messages, "MOST", 10)
    for path, who, key in (("/v1/answers", "ada", "answers"), ("/v1/ledger", "grace", "entries")):
        listed: list[int] = []
        following, pages = None, 0
        while pages == 0 or following is not None:
            given = {"limit": 500} if following is None else {"limit": 500, "before": following}
            page = office.call("GET", path, who, params=given).json()
            assert len(page[key]) <= STEP
            listed += [one["sequence"] for one in page[key]]
            following, pages = page["next"], pages + 1
        assert pages > 2
        assert listed == sorted(set(listed), reverse=True)
        if key == "answers":
            assert listed == [one["sequence"] for one in whole["answers"]]


def test_lists_are_what_the_document_says(office: Office) -> None:
    """They are put together from what is stored, without a model in between: so they are held against it here."""
    assert office.ask(BY_REGION).status_code == 200
    assert office.ask(MEDIAN).status_code == 200
    answers = office.call("GET", "/v1/answers", params={"limit": 1})
    assert to_json(from_json(AnswerPage, answers.json(), "a page")) == answers.json()
    assert len(answers.json()["answers"]) == 1
    entries = office.call("GET", "/v1/ledger", "grace")
    assert to_json(from_json(EntryPage, entries.json(), "a page")) == entries.json()
    empty = office.call("GET", "/v1/answers", "bob")
    assert empty.json() == {"next": None, "answers": []}
