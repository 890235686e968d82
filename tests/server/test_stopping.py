"""Stopping is exact: a question is stopped or it leaves, whichever process is told to stop it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from idios.data.engines.duckdb import DuckDbBackend
from idios.errors import LedgerUnavailable
from idios.ledger import Ledger, RunningQuestion, RunningQuestions
from idios.server import question_queue
from idios.server.question_queue import QuestionRequest, _Job, encode_record
from tests.server.office import MEDIAN, Office, open_another, open_office, write_office
from tests.waiting import SECONDS, until


@pytest.fixture(params=["sqlite", "postgresql"])
def offices(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Office, Office]]:
    """Two processes of one server; each hears of the other only when it asks."""
    monkeypatch.setattr(question_queue, "HEARTBEAT", 1000.0)
    url = "sqlite:///ledger.db" if request.param == "sqlite" else request.getfixturevalue("ledger_base")
    config = write_office(tmp_path, ledger=url)
    here = open_office(config)
    there = open_another(here, config)
    with here.client, there.client:
        yield here, there


def row(office: Office, href: str) -> RunningQuestion:
    found = office.ledger.running.find(href[-32:])
    assert found is not None
    return found


def held(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> tuple[threading.Event, threading.Event]:
    """Hold a method of a class: an event that says it was called, and one that lets it go on."""
    called, go_on = threading.Event(), threading.Event()
    original = getattr(owner, name)

    def waits(*given: Any) -> Any:
        called.set()
        assert go_on.wait(SECONDS)
        return original(*given)

    monkeypatch.setattr(owner, name, waits)
    return called, go_on


def test_stopped_elsewhere_it_gives_no_answer(offices: tuple[Office, Office], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = offices
    _, go_on = held(monkeypatch, DuckDbBackend, "open_snapshot")
    href = here.ask(wait=0).headers["Location"]
    until(lambda: row(here, href).step)  # its one sign of life: it hears nothing more
    assert there.call("DELETE", href).json()["state"] == "cancelled"
    go_on.set()
    until(lambda: row(here, href).state == "cancelled")
    assert here.ledger.answers() == []
    for office in offices:
        assert office.call("GET", href).json()["state"] == "cancelled"
    again = there.ask().json()
    assert (again["stored"], again["remaining"]) == (False, "3.5")


def test_what_leaves_is_not_said_to_be_stopped(offices: tuple[Office, Office], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = offices
    _, compute = held(monkeypatch, DuckDbBackend, "open_snapshot")
    called, go_on = held(monkeypatch, Ledger, "release")
    href = here.ask(wait=0).headers["Location"]
    compute.set()
    assert called.wait(SECONDS)
    assert row(there, href).state == "leaving"
    for office in offices:
        assert office.call("DELETE", href).json()["state"] == "running"
    go_on.set()
    until(lambda: there.call("GET", href).json()["state"] == "answered")
    assert there.call("DELETE", href).json()["answer"]["rows"]
    assert len(here.ledger.answers()) == 1


def test_a_failure_that_was_stopped_elsewhere_is_stopped(
    offices: tuple[Office, Office], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = offices

    def broken(*_: object) -> None:
        raise RuntimeError("a record overflowed")

    monkeypatch.setattr(DuckDbBackend, "open_snapshot", broken)
    _, go_on = held(monkeypatch, DuckDbBackend, "open_snapshot")
    for stopped, state in ((True, "cancelled"), (False, "failed")):
        go_on.clear()
        href = here.ask(wait=0, epsilon="0.5" if stopped else "0.6").headers["Location"]
        until(lambda href=href: row(here, href).step)  # type: ignore[misc]
        if stopped:
            there.call("DELETE", href)
        go_on.set()
        until(lambda href=href, state=state: row(here, href).state == state)  # type: ignore[misc]
        assert there.call("GET", href).json()["state"] == state


def test_a_process_that_dies_while_an_answer_leaves(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    id = "0" * 32
    office.ledger.running.begin(id, "analyst:ada", "people", encode_record(QuestionRequest(MEDIAN, "0.5"), "0" * 64))
    assert office.ledger.running.leave(id)
    assert office.call("GET", f"/v1/questions/{id}").json()["state"] == "running"
    monkeypatch.setattr(question_queue, "LOST", -1.0)
    assert office.call("GET", f"/v1/questions/{id}").json()["state"] == "failed"


def test_nothing_leaves_while_it_is_written_down(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that is computed while its row is being made leaves by that row."""
    came = []
    begin, leave = RunningQuestions.begin, RunningQuestions.leave

    def slow(running: RunningQuestions, *given: str) -> None:
        until(lambda: all(job.computed for job in office.service.questions._jobs.values()))
        time.sleep(0.2)  # time in which the answer would leave: that it does not is the subject
        begin(running, *given)
        came.append("begun")

    def noted(running: RunningQuestions, id: str) -> bool:
        came.append("leaving")
        return leave(running, id)

    monkeypatch.setattr(RunningQuestions, "begin", slow)
    monkeypatch.setattr(RunningQuestions, "leave", noted)
    href = office.ask(wait=0).headers["Location"]
    until(lambda: office.call("GET", href).json()["state"] == "answered")
    assert came == ["begun", "leaving"]


def test_what_leaves_already_is_waited_for(office: Office) -> None:
    """No caller could stop it, so it gets no row that could say that it was stopped."""
    party, at = office.service.party, office.service.questions

    async def outlasts() -> tuple[object, object]:
        job = _Job(party, party.reserve(party.make_plan(MEDIAN, "0.5")), "ada", 0.0, 0.0)
        await at._leave(job)
        task = asyncio.create_task(asyncio.to_thread(party.complete, job.charged))
        identity = office.ledger.authenticate(office.tokens.ada)
        return await at._follow(task, job, QuestionRequest(MEDIAN, "0.5"), identity), task.result()

    found, answer = asyncio.run(outlasts())
    assert found is answer


def test_a_question_that_cannot_leave_has_failed(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it was stopped is unknown, so nothing leaves; the controller finds the reason."""

    def broken(*_: object) -> bool:
        raise LedgerUnavailable("the ledger is locked")

    monkeypatch.setattr(RunningQuestions, "leave", broken)
    _, go_on = held(monkeypatch, DuckDbBackend, "open_snapshot")
    href = office.ask(wait=0).headers["Location"]
    go_on.set()
    until(lambda: office.call("GET", href).json()["state"] == "failed")
    assert office.ledger.answers() == []
    assert [entry.kind for entry in office.ledger.entries()][-2:] == ["reserved", "failed"]
