"""Questions in progress: every process sees them, the chain does not."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from idios.errors import InvalidInput
from idios.ledger import Ledger, RunningQuestion
from idios.ledger.operational import MOST_QUESTIONS
from tests.ledger.ledger_place import Place, ask
from tests.ledger.ledger_worker import table

NOW = datetime(2026, 11, 15, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def test_a_question_from_begin_to_end(place: Place) -> None:
    clock = Clock()
    with place.open(clock=clock) as ledger, place.open() as other:
        assert other.running.find("q1") is None
        ledger.running.begin("q1", "analyst:zoë", "people", '{"sql": "SELECT ε"}')
        begun = "2026-11-15T00:00:00.000000Z"
        assert other.running.find("q1") == RunningQuestion(
            "q1", "analyst:zoë", "people", '{"sql": "SELECT ε"}', begun, begun, "", 0.0, "running", False
        )
        clock.now += timedelta(seconds=2)
        assert ledger.running.report("q1", "reading the data", 0.25) is False
        found = other.running.find("q1")
        assert found is not None
        assert (found.step, found.share, found.state) == ("reading the data", 0.25, "running")
        assert (found.started, found.heartbeat) == (begun, "2026-11-15T00:00:02.000000Z")
        other.running.cancel("q1")
        assert ledger.running.report("q1", "sorting", 0.5) is True
        ledger.running.end("q1", "cancelled")
        ended = other.running.find("q1")
        assert ended is not None
        assert (ended.state, ended.cancel, ended.step) == ("cancelled", True, "sorting")


def test_only_the_first_end_counts(ledger: Ledger) -> None:
    ledger.running.begin("q1", "controller", "people", "{}")
    ledger.running.end("q1", "answered")
    ledger.running.end("q1", "failed")
    ledger.running.cancel("q1")
    ledger.running.report("q1", "late", 0.9)
    found = ledger.running.find("q1")
    assert found is not None
    assert (found.state, found.cancel, found.step) == ("answered", False, "")


def test_what_is_cancelled_does_not_leave(place: Place) -> None:
    with place.open() as ledger, place.open() as other:
        ledger.running.begin("q1", "controller", "people", "{}")
        assert other.running.cancel("q1") is True
        assert ledger.running.leave("q1") is False
        assert other.running.cancel("q1") is True
        assert _state(other, "q1") == ("running", True)
        ledger.running.end("q1", "cancelled")
        assert _state(other, "q1") == ("cancelled", True)


@pytest.mark.parametrize("end", ["answered", "failed"])
def test_what_leaves_is_not_cancelled(place: Place, end: str) -> None:
    clock = Clock()
    with place.open(clock=clock) as ledger, place.open() as other:
        ledger.running.begin("q1", "controller", "people", "{}")
        assert ledger.running.leave("q1") is True
        assert other.running.cancel("q1") is False
        assert _state(other, "q1") == ("leaving", False)
        clock.now += timedelta(seconds=2)
        assert ledger.running.report("q1", "writing", 1) is False
        found = other.running.find("q1")
        assert found is not None
        assert (found.step, found.heartbeat) == ("writing", "2026-11-15T00:00:02.000000Z")
        ledger.running.end("q1", end)
        assert other.running.cancel("q1") is False
        assert _state(other, "q1") == (end, False)


def test_one_of_the_two_comes_first(place: Place) -> None:
    with place.open() as ledger, place.open() as other:
        for number in range(30):
            id = f"q{number}"
            ledger.running.begin(id, "controller", "people", "{}")
            start = threading.Barrier(2)
            came: dict[str, bool] = {}

            def try_to(
                name: str, act: Callable[[str], bool], id: str = id, start: Any = start, came: Any = came
            ) -> None:
                start.wait()
                came[name] = act(id)

            acts = (("leave", ledger.running.leave), ("cancel", other.running.cancel))
            threads = [threading.Thread(target=try_to, args=act) for act in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert came["leave"] != came["cancel"]
            assert _state(ledger, id) == (("leaving", False) if came["leave"] else ("running", True))


def _state(ledger: Ledger, id: str) -> tuple[str, bool]:
    found = ledger.running.find(id)
    assert found is not None
    return found.state, found.cancel


def test_what_nobody_began(ledger: Ledger) -> None:
    for id in ("q9", "", "\x00", "\ud800", "x" * 5000):
        assert ledger.running.find(id) is None
        assert ledger.running.cancel(id) is False
    assert ledger.running.leave("q9") is True  # no caller can have cancelled it
    assert ledger.running.report("q9", "step", 0.5) is False
    ledger.running.end("q9", "failed")
    assert ledger.running.find("q9") is None


def test_what_is_refused(ledger: Ledger) -> None:
    ledger.running.begin("q1", "controller", "people", "{}")
    with pytest.raises(InvalidInput, match="'q1' is taken"):
        ledger.running.begin("q1", "controller", "people", "{}")
    for arguments in (("", "c", "d", "r"), ("q", "c", "", "r"), ("q", "c", "d", "\x00"), ("q", "\ud800", "d", "r")):
        with pytest.raises(InvalidInput):
            ledger.running.begin(*arguments)
    for share in (-0.1, 1.1, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="between 0 and 1"):
            ledger.running.report("q1", "step", share)
    with pytest.raises(InvalidInput, match="a name of a step"):
        ledger.running.report("q1", "", 0.5)
    with pytest.raises(InvalidInput, match="one of answered, failed, cancelled, not 'running'"):
        ledger.running.end("q1", "running")
    found = ledger.running.find("q1")
    assert found is not None
    assert (found.share, found.state) == (0.0, "running")


def test_old_questions_are_forgotten(place: Place) -> None:
    clock = Clock()
    with place.open(clock=clock) as ledger:
        ledger.running.begin("old", "controller", "people", "{}")
        clock.now += timedelta(days=29)
        ledger.running.begin("young", "controller", "people", "{}")
        assert ledger.running.find("old") is not None
        clock.now += timedelta(days=2)
        ledger.running.begin("new", "controller", "people", "{}")
        assert ledger.running.find("old") is None
        assert ledger.running.find("young") is not None


def test_one_caller_leaves_few_questions(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A charged question can be asked again for nothing, and each time it may outlast its request."""
    clock = Clock()
    with place.open(clock=clock) as ledger:
        ledger.running.begin("hers", "analyst:zoë", "people", "{}")
        for number in range(MOST_QUESTIONS + 20):
            clock.now += timedelta(seconds=1)
            ledger.running.begin(f"q{number}", "analyst:ada", "people", "{}")
        [(left,)] = place.execute("SELECT COUNT(*) FROM idios_running")
        assert left <= MOST_QUESTIONS + 1
        assert ledger.running.find("q10") is None
        assert ledger.running.find(f"q{MOST_QUESTIONS + 19}") is not None
        assert ledger.running.find("hers") is not None


