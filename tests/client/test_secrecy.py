"""The client: where the token may go, and where it never shows."""

from __future__ import annotations

import logging
import ssl
import subprocess
import sys

import httpx2
import pytest

import idios
from idios.client import ServerError
from idios.client.transport import open_http
from idios.errors import (
    IdiosError,
    InvalidInput,
    Unanswerable,
)
from tests.client.scripted_server import ANSWER, ME, SQL, TOKEN, Script, Step, failure, ok


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://idios.example.org", "in the clear; use https://, or insecure=True"),
        ("http://10.0.0.1:8000", "in the clear"),
        ("http://localhost.example.org", "in the clear"),
        ("localhost:8000", "must look like https://"),
        ("ftp://idios.example.org", "must look like https://"),
        ("https://", "must look like https://"),
        ("https://idios.example.org/?x=1", "must look like https://"),
        ("https://idios.example.org:port", "not an address"),
        ("https://ana:geheim@idios.example.org", "must not contain a user name or a password"),
    ],
)
def test_addresses_that_are_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        idios.connect(url, TOKEN)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "http://[::1]:8000", "http://localhost", "https://x.org/idios"]
)
def test_addresses_that_are_not(url: str) -> None:
    with open_http(url, TOKEN, transport=httpx2.MockTransport(lambda request: ok(ME))) as http:
        assert str(http.get("/v1/me").url) == f"{url}/v1/me"
    open_http("http://idios.example.org", TOKEN, insecure=True).close()


def test_no_proxy_sees_a_token_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example.org:3128")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    with open_http("http://127.0.0.1:8000", TOKEN) as plain, open_http("https://idios.example.org", TOKEN) as tls:
        assert plain._mounts == {}
        assert tls._mounts != {}


def test_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IDIOS_TOKEN", raising=False)
    with pytest.raises(InvalidInput, match="pass token=… or set IDIOS_TOKEN"):
        idios.connect("https://idios.example.org")
    for bad in ("two words", "line\nbreak", "zu schön"):
        with pytest.raises(InvalidInput, match="printable ASCII") as caught:
            idios.connect("https://idios.example.org", bad)
        assert bad not in str(caught.value)


def test_the_token_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    faults: list[Step] = [
        failure(403, "not_permitted", f"the token {TOKEN} is not known", fix=f"replace {TOKEN}", request=TOKEN),
        failure(500, "internal", f"Authorization: Bearer {TOKEN}"),
        httpx2.LocalProtocolError(f"Illegal header value b'Bearer {TOKEN}'"),
        httpx2.Response(302, headers={"location": f"https://{TOKEN}.example.org/"}),
        ok({"budgets": TOKEN}),
    ]
    server = Script(*faults)
    party = server.party()
    shown = repr(party) + repr(vars(party)) + repr(vars(party._transport))
    for _ in faults:
        with pytest.raises(IdiosError) as caught:
            party.budget()
        shown += str(caught.value) + repr(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert server.steps == []
    assert TOKEN not in shown + caplog.text


def test_messages_of_a_server_cannot_command_a_terminal() -> None:
    party = Script(failure(422, "unanswerable", "no\x1b[2J\x07 way")).party()
    with pytest.raises(Unanswerable) as caught:
        party.query(SQL, 1)
    assert str(caught.value) == "no [2J  way"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    server = Script(httpx2.Response(status, headers={"location": "https://evil.example.net/v1/query?x=1"}))
    party = server.party()
    with pytest.raises(ServerError, match=r"redirects to https://evil\.example\.net, and the token is not sent there"):
        party.query(SQL, 1)
    assert {request.url.host for request in server.requests} == {"idios.example.org"}


def test_importing_idios_does_not_import_httpx() -> None:
    code = "import sys, idios, idios.client; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_certificate_that_is_not_trusted() -> None:
    def untrusted(request: httpx2.Request) -> httpx2.Response:
        try:
            raise ssl.SSLCertVerificationError("certificate verify failed: self-signed certificate")
        except ssl.SSLError as error:
            raise httpx2.ConnectError(str(error), request=request) from error

    server = Script(untrusted)
    party = server.party()
    with pytest.raises(ServerError, match=r"cannot be trusted.*self-signed certificate.*SSL_CERT_FILE"):
        party.query(SQL, 1)
    assert server.pauses == []


def test_a_tls_connection_that_merely_ended_is_tried_again() -> None:
    def ended(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("EOF", request=request) from ssl.SSLEOFError("EOF")

    server = Script(ended, ok(ANSWER.to_dict()))
    assert server.party().query(SQL, 1) == ANSWER
