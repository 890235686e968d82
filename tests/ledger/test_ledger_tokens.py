"""Tokens: shown once, kept as a hash, refused alike for whatever reason."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from ledger_place import Place, kinds

from idios.errors import InvalidInput, NotPermitted
from idios.ledger import Ledger

REFUSED = "the token is unknown, revoked or expired"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(place: Place, clock: Clock) -> Iterator[Ledger]:
    with place.open(clock=clock) as opened:
        opened.add_analyst("ada")
        opened.add_analyst("bob")
        yield opened


def test_a_token_names_its_analyst(ledger: Ledger) -> None:
    tokens = {analyst: ledger.issue_token(analyst) for analyst in ("ada", "bob")}
    assert {analyst: ledger.authenticate(token) for analyst, token in tokens.items()} == {
        "ada": "ada",
        "bob": "bob",
    }
    assert all(len(token) == 43 for token in tokens.values())  # 256 bits in base64


def test_the_token_itself_is_nowhere_in_the_ledger(ledger: Ledger) -> None:
    token = ledger.issue_token("ada")
    (entry,) = ledger.entries(kinds=("token-issued",))
    assert token not in entry.payload
    assert token not in str(ledger.tokens())


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "\x00", "\ud800", "ε" * 10_000])
def test_a_strange_token_is_refused(ledger: Ledger, token: str) -> None:
    with pytest.raises(NotPermitted, match=REFUSED):
        ledger.authenticate(token)


def test_a_token_expires(ledger: Ledger, clock: Clock) -> None:
    token = ledger.issue_token("ada", lifetime=timedelta(days=1))
    clock.now += timedelta(hours=23, minutes=59)
    assert ledger.authenticate(token) == "ada"
    clock.now += timedelta(minutes=1)
    with pytest.raises(NotPermitted, match=REFUSED):
        ledger.authenticate(token)


def test_a_token_is_revoked_by_name(ledger: Ledger) -> None:
    token, kept = ledger.issue_token("ada"), ledger.issue_token("ada")
    (name,) = (found.token for found in ledger.tokens() if found.digest.startswith(sha256(token)[:16]))
    ledger.revoke_token(name)
    ledger.revoke_token(name)
    with pytest.raises(NotPermitted, match=REFUSED):
        ledger.authenticate(token)
    assert ledger.authenticate(kept) == "ada"
    assert kinds(ledger).count("token-revoked") == 1
    assert ledger.verify().ok
    with pytest.raises(NotPermitted, match="knows no token"):
        ledger.revoke_token("nonsense")


def sha256(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def test_a_token_for_nobody_or_for_no_time(ledger: Ledger) -> None:
    with pytest.raises(NotPermitted, match="no analyst 'eve'"):
        ledger.issue_token("eve")
    for lifetime in (timedelta(0), timedelta(days=-1), timedelta.max):
        with pytest.raises(InvalidInput, match="a token"):
            ledger.issue_token("ada", lifetime=lifetime)


def test_times_are_the_clocks_in_utc(place: Place, clock: Clock, ledger: Ledger) -> None:
    ledger.issue_token("ada", lifetime=timedelta(days=1))
    assert {entry.time for entry in ledger.entries()} == {"2026-11-15T00:00:00.000000Z"}
    assert ledger.tokens()[0].expires == "2026-11-16T00:00:00.000000Z"
