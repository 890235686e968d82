"""One caller leaves places to others, a lost note ends nothing, and no environment of another's decides."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from idios.config import Settings
from idios.data.engines.duckdb import DuckDbBackend
from idios.errors import LedgerUnavailable
from idios.ledger.operational import RunningQuestions
from idios.server import startup
from tests.server.office import BY_REGION, Office, open_office, write_office


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Holds every question at the data until it is set."""
    event = threading.Event()
    original = DuckDbBackend.open_snapshot

    def held(*given: Any) -> Any:
        event.wait(20)
        return original(*given)

    monkeypatch.setattr(DuckDbBackend, "open_snapshot", held)
    yield event
    event.set()


def test_one_question_asked_many_times_leaves_places_to_others(tmp_path: Path, opened: threading.Event) -> None:
    office = open_office(write_office(tmp_path), concurrent_questions=2, waiting_questions=6)
    with office.client:
        assert [office.ask(wait=0).status_code for _ in range(7)] == [202] * 6 + [503]
        assert office.call("GET", "/v1/budget").json()["budgets"][0]["epsilon"]["spent"] == "0.5"
        assert office.ask(BY_REGION, who="grace", wait=0).status_code == 202
        opened.set()
    assert office.service.questions.taken == 0


def test_many_slow_questions_of_one_caller_leave_a_thread_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event, original = threading.Event(), DuckDbBackend.open_snapshot

    def held(backend: Any, plan: Any, *given: Any) -> Any:
        if not plan.groups:
            event.wait(20)
        return original(backend, plan, *given)

    monkeypatch.setattr(DuckDbBackend, "open_snapshot", held)
    office = open_office(write_office(tmp_path), concurrent_questions=2, waiting_questions=6)
    with office.client:
        for number in range(5):
            assert office.ask(f"SELECT MEDIAN(age) FROM people WHERE age > {number}", wait=0).status_code == 202
        assert office.ask(BY_REGION, who="grace", wait=10).status_code == 200
        event.set()


def test_a_note_that_was_lost_ends_no_question(
    office: Office, opened: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RunningQuestions.report
    lost, noted = threading.Event(), threading.Event()

    def report(*given: Any) -> bool:
        if not lost.is_set():
            lost.set()
            raise LedgerUnavailable("for a moment")
        noted.set()
        return original(*given)

    monkeypatch.setattr(RunningQuestions, "report", report)
    running = office.ask(wait=0).json()
    assert lost.wait(5)
    assert noted.wait(5)
    opened.set()
    shown = running
    for _ in range(200):
        shown = office.call("GET", running["href"]).json()
        if shown["state"] != "running":
            break
        threading.Event().wait(0.02)
    assert shown["state"] == "answered"


def test_the_number_of_processes_is_the_settings_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_office(tmp_path)
    seen: dict[str, Any] = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **options: seen.update(options))
    monkeypatch.setattr(startup, "create_worker_app", lambda path: None)
    monkeypatch.setattr(startup.signal, "signal", lambda *given: None)
    monkeypatch.setattr(startup.os, "environ", {"WEB_CONCURRENCY": "4"})
    startup.run(config, Settings())
    assert seen["workers"] == 1
