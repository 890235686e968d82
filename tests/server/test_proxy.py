"""The proxy that deploy/nginx.conf describes, run by a real nginx in front of a real server."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

import idios
from idios.errors import InvalidInput
from idios.party import TrustedParty
from tests.server.office import MEDIAN, Tokens, let_in, write_office
from tests.services import require_program
from tests.services.nginx import Nginx
from tests.services.postgresql import free_port
from tests.services.serving import Serving
from tests.waiting import until


class Place:
    """A server behind its proxy, and its callers."""

    def __init__(self, nginx: Nginx, serving: Serving, tokens: Tokens) -> None:
        self.nginx = nginx
        self.serving = serving
        self.tokens = tokens

    def client(self, address: str = "127.0.0.1", **options: object) -> httpx2.Client:
        """A client that comes from an address of this machine."""
        transport = httpx2.HTTPTransport(verify=self.nginx.trust, local_address=address)
        return httpx2.Client(base_url=self.nginx.url, transport=transport, timeout=None, **options)  # type: ignore[arg-type]

    def connected(self) -> ssl.SSLSocket:
        """A connection over which nothing was sent yet."""
        plain = socket.create_connection(("127.0.0.1", self.nginx.port))
        return self.nginx.trust.wrap_socket(plain, server_hostname="localhost")


Open = Callable[..., Place]


@pytest.fixture(scope="module")
def open_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Starts a server and its proxy; both end with the module's tests."""
    require_program("nginx")
    with ExitStack() as stack:

        def start(environment: Mapping[str, str] | None = None, changed: Mapping[str, str] | None = None) -> Place:
            folder = tmp_path_factory.mktemp("proxy")
            config = write_office(folder)
            with TrustedParty.from_config(config) as party:
                tokens = let_in(party.ledger)
            options = ("--behind-proxy", "127.0.0.1")
            serving = stack.enter_context(Serving(config, *options, environment=dict(environment or {})))
            nginx = stack.enter_context(Nginx(folder / "nginx", serving.port, changed))
            return Place(nginx, serving.wait(), tokens)

        yield start


@pytest.fixture(scope="module")
def place(open_place: Open) -> Place:
    return open_place()


def test_a_question_is_answered_over_tls(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(place.nginx.certificate))
    with idios.connect(place.nginx.url, place.tokens.ada) as party:
        assert party.me.name == "ada"
        answer = party.query(MEDIAN, "0.5")
        assert answer.value > 0
        assert answer.remaining == 3.5


def test_the_console_signs_in_with_a_cookie_for_tls_alone(place: Place) -> None:
    """The origin names the port, as a browser's does where it is not the usual one."""
    with place.client(headers={"Origin": place.nginx.url, "Accept-Encoding": "gzip"}) as browser:
        answer = browser.post("/console/sign-in", data={"token": place.tokens.ada})
        assert (answer.status_code, answer.headers["Location"]) == (303, "/console")
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-idios_session=")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
        page = browser.get("/console/ask")
        assert page.status_code == 200
        assert "ada" in page.text
        assert "max-age" in page.headers["Strict-Transport-Security"]
        assert "Content-Encoding" not in page.headers
        assert "nginx/" not in page.headers.get("Server", "")


def test_another_sites_form_does_not_sign_in(place: Place) -> None:
    with place.client(headers={"Origin": "https://elsewhere.example.org"}) as browser:
        assert browser.post("/console/sign-in", data={"token": place.tokens.ada}).status_code == 403


def test_plain_http_is_refused(place: Place) -> None:
    for port in (place.nginx.plain_port, place.nginx.port):
        answer = httpx2.get(
            f"http://127.0.0.1:{port}/v1/me", headers={"Authorization": f"Bearer {place.tokens.ada}"}, timeout=None
        )
        assert answer.status_code in (400, 403)
        assert "ada" not in answer.text


def test_neither_questions_nor_tokens_are_in_the_logs(place: Place) -> None:
    with place.client(headers={"Authorization": f"Bearer {place.tokens.ada}"}) as ada:
        literal = "SELECT MEDIAN(age) FROM people WHERE income < 918273645"
        assert ada.post("/v1/query", json={"sql": literal, "epsilon": "0.5"}).status_code == 200
        ada.get("/console/ask", params={"sql": literal}, headers={"Referer": f"{place.nginx.url}/?{literal}"})
        httpx2.get(f"http://127.0.0.1:{place.nginx.plain_port}/console/ask", params={"sql": literal}, timeout=None)
    for line in (r"POST /v1/query 200 ", r"GET /console/ask 403 "):
        until(lambda line=line: re.search(rf"127\.0\.0\.1 \[.*\] {line}", place.nginx.logs()))
    written = place.nginx.logs()
    for secret in ("918273645", "SELECT", place.tokens.ada):
        assert secret not in written


