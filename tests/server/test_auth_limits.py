"""How often, how much and how slowly one may ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from idios.server.auth import MOST_CALLERS, Limiter
from tests.server.office import MEDIAN, Office, open_office, write_office

QUESTION = {"sql": MEDIAN, "epsilon": "0.1"}


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used up comes back with time, and requests may take long."""
    monkeypatch.setitem(Limiter.__init__.__kwdefaults__, "clock", lambda: 0.0)


def test_a_token_has_a_limit_of_its_own(tmp_path: Path) -> None:
    office = open_office(write_office(tmp_path), requests_per_minute=40)
    with office.client:
        statuses = [office.call("GET", "/v1/me").status_code for _ in range(12)]
        assert statuses == [200] * 10 + [429] * 2
        turned_away = office.call("GET", "/v1/me")
        assert int(turned_away.headers["Retry-After"]) >= 1
        assert turned_away.json()["error"]["code"] == "too_many_requests"
        assert office.call("GET", "/v1/me", "bob").status_code == 200
        before = office.ledger.head()
        assert office.ask().status_code == 429
        assert office.ledger.head() == before


def test_an_address_has_a_limit_and_health_has_none(tmp_path: Path) -> None:
    office = open_office(write_office(tmp_path), requests_per_minute_address=40)
    with office.client:
        assert [office.call("GET", "/v1/me").status_code for _ in range(11)][-1] == 429
        assert office.call("GET", "/v1/me", "bob").status_code == 429
        assert office.call("GET", "/healthz", None).status_code == 200


def test_signing_in_counts_like_a_request(tmp_path: Path) -> None:
    office = open_office(write_office(tmp_path), requests_per_minute=40)
    with office.client:
        form = {"token": office.tokens.ada}
        statuses = [
            office.client.post("/console/sign-in", data=form, follow_redirects=False).status_code for _ in range(12)
        ]
        assert statuses == [303] * 10 + [429] * 2


def test_methods_that_a_client_invents_are_counted_as_one(office: Office) -> None:
    for number in range(30):
        office.call(f"X{chr(65 + number % 26)}{chr(65 + number // 26)}", "/v1/me")
    counted = office.call("GET", "/metrics", "grace").text
    assert 'method="OTHER"' in counted
    assert 'method="X' not in counted


def test_guessing_tokens_is_slowed_down(office: Office) -> None:
    statuses = [office.call("GET", "/v1/me", f"guess {i}").status_code for i in range(20)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert office.call("GET", "/v1/me").status_code == 200


def test_a_body_without_a_length_is_cut_off(office: Office) -> None:
    def endless() -> object:
        for _ in range(100):
            yield b"x" * 4096

    answered = office.call("POST", "/v1/quote", content=endless())
    assert answered.status_code == 413


def test_whoever_was_silent_longest_is_forgotten() -> None:
    now = 0.0
    limiter = Limiter(4, clock=lambda: now)
    assert [limiter.try_acquire("first"), limiter.try_acquire("first")] == [0, 15]
    for i in range(MOST_CALLERS):
        limiter.try_acquire(str(i))
    assert limiter.try_acquire("first") == 0
    assert len(limiter._buckets) == MOST_CALLERS
