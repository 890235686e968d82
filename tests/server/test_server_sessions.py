"""Console sessions: signed, short, bound to a token, useless without the CSRF token."""

from __future__ import annotations

import pytest
from office import MEDIAN, Office

from idios.server.identity import COOKIE, CSRF_HEADER
from idios.server.sessions import Sessions

QUESTION = {"sql": MEDIAN, "epsilon": "0.1"}


def cookie_of(office: Office, who: str) -> str:
    return office.service.sessions.open(office.ledger.authenticate(getattr(office.tokens, who)).token)


def test_a_session_stands_for_its_token(office: Office) -> None:
    cookie = cookie_of(office, "ada")
    assert office.tokens.ada not in cookie
    office.client.cookies.set(COOKIE, cookie)
    assert office.call("GET", "/v1/me", None).json()["name"] == "ada"
    refused = office.call("POST", "/v1/query", None, json=QUESTION)
    assert refused.status_code == 403
    for wrong in ("", "0" * 64, "ünïcode".encode()):
        headers = {CSRF_HEADER: wrong}
        assert office.call("POST", "/v1/query", None, json=QUESTION, headers=headers).status_code == 403
    assert office.ledger.balance("people").epsilon.spent == 0
    session = office.service.sessions.read(cookie)
    assert session is not None
    headers = {CSRF_HEADER: session.csrf}
    assert office.call("POST", "/v1/query", None, json=QUESTION, headers=headers).status_code == 200
    other = office.service.sessions.read(cookie_of(office, "ada"))
    assert other is not None
    assert office.call("POST", "/v1/quote", None, json=QUESTION, headers={CSRF_HEADER: other.csrf}).status_code == 403


def test_a_revoked_token_ends_its_sessions(office: Office) -> None:
    office.client.cookies.set(COOKIE, cookie_of(office, "ada"))
    assert office.call("GET", "/v1/me", None).status_code == 200
    office.ledger.revoke_token(office.ledger.authenticate(office.tokens.ada).token)
    assert office.call("GET", "/v1/me", None).status_code == 401


def test_a_session_ends() -> None:
    now = 1000.0
    sessions = Sessions(bytes(32), 1, clock=lambda: now)
    cookie = sessions.open("name")
    assert sessions.read(cookie) is not None
    now = 4599.0
    assert sessions.read(cookie) is not None
    now = 4600.0
    assert sessions.read(cookie) is None


@pytest.mark.parametrize("key", [bytes(32), bytes(31) + b"\1"])
def test_only_our_own_cookies_are_read(key: bytes) -> None:
    ours = Sessions(bytes(32), 1)
    cookie = Sessions(key, 1).open("name")
    assert (ours.read(cookie) is not None) == (key == bytes(32))
    for i in range(len(cookie)):
        changed = cookie[:i] + ("0" if cookie[i] != "0" else "1") + cookie[i + 1 :]
        assert ours.read(changed) is None
    for nonsense in ("", ".", "...", "a.b.c.d", "é" * 10, cookie + "0", cookie[1:]):
        assert ours.read(nonsense) is None
