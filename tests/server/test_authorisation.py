"""An analyst's token reaches no controller route and no data set that was not granted: a table over all routes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from idios.server.question_queue import QuestionRequest, encode_record
from tests.server.office import MEDIAN, Office

pytestmark = pytest.mark.slow  # every route

QUESTION = {"sql": MEDIAN, "epsilon": "0.1"}
SECRET = {"sql": "SELECT MEDIAN(age) FROM patients", "epsilon": "0.1"}

PUBLIC = {("GET", "/healthz"), ("GET", "/readyz")}
ANALYST = {
    ("GET", "/v1/me"): None,
    ("GET", "/v1/datasets"): None,
    ("POST", "/v1/quote"): QUESTION,
    ("POST", "/v1/query"): QUESTION,
    ("GET", "/v1/questions/{id}"): None,
    ("DELETE", "/v1/questions/{id}"): None,
    ("GET", "/v1/budget"): None,
    ("GET", "/v1/answers"): None,
    ("POST", "/v1/sandbox"): QUESTION,
}
CONTROLLER = {
    ("GET", "/metrics"): None,
    ("POST", "/v1/inspect"): QUESTION,
    ("POST", "/v1/compare"): QUESTION,
    ("GET", "/v1/ledger"): None,
    ("POST", "/v1/ledger/verify"): {},
    ("GET", "/v1/analysts"): None,
    ("POST", "/v1/analysts"): {"name": "mallory"},
    ("PUT", "/v1/analysts/{name}/grants/{dataset}"): {"epsilon": "9"},
    ("DELETE", "/v1/analysts/{name}/grants/{dataset}"): None,
    ("POST", "/v1/tokens"): {"name": "ada", "role": "controller"},
    ("DELETE", "/v1/tokens/{token}"): None,
    ("POST", "/v1/datasets/{name}/raise"): {"epsilon": "99"},
    ("POST", "/v1/datasets/{name}/retire"): None,
}
FILLED = {"{name}": "ada", "{dataset}": "people", "{token}": "0123456789abcdef", "{id}": "0" * 32}


def filled(path: str) -> str:
    for part, value in FILLED.items():
        path = path.replace(part, value)
    return path.replace("/datasets/ada/", "/datasets/people/")


def every_route(app: Any) -> Iterator[Any]:
    """The application's routes, those of included routers too."""
    for route in app.routes:
        included = getattr(route, "original_router", None)
        yield from [route] if included is None else included.routes


def test_the_table_has_every_route(untouched_office: Office) -> None:
    """A new route must be put into the table before it can be merged. The console has a table of its own."""
    found = {
        (method, route.path)
        for route in every_route(untouched_office.client.app)
        if isinstance(route, APIRoute) and not route.path.startswith("/console")
        for method in route.methods
    }
    assert found == PUBLIC | ANALYST.keys() | CONTROLLER.keys()


@pytest.mark.parametrize(("method", "path"), sorted(ANALYST.keys() | CONTROLLER.keys()))
@pytest.mark.parametrize(
    "token",
    [None, "nonsense", *(pytest.param(odd, marks=pytest.mark.slow) for odd in ("", "Bearer", "0" * 43, "ünïcode"))],
)
def test_nobody_gets_in_without_a_token(untouched_office: Office, method: str, path: str, token: str | None) -> None:
    body = {**ANALYST, **CONTROLLER}[method, path]
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
    before = untouched_office.ledger.head()
    answered = untouched_office.call(method, filled(path), None, json=body, headers=headers)
    assert answered.status_code == 401, answered.text
    assert answered.headers["WWW-Authenticate"] == "Bearer"
    assert untouched_office.ledger.head() == before


@pytest.mark.parametrize(("method", "path"), sorted(CONTROLLER))
@pytest.mark.parametrize("who", ["ada", "bob"])
def test_an_analyst_reaches_no_controller_route(untouched_office: Office, method: str, path: str, who: str) -> None:
    before = untouched_office.ledger.head()
    answered = untouched_office.call(method, filled(path), who, json=CONTROLLER[method, path])
    assert answered.status_code == 403, answered.text
    assert answered.json()["error"]["code"] == "not_permitted"
    assert untouched_office.ledger.head() == before


@pytest.mark.parametrize(("method", "path"), sorted(CONTROLLER))
def test_the_controller_reaches_every_controller_route(office: Office, method: str, path: str) -> None:
    """Otherwise the test above would pass on routes that refuse every caller."""
    answered = office.call(method, filled(path), "grace", json=CONTROLLER[method, path])
    assert answered.status_code in (200, 201) or "token" in path, answered.text


@pytest.mark.parametrize("path", ["/v1/quote", "/v1/query", "/v1/sandbox"])
@pytest.mark.parametrize("who", ["ada", "bob"])
def test_a_data_set_that_was_not_granted_does_not_exist(untouched_office: Office, path: str, who: str) -> None:
    """Neither its name nor its columns can be told from those of a data set that does not exist."""
    before = untouched_office.ledger.head()
    texts = []
    for name in ("patients", "nothings"):
        body = {"sql": f"SELECT MEDIAN(age) FROM {name}", "epsilon": "0.1"}
        answered = untouched_office.call("POST", path, who, json=body)
        assert answered.status_code == 422, answered.text
        error = answered.json()["error"]
        texts.append((error["message"].replace(name, "NAME"), error["where"]))
    assert texts[0] == texts[1]
    assert "patients" not in texts[1][0]
    assert untouched_office.ledger.head() == before


def test_listings_leave_out_what_was_not_granted(office: Office) -> None:
    office.ask("SELECT MEDIAN(age) FROM patients", who="grace")
    for path in ("/v1/datasets", "/v1/budget", "/v1/answers", "/v1/answers?dataset=patients"):
        for who in ("ada", "bob"):
            assert "patients" not in office.call("GET", path, who).text


def test_analysts_share_no_memory_of_questions(office: Office) -> None:
    """How quickly a quote comes tells nothing about what another analyst drafts."""
    ada, bob = (
        office.service.party_for(office.ledger.authenticate(token)) for token in (office.tokens.ada, office.tokens.bob)
    )
    again = office.service.party_for(office.ledger.authenticate(office.tokens.ada))
    assert ada._recent is again._recent
    assert ada._recent is not bob._recent
    assert bob._recent is not office.service.party._recent


def test_a_question_that_outlasted_its_request_is_its_askers_own(office: Office) -> None:
    running = office.ledger.running
    running.begin("a" * 32, "analyst:ada", "people", encode_record(QuestionRequest(MEDIAN, "0.5"), "0" * 64))
    for method in ("GET", "DELETE"):
        assert office.call(method, "/v1/questions/" + "a" * 32, "bob").status_code == 404
        assert office.call(method, "/v1/questions/" + "a" * 32, "grace").status_code == 404
    found = running.find("a" * 32)
    assert found is not None
    assert not found.cancel
    assert office.call("GET", "/v1/questions/" + "a" * 32, "ada").json()["state"] == "running"
