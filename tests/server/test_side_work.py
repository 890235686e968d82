"""What is free cannot be used to keep others out."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from idios.party import TrustedParty
from idios.server import side_work
from idios.server.side_work import EACH
from tests.server.office import MEDIAN, Office
from tests.waiting import until


def test_a_flood_of_sandbox_questions_keeps_nobody_out(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = threading.Event()
    original = TrustedParty.sandbox

    def held(*given: Any, **named: Any) -> Any:
        opened.wait(20)
        return original(*given, **named)

    monkeypatch.setattr(TrustedParty, "sandbox", held)
    statuses: list[int] = []

    def flood() -> None:
        reply = office.call("POST", "/v1/sandbox", json={"sql": MEDIAN, "epsilon": "1"})
        statuses.append(reply.status_code)

    # More than a process has threads for requests.
    threads = [threading.Thread(target=flood) for _ in range(50)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(statuses) >= 50 - EACH)
        assert statuses == [503] * (50 - EACH)
        assert office.call("GET", "/v1/me", "bob").status_code == 200
        assert office.ask().status_code == 200
    finally:
        opened.set()
        for thread in threads:
            thread.join()
    assert statuses.count(200) == EACH
    assert office.call("POST", "/v1/sandbox", json={"sql": MEDIAN, "epsilon": "1"}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/quote", "/v1/sandbox", "/v1/query"])
@pytest.mark.parametrize("epsilon", ["1000.5", "1e8", "1e400", 10**12])
def test_an_epsilon_beyond_reason_is_refused_at_once(office: Office, path: str, epsilon: str | int) -> None:
    began = time.monotonic()
    reply = office.call("POST", path, json={"sql": MEDIAN, "epsilon": epsilon})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid_request")
    assert "1,000" in reply.json()["error"]["message"]
    assert time.monotonic() - began < 30  # it took more than a minute


def test_a_sandbox_question_that_takes_too_long_is_stopped(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_work, "LONGEST", 0.1)
    shares = ", ".join(f"PERCENTILE_DISC(age, {i / 20})" for i in range(1, 20))
    sql = f"SELECT BIN(age, 1), {shares} FROM people GROUP BY BIN(age, 1)"
    reply = office.call("POST", "/v1/sandbox", json={"sql": sql, "epsilon": "100"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid_request")
    assert "sandbox" in reply.json()["error"]["message"]
