"""Console sessions: signed, short, bound to a token, useless without the CSRF token."""

from __future__ import annotations

from pathlib import Path

import pytest

from idios.server.auth import COOKIE, CSRF_HEADER, Sessions
from tests.server.office import MEDIAN, Office, open_another, open_office, write_office

QUESTION = {"sql": MEDIAN, "epsilon": "0.1"}


def cookie_of(office: Office, who: str) -> str:
    return office.service.auth.sessions.open(office.ledger.authenticate(getattr(office.tokens, who)).token)


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
    session = office.service.auth.sessions.read(cookie)
    assert session is not None
    headers = {CSRF_HEADER: session.csrf}
    assert office.call("POST", "/v1/query", None, json=QUESTION, headers=headers).status_code == 200
    other = office.service.auth.sessions.read(cookie_of(office, "ada"))
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


def test_signing_out_ends_the_session_wherever_its_cookie_is(tmp_path: Path) -> None:
    config = write_office(tmp_path)
    office = open_office(config)
    other = open_another(office, config)
    with office.client, other.client:
        cookie, kept = cookie_of(office, "ada"), cookie_of(office, "ada")
        session = office.service.auth.sessions.read(cookie)
        assert session is not None
        office.client.cookies.set(COOKIE, cookie)
        signed_out = office.client.post("/console/sign-out", data={"csrf": session.csrf}, follow_redirects=False)
        assert signed_out.status_code == 303
        for process in (office, other):
            process.client.cookies.clear()
            process.client.cookies.set(COOKIE, cookie)
            assert process.call("GET", "/v1/me", None).status_code == 401, "a copy of the cookie is worth nothing"
            page = process.client.get("/console/datasets", follow_redirects=False)
            assert page.headers["location"] == "/console/sign-in?ended=1"
            process.client.cookies.clear()
            process.client.cookies.set(COOKIE, kept)
            assert process.call("GET", "/v1/me", None).status_code == 200, "another session of the token goes on"
            assert process.call("GET", "/v1/me", "ada").status_code == 200


@pytest.mark.parametrize("path", ["/v1/me/", "/healthz/", "/console/sign-in/", "/console/datasets/", "/v1/datasets/"])
def test_a_slash_at_the_end_leads_nowhere_else(office: Office, path: str) -> None:
    reply = office.call("GET", path, headers={"Host": "evil.example"}, follow_redirects=False)
    assert "evil.example" not in reply.headers.get("location", "")
    assert reply.status_code in (303, 404)
