"""Who gets what: each page of the console without a session, as analyst, as controller; and forms without a token."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute

from idios.server.console import PARTS, router
from idios.server.http_errors import too_many
from tests.console.console_office import Office, csrf, sign_in

PAGES = {
    "/console/datasets": "both",
    "/console/ask": "both",
    "/console/history": "both",
    "/console/overview": "controller",
    "/console/ledger": "controller",
    "/console/analysts": "controller",
    "/console/compare": "controller",
}
FORMS = {
    "/console/ask": "both",
    "/console/sign-out": "both",
    f"/console/questions/{'0' * 32}/stop": "both",
    "/console/datasets/people/raise": "controller",
    "/console/datasets/people/retire": "controller",
    "/console/ledger/verify": "controller",
    "/console/analysts/add": "controller",
    "/console/analysts/grant": "controller",
    "/console/analysts/withdraw": "controller",
    "/console/analysts/token": "controller",
    "/console/analysts/revoke": "controller",
    "/console/compare": "controller",
}
OPEN = {"/console/sign-in", "/console/assets/{name}"}
BEGINNINGS = ("/", "/console", "/console/")


def test_the_tables_name_every_route() -> None:
    patterns = {
        f"/console/questions/{'0' * 32}/stop": "/console/questions/{id}/stop",
        "/console/datasets/people/raise": "/console/datasets/{name}/raise",
        "/console/datasets/people/retire": "/console/datasets/{name}/retire",
    }
    routes = [route for part in PARTS for route in part.router.routes if isinstance(route, APIRoute)]
    got = {route.path for route in routes if "GET" in route.methods}
    posted = {route.path for route in routes if "POST" in route.methods}
    assert {route.path for route in router.routes if isinstance(route, APIRoute)} == {"/console/{path:path}"}
    assert got == {*PAGES} | OPEN | {*BEGINNINGS} | {"/console/questions/{id}"}
    assert posted == {patterns.get(path, path) for path in FORMS} | {"/console/sign-in"}


@pytest.mark.parametrize("path", [*PAGES, *BEGINNINGS, f"/console/questions/{'0' * 32}", "/console/nothing"])
def test_nobody_is_sent_to_sign_in(office: Office, path: str) -> None:
    answer = office.client.get(path, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in")


@pytest.mark.parametrize("path", FORMS)
def test_nobody_changes_anything(office: Office, path: str) -> None:
    head = office.ledger.head()
    answer = office.client.post(path, data={"csrf": "0" * 64}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in")
    assert office.ledger.head() == head


@pytest.mark.parametrize("path", PAGES)
def test_pages_by_role(office: Office, path: str) -> None:
    for who in ("ada", "bob", "grace"):
        expected = 200 if PAGES[path] == "both" or who == "grace" else 403
        answer = sign_in(office, getattr(office.tokens, who)).get(path)
        assert answer.status_code == expected, (who, answer.text)
        assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", [path for path, who in FORMS.items() if who == "controller"])
def test_an_analyst_decides_nothing(office: Office, path: str) -> None:
    ada = sign_in(office, office.tokens.ada)
    token = csrf(ada.get("/console/ask").text)
    head = office.ledger.head()
    fields = {"csrf": token, "name": "eve", "analyst": "bob", "dataset": "people", "days": "3", "sql": "x"}
    answer = ada.post(path, data=fields)
    assert answer.status_code == 403
    assert "Not permitted" in answer.text
    assert office.ledger.head() == head


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("given", [None, "", "0" * 64, "ada's"])
def test_a_form_without_the_sessions_token_changes_nothing(office: Office, path: str, given: str | None) -> None:
    grace = sign_in(office, office.tokens.grace)
    head = office.ledger.head()
    if given == "ada's":
        given = csrf(sign_in(office, office.tokens.ada).get("/console/ask").text)
    fields = {"name": "people", "analyst": "bob", "dataset": "people", "days": "3", "epsilon": "20", "sql": "x"}
    answer = grace.post(path, data=fields if given is None else {**fields, "csrf": given})
    assert answer.status_code == 403
    assert office.ledger.head() == head
    assert grace.get("/console/overview").status_code == 200, "and the session goes on"


def test_roles_begin_in_different_places(office: Office) -> None:
    for who, place in (("ada", "/console/datasets"), ("grace", "/console/overview")):
        client = sign_in(office, getattr(office.tokens, who))
        assert client.get("/console").headers["location"] == place
        assert client.get("/console/sign-in").headers["location"] == "/console"


def test_the_cookie_is_the_browsers_alone(office: Office) -> None:
    answer = office.client.post("/console/sign-in", data={"token": office.tokens.ada}, follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "Secure" not in cookie
    assert office.tokens.ada not in cookie
    office.client.cookies.clear()
    over_tls = office.client.post(
        "https://testserver/console/sign-in", data={"token": office.tokens.ada}, follow_redirects=False
    )
    assert over_tls.headers["set-cookie"].startswith("__Host-idios_session=")
    assert "Secure" in over_tls.headers["set-cookie"]
    office.client.cookies.clear()


@pytest.mark.parametrize("token", ["", "wrong", "x" * 43])
def test_a_wrong_token_has_one_message(office: Office, token: str) -> None:
    answer = office.client.post("/console/sign-in", data={"token": token})
    assert answer.status_code == 401
    assert "This token is unknown, revoked or expired." in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://testserver"}, 303),
    ],
)
def test_nobody_is_signed_in_from_elsewhere(office: Office, headers: dict[str, str], status: int) -> None:
    answer = office.client.post(
        "/console/sign-in", data={"token": office.tokens.ada}, headers=headers, follow_redirects=False
    )
    assert answer.status_code == status
    assert ("set-cookie" in answer.headers) == (status == 303)
    office.client.cookies.clear()


def test_wrong_tokens_are_counted(own_office: Office) -> None:
    statuses = [own_office.client.post("/console/sign-in", data={"token": f"{i}"}).status_code for i in range(40)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    limited = own_office.client.post("/console/sign-in", data={"token": "x"})
    assert "Too many requests" in limited.text
    assert int(limited.headers["retry-after"]) >= 1
    assert too_many(3).message.capitalize() in limited.text


def test_a_revoked_token_ends_its_session(own_office: Office) -> None:
    ada = sign_in(own_office, own_office.tokens.ada)
    assert ada.get("/console/datasets").status_code == 200
    own_office.ledger.revoke_token(own_office.ledger.authenticate(own_office.tokens.ada).token)
    gone = ada.get("/console/datasets")
    assert (gone.status_code, gone.headers["location"]) == (303, "/console/sign-in?ended=1")
    assert 'idios_session=""' in gone.headers["set-cookie"]
    assert "Your session has ended, or your token was revoked." in ada.get("/console/sign-in?ended=1").text


def test_signing_out_drops_the_cookie(office: Office) -> None:
    ada = sign_in(office, office.tokens.ada)
    answer = ada.post("/console/sign-out", data={"csrf": csrf(ada.get("/console/ask").text)})
    assert answer.headers["location"] == "/console/sign-in?left=1"
    assert "idios_session" not in ada.cookies
    assert ada.get("/console/ask").headers["location"] == "/console/sign-in"
