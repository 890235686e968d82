"""Questions that are repeated, take long, are stopped, or are padded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from idios.data.engines.duckdb import DuckDbBackend
from idios.server import question_queue
from idios.server.question_queue import release_after
from tests.server.office import MEDIAN, Office, open_office, write_office
from tests.waiting import until


class Gate:
    """Holds every question at the data until it is opened; remembers how often the data was touched."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.touched = 0

    def hold(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def held(backend: Any, plan: Any, cancellation: Any = None) -> Any:
            self.touched += 1
            while not self.open.wait(0.01):
                if cancellation is not None:
                    cancellation.step("waiting at the gate", 0.25)
            return original(backend, plan, cancellation)

        return held


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(DuckDbBackend, "open_snapshot", gate.hold(DuckDbBackend.open_snapshot))
    yield gate
    gate.open.set()


def test_a_repeated_request_is_charged_once(office: Office) -> None:
    key = {"Idempotency-Key": "one"}
    first = office.ask(headers=key).json()
    again = office.ask(headers=key).json()
    assert again["rows"] == first["rows"]
    assert again["stored"]
    assert office.ledger.balance("people").epsilon.spent == first_spent(first)
    other = office.ask("SELECT MEDIAN(age) FROM people", headers=key)
    assert other.status_code == 409
    assert other.json()["error"]["code"] == "key_reused"
    assert office.ledger.balance("people").epsilon.spent == first_spent(first)


def first_spent(answer: dict[str, Any]) -> Any:
    from fractions import Fraction

    return Fraction(answer["epsilon"])


def test_a_long_question_is_fetched_later(office: Office, gate: Gate) -> None:
    later = office.ask("SELECT MEDIAN(age) FROM patients", who="grace", wait=0)
    assert later.status_code == 202
    href = later.headers["Location"]
    running = until(lambda: _stepped(office.call("GET", href, "grace").json()))
    assert running["state"] == "running"
    assert running["share"] == 0.25
    assert running["answer"] is None
    gate.open.set()
    done = until(lambda: _in_state(office.call("GET", href, "grace").json(), "answered"))
    assert done["answer"]["rows"]
    assert office.ledger.balance("patients").epsilon.spent * 2 == 1


def _stepped(shown: dict[str, Any]) -> dict[str, Any] | None:
    return shown if shown["step"] == "waiting at the gate" else None


def _in_state(shown: dict[str, Any], state: str) -> dict[str, Any] | None:
    return shown if shown["state"] == state else None


def test_a_stopped_question_stays_charged_and_completes_free(office: Office, gate: Gate) -> None:
    later = office.ask(wait=0)
    href = later.headers["Location"]
    until(lambda: gate.touched)
    assert office.call("DELETE", href).json()["state"] == "cancelled"
    until(lambda: not office.service.questions.taken)
    until(lambda: office.ledger.running.find(href[-32:]).state == "cancelled")  # type: ignore[union-attr]
    assert office.call("GET", "/v1/budget").json()["budgets"][0]["epsilon"]["spent"] == "0.5"
    assert office.ledger.answers() == []
    gate.open.set()
    answer = office.ask().json()
    assert not answer["stored"]
    assert answer["remaining"] == "3.5"


def test_a_stopped_question_keeps_its_place_until_a_public_moment(
    tmp_path: Path, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """A caller who found the place free earlier would know when the computation ended. A shutdown waits for none."""
    office = open_office(write_office(tmp_path, release="60"))
    gate.open.set()
    with office.client:
        href = office.ask(wait=0).headers["Location"]
        until(lambda: all(job.computed for job in office.service.questions._jobs.values()))
        assert office.call("DELETE", href).json()["state"] == "cancelled"
        until(lambda: all(job.cancelled for job in office.service.questions._jobs.values()))
        assert office.service.questions.taken == 1
    assert not office.service.questions.taken
    assert "stopping" not in caplog.messages, "nothing was left when the server's patience ended"


def test_a_question_past_its_time_fails_in_the_one_way(tmp_path: Path, gate: Gate) -> None:
    office = open_office(write_office(tmp_path), question_seconds=1)
    with office.client:
        failed = office.ask()
        assert failed.status_code == 500
        assert failed.json()["error"]["code"] == "answer_failed"
        assert office.ledger.balance("people").epsilon.spent * 2 == 1


def test_too_many_questions_are_refused_before_they_are_charged(tmp_path: Path, gate: Gate) -> None:
    office = open_office(write_office(tmp_path), concurrent_questions=1, waiting_questions=1)
    with office.client:
        for epsilon in ("0.1", "0.2"):
            assert office.ask(epsilon=epsilon, wait=0).status_code == 202
        refused = office.ask(epsilon="0.3", wait=0)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        assert refused.json()["error"]["code"] == "busy"
        assert office.ledger.balance("people").epsilon.spent * 10 == 3
        # What cannot be asked is refused at once, however many questions wait.
        gate.open.set()


def test_an_exhausted_budget_is_refused_before_the_data_is_touched(office: Office, gate: Gate) -> None:
    for path in ("/v1/query", "/v1/quote"):
        office.call("POST", path, json={"sql": MEDIAN, "epsilon": "4.5"})
    assert gate.touched == 0
    assert office.ledger.balance("people").epsilon.spent == 0


def test_closing_finishes_what_it_can(tmp_path: Path, gate: Gate) -> None:
    office = open_office(write_office(tmp_path))
    with office.client:
        assert office.ask(wait=0).status_code == 202
        until(lambda: gate.touched)
        threading.Timer(0.3, gate.open.set).start()
    from idios.ledger import Ledger

    with Ledger.open(office.configuration.ledger_url, office.configuration.key_file) as ledger:
        assert len(ledger.answers("people")) == 1


def test_closing_abandons_what_takes_too_long(tmp_path: Path, gate: Gate) -> None:
    office = open_office(write_office(tmp_path), shutdown_seconds=0)
    with office.client:
        assert office.ask(wait=0).status_code == 202
        until(lambda: gate.touched)
    from idios.ledger import Ledger

    with Ledger.open(office.configuration.ledger_url, office.configuration.key_file) as ledger:
        assert ledger.answers("people") == []
        assert ledger.balance("people").epsilon.spent * 2 == 1
        assert ledger.verify().ok


def test_answers_leave_at_public_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick answer and an empty selection wait for the same moment; a refusal and a stored answer need not wait."""
    waited: list[float] = []

    def spied(elapsed: float, first: float) -> float:
        waited.append(first)
        return release_after(elapsed, first)

    monkeypatch.setattr(question_queue, "release_after", spied)
    office = open_office(write_office(tmp_path, release="0.4"))
    with office.client:
        times = {}
        for name, sql in {
            "median": MEDIAN,
            "empty": "SELECT MEDIAN(income) FROM people WHERE age > 119",
            "count": "SELECT COUNT(*) FROM people WHERE age > 30",
        }.items():
            began = time.monotonic()
            assert office.ask(sql).status_code == 200
            times[name] = time.monotonic() - began
        assert all(taken >= 0.4 for taken in times.values())
        assert waited == [0.4] * 3
        assert office.ask(epsilon="100").status_code == 409
        assert office.ask("SELECT nothing").status_code == 422
        assert office.ask(MEDIAN).json()["stored"]
        assert waited == [0.4] * 3


def test_a_failure_is_padded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    office = open_office(write_office(tmp_path, release="0.4"))

    def broken(*_: object) -> None:
        raise RuntimeError("a record overflowed")

    monkeypatch.setattr(DuckDbBackend, "open_snapshot", broken)
    with office.client:
        began = time.monotonic()
        failed = office.ask()
        assert time.monotonic() - began >= 0.4
        assert failed.status_code == 500
        assert failed.json()["error"]["code"] == "answer_failed"
        assert "overflowed" not in failed.text


def test_a_padded_question_tells_no_progress(tmp_path: Path, gate: Gate) -> None:
    office = open_office(write_office(tmp_path, release="0.4"))
    with office.client:
        href = office.ask(wait=0).headers["Location"]
        until(lambda: gate.touched)
        time.sleep(0.1)  # time in which progress would be told: that it is not told is the subject
        shown = office.call("GET", href).json()
        assert (shown["state"], shown["step"], shown["share"]) == ("running", None, None)
        gate.open.set()
        until(lambda: office.call("GET", href).json()["state"] == "answered")
