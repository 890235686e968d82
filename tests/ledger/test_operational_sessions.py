"""Sessions that were signed out: every process knows, until they would have expired."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from idios.ledger import Ledger
from idios.ledger.operational import EndedSessions
from tests.ledger.ledger_place import Place

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def test_an_ended_session_is_ended_for_every_process(place: Place) -> None:
    with place.open() as ledger, place.open() as other:
        head = ledger.head()
        assert not other.sessions.has_ended("s1")
        for _ in range(2):
            ledger.sessions.end("s1", NOW + timedelta(days=3650))
        assert other.sessions.has_ended("s1")
        assert not other.sessions.has_ended("s2")
        assert ledger.head() == head
        assert ledger.verify().ok


def test_what_would_have_expired_is_forgotten(place: Place) -> None:
    now = NOW
    with place.open(clock=lambda: now) as ledger:
        ledger.sessions.end("s1", NOW + timedelta(hours=12))
        now = NOW + timedelta(hours=11)
        ledger.sessions.end("s2", NOW + timedelta(hours=23))
        assert ledger.sessions.has_ended("s1")
        now = NOW + timedelta(hours=13)
        ledger.sessions.end("s3", NOW + timedelta(hours=25))
        assert place.execute("SELECT id FROM idios_ended_sessions ORDER BY id") == [("s2",), ("s3",)]


def test_two_processes_may_end_a_session_at_the_same_moment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find it open and both write; the second finds it written and that is all."""
    both = threading.Barrier(2)
    original = EndedSessions.has_ended

    def looked(sessions: EndedSessions, id: str) -> bool:
        found = original(sessions, id)
        both.wait(10)
        return found

    failed: list[BaseException] = []

    def end(ledger: Ledger) -> None:
        try:
            ledger.sessions.end("s1", NOW + timedelta(days=3650))
        except BaseException as error:
            failed.append(error)

    with place.open() as one, place.open() as other:
        monkeypatch.setattr(EndedSessions, "has_ended", looked)
        threads = [threading.Thread(target=end, args=(ledger,)) for ledger in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        monkeypatch.undo()
        assert not failed
        assert one.sessions.has_ended("s1")
