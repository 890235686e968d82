"""The office of the server's tests, with people who look at it through the console."""

from __future__ import annotations

import re

from fastapi.testclient import TestClient

from tests.server.office import BY_REGION, MEDIAN, Office, open_office, write_office


def sign_in(office: Office, token: str) -> TestClient:
    """A browser of its own, signed in."""
    client = TestClient(office.client.app, raise_server_exceptions=False, follow_redirects=False)
    client.portal = office.client.portal  # one event loop for all, or a question ends with the request that asked it
    answer = client.post("/console/sign-in", data={"token": token})
    assert answer.status_code == 303, answer.text
    return client


def csrf(page: str) -> str:
    """What the forms of a page carry."""
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert found, page
    return found[1]


__all__ = ["BY_REGION", "MEDIAN", "Office", "csrf", "open_office", "sign_in", "write_office"]