def test_no_question_is_in_the_logs_of_a_proxy_without_a_server(tmp_path: Path) -> None:
    require_program("nginx")
    with Nginx(tmp_path / "nginx", free_port()) as nginx:
        transport = httpx2.HTTPTransport(verify=nginx.trust)
        with httpx2.Client(base_url=nginx.url, transport=transport, timeout=None) as somebody:
            assert somebody.get("/console/ask", params={"sql": "918273645"}).status_code == 502
        until(lambda: "GET /console/ask 502" in nginx.logs())  # nginx answers first and writes then
        assert "918273645" not in nginx.logs()


@pytest.mark.parametrize("size", [100_000, 900_000])
def test_a_body_that_is_too_long_is_refused_in_the_servers_words(place: Place, size: int) -> None:
    with place.client(headers={"Authorization": f"Bearer {place.tokens.ada}"}) as ada:
        answer = ada.post("/v1/query", json={"sql": "x" * size, "epsilon": "0.5"})
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "too_large"
        assert ada.post("/v1/query", content=b"x" * 3_000_000).status_code == 413


def test_the_client_tells_it_as_its_own_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(place.nginx.certificate))
    with (
        idios.connect(place.nginx.url, place.tokens.ada) as party,
        pytest.raises(InvalidInput, match="larger than this server reads"),
    ):
        party.quote("SELECT " + "x" * 100_000, "0.5")


def test_metrics_are_denied_to_other_machines(place: Place) -> None:
    headers = {"Authorization": f"Bearer {place.tokens.grace}"}
    with place.client(headers=headers) as here, place.client("127.0.0.2", headers=headers) as elsewhere:
        answer = here.get("/metrics")
        assert answer.status_code == 200
        assert "idios_requests_total" in answer.text
        assert elsewhere.get("/v1/me").json()["name"] == "grace"
        for path in ("/metrics", "/%6detrics"):
            assert elsewhere.get(path).status_code == 403, path


def test_a_forged_address_is_not_believed(open_place: Open) -> None:
    """A client who invents addresses stays one caller for the limits; one who comes from another is another."""
    place = open_place({"IDIOS_REQUESTS_PER_MINUTE_ADDRESS": "8"})
    statuses = []
    with place.client("127.0.0.3") as forger:
        while 429 not in statuses and len(statuses) < 100:
            claimed = f"203.0.113.{len(statuses)}"
            forged = dict.fromkeys(("X-Forwarded-For", "X-Real-IP", "Forwarded"), claimed)
            statuses.append(forger.get("/readyz", headers=forged).status_code)
    assert 429 in statuses
    with place.client("127.0.0.4") as another:
        assert another.get("/readyz").status_code == 200
    until(lambda: "127.0.0.3 " in place.nginx.logs())
    written = place.nginx.logs() + place.serving.log.read_text()
    assert "203.0.113." not in written


def test_slow_requests_are_closed(open_place: Open) -> None:
    """Headers have a time for all of them, so that a line now and then does not help."""
    limits = {
        "client_header_timeout 10s;": "client_header_timeout 1s;",
        "client_body_timeout 15s;": "client_body_timeout 1s;",
    }
    place = open_place(changed=limits)
    with place.connected() as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        slow.settimeout(0.2)
        assert _closes(slow, b"X-More: 1\r\n")
    with place.connected() as slow:
        slow.sendall(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        slow.settimeout(0.2)
        assert _closes(slow, b"")
    until(lambda: re.search(r" POST /v1/query 408 ", place.nginx.logs()))
    with place.client() as quick:
        assert quick.get("/healthz").status_code == 200


def _closes(connection: ssl.SSLSocket, piece: bytes) -> bool:
    """Whether the other side ends the connection, however slowly it does so, while pieces of a request are sent."""
    for _ in range(3000):
        try:
            connection.sendall(piece)
            if connection.recv(4096) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False
