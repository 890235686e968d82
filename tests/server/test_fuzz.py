"""Broken tokens, headers and bodies: always one of the documented errors, never a 5xx, never a charge."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.office import Office, open_office, write_office

QUIET = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
HEADER_BYTES = st.binary(max_size=60).map(lambda raw: bytes(b for b in raw if b >= 32 and b != 127))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    office = open_office(write_office(tmp_path_factory.mktemp("fuzz")))
    office.service.auth.failures = office.service.by_address  # thousands of strangers may try
    with office.client:
        yield office


def check(office: Office, answered: object, statuses: set[int]) -> None:
    assert answered.status_code in statuses, answered.text  # type: ignore[attr-defined]
    error = answered.json()["error"]  # type: ignore[attr-defined]
    assert {"code", "message", "where", "fix", "request"} <= error.keys()
    assert office.ledger.balance("people").epsilon.spent == 0


@QUIET
@given(header=HEADER_BYTES | HEADER_BYTES.map(lambda raw: b"Bearer " + raw))
def test_tokens(fuzzed: Office, header: bytes) -> None:
    answered = fuzzed.call("GET", "/v1/me", None, headers={"Authorization": header})
    check(fuzzed, answered, {401})


@QUIET
@given(cookie=HEADER_BYTES, csrf=HEADER_BYTES)
def test_sessions(fuzzed: Office, cookie: bytes, csrf: bytes) -> None:
    headers = {"Cookie": b"idios_session=" + cookie, "X-CSRF-Token": csrf}
    answered = fuzzed.call("POST", "/v1/query", None, json={"sql": "SELECT", "epsilon": 1}, headers=headers)
    check(fuzzed, answered, {401})


@QUIET
@given(
    headers=st.dictionaries(
        st.sampled_from(["Content-Type", "Accept", "Idempotency-Key", "X-Forwarded-For", "Host", "Range", "Expect"]),
        HEADER_BYTES,
        max_size=4,
    )
)
def test_headers(fuzzed: Office, headers: dict[str, bytes]) -> None:
    body = json.dumps({"sql": "SELECT nothing FROM people", "epsilon": "1"}).encode()
    answered = fuzzed.call("POST", "/v1/query", "ada", content=body, headers=headers)
    check(fuzzed, answered, {400, 422})


@QUIET
@given(body=st.binary(max_size=200) | ANYTHING.map(lambda value: json.dumps(value).encode()))
@pytest.mark.parametrize("path", ["/v1/query", "/v1/quote", "/v1/sandbox"])
def test_bodies(fuzzed: Office, path: str, body: bytes) -> None:
    answered = fuzzed.call("POST", path, "ada", content=body, headers={"Content-Type": "application/json"})
    check(fuzzed, answered, {400, 422})


@QUIET
@given(
    sql=st.text(max_size=60),
    epsilon=st.text(max_size=12) | st.floats() | st.integers(),
    split=st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.floats(), max_size=3),
)
def test_questions(fuzzed: Office, sql: str, epsilon: object, split: object) -> None:
    body = json.dumps({"sql": sql, "epsilon": epsilon, "split": split}).encode()
    answered = fuzzed.call("POST", "/v1/query", "ada", content=body, headers={"Content-Type": "application/json"})
    check(fuzzed, answered, {422})