def test_the_chain_knows_nothing_of_them(place: Place, ledger: Ledger) -> None:
    before = ledger.head()
    ledger.running.begin("q1", "controller", "people", "{}")
    ledger.running.report("q1", "step", 0.5)
    assert ledger.head() == before
    assert ledger.verify().ok
    ledger.rebuild()
    assert ledger.running.find("q1") is not None
    place.execute("DELETE FROM idios_running")
    assert ledger.verify().ok


def test_a_report_waits_for_no_charge_on_postgresql(postgresql_place: Place) -> None:
    with postgresql_place.open(timeout=5) as ledger, ledger._database.writing():
        ledger.running.begin("q1", "controller", "people", "{}")
        assert ledger.running.report("q1", "step", 0.5) is False


def test_in_memory_too() -> None:
    with Ledger.open("sqlite://") as ledger:
        ledger.running.begin("q1", "controller", "people", "{}")
        ledger.running.cancel("q1")
        assert ledger.running.report("q1", "step", 1) is True


def test_reports_and_charges_side_by_side(ledger: Ledger) -> None:
    ledger.raise_budget("people", epsilon=ask(epsilon=100).epsilon)
    ledger.running.begin("q1", "controller", "people", "{}")
    stop = threading.Event()
    reports: list[float] = []

    def report() -> None:
        while not stop.is_set():
            begun = time.monotonic()
            ledger.running.report("q1", "step", 0.5)
            reports.append(time.monotonic() - begun)

    reporters = [threading.Thread(target=report) for _ in range(3)]
    for thread in reporters:
        thread.start()
    for number in range(30):
        ledger.release(ledger.reserve(ask(f"question {number}", "1/10")), table("{}"))  # type: ignore[arg-type]
    stop.set()
    for thread in reporters:
        thread.join()
    assert len(reports) >= 3
    assert ledger.balance("people").epsilon.spent == 3
    assert ledger.verify().ok
