"""Nothing that an analyst can look at tells when a padded question was computed; and looking costs nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from idios.config import read_configuration
from idios.data.engines.duckdb import DuckDbBackend
from idios.party import TrustedParty
from idios.server.app import create_app
from idios.server.question_queue import QuestionQueue
from idios.server.service import Service
from tests.server.office import MEDIAN, Office, open_office, write_office
from tests.waiting import until

QUESTION = {"sql": MEDIAN, "epsilon": "0.5"}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Is set when a question has been computed."""
    done = threading.Event()
    original: Callable[..., Any] = DuckDbBackend.open_snapshot

    @contextmanager
    def open_snapshot(*given: Any) -> Iterator[Any]:
        with original(*given) as snapshot:
            done.set()
            yield snapshot

    monkeypatch.setattr(DuckDbBackend, "open_snapshot", open_snapshot)
    return done


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The public moment comes when this is set, however slow the machine is."""
    come = threading.Event()

    async def held(*_: object) -> None:
        while not come.is_set():
            await asyncio.sleep(0.01)

    monkeypatch.setattr(QuestionQueue, "_public_moment", held)
    yield come
    come.set()


def test_what_is_computed_shows_nowhere_before_its_moment(
    office: Office, computed: threading.Event, moment: threading.Event
) -> None:
    running = office.ask(wait=0).json()
    assert computed.wait(10)
    time.sleep(0.3)  # time in which the answer would show: that it does not is the subject
    seen = [
        office.call("POST", "/v1/quote", json=QUESTION).json()["stored"],
        office.call("GET", "/v1/answers").json()["answers"],
        office.call("GET", running["href"]).json()["state"],
    ]
    assert seen == [False, [], "running"]
    moment.set()
    office.ask()
    assert office.call("POST", "/v1/quote", json=QUESTION).json()["stored"] is True


def test_a_stopped_question_is_not_stored_even_if_it_was_computed(
    office: Office, computed: threading.Event, moment: threading.Event
) -> None:
    running = office.ask(wait=0).json()
    assert computed.wait(10)
    assert office.call("DELETE", running["href"]).json()["state"] == "cancelled"
    moment.set()
    until(lambda: not office.service.questions.taken)
    assert office.call("POST", "/v1/quote", json=QUESTION).json()["stored"] is False
    assert office.call("GET", "/v1/budget").json()["budgets"][0]["epsilon"]["spent"] == "0.5"
    assert office.ask().json()["remaining"] == "3.5"


def test_the_end_of_the_server_is_a_public_moment(tmp_path: Path, computed: threading.Event) -> None:
    config = write_office(tmp_path, release="60")
    office = open_office(config, shutdown_seconds=1)
    with office.client:
        office.ask(wait=0)
        assert computed.wait(10)
        time.sleep(0.2)  # time in which the answer would leave: that it waits for the end is the subject
        began = time.monotonic()
    assert time.monotonic() - began < 50
    with TrustedParty.from_config(config) as party:
        assert party.quote(MEDIAN, "0.5", analyst="ada").stored


def test_looking_at_an_answer_about_an_old_version_charges_nothing(tmp_path: Path) -> None:
    config = write_office(tmp_path, release="0.5")
    office = open_office(config)
    with office.client:
        running = office.ask(wait=0).json()
        until(lambda: office.call("GET", running["href"]).json()["state"] != "running")
        assert office.call("GET", running["href"]).json()["answer"]["rows"]
    config.write_text(config.read_text().replace('version = "1"', 'version = "2"'))
    configuration = read_configuration(config, {})
    service = Service.start(TrustedParty.from_config(config), configuration.datasets, configuration.server)
    later: Office = replace(office, client=TestClient(create_app(service)), service=service)
    with later.client:
        shown = later.call("GET", running["href"])
        assert (shown.status_code, shown.json()["error"]["code"]) == (410, "outdated")
        assert later.call("GET", "/v1/budget").json()["budgets"][0]["epsilon"]["spent"] == "0.5"
        assert len(later.call("GET", "/v1/answers").json()["answers"]) == 1
