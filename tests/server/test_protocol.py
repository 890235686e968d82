"""Connections that send nothing, or too slowly, or do not read, keep no other client out."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from idios.config import Settings
from idios.server import startup
from idios.server.logs import EACH_MINUTE, JsonFormatter, Throttle
from idios.server.startup import BACKLOG, MOST, EventLoop, GuardedProtocol, most_connections
from tests.server.office import write_office
from tests.waiting import until

HELLO = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"


class Site:
    """A small application behind the real protocol."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.entered = threading.Event()
        self.length = 2
        self.port = 0
        self.state: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            self.entered.set()
            while not self.opened.is_set():
                await asyncio.sleep(0.01)
        head = [(b"content-length", str(self.length).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        for at in range(0, self.length, 100_000):
            part = b"x" * min(100_000, self.length - at)
            await send({"type": "http.response.body", "body": part, "more_body": at + 100_000 < self.length})

    def open(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        client.sendall(sent)
        return client

    def answers(self) -> bool:
        with self.open(HELLO) as client:
            return client.recv(12) == b"HTTP/1.1 200"


@contextmanager
def served(**options: Any) -> Iterator[Site]:
    site = Site()
    listener = socket.create_server(("127.0.0.1", 0))
    site.port = listener.getsockname()[1]
    config = uvicorn.Config(
        site, http=GuardedProtocol, log_config=None, lifespan="off", loop="asyncio", backlog=BACKLOG, **options
    )
    server = uvicorn.Server(config)
    site.state = server.server_state
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        yield site
    finally:
        site.opened.set()
        server.should_exit = True
        thread.join(20)
        listener.close()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(startup, "HEADER_SECONDS", 0.2)
    with served() as running:
        yield running


def ended(client: socket.socket) -> bool:
    try:
        while client.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def test_a_connection_that_says_nothing_is_closed(site: Site) -> None:
    with site.open() as client:
        assert ended(client)


CHUNKED, SIZED = b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n"


@pytest.mark.parametrize("before", [b"", HELLO], ids=["first", "later"])
@pytest.mark.parametrize(
    ("version", "headers"),
    [
        (b"1.1", CHUNKED + SIZED),
        (b"1.1", SIZED + b"X: y\r\n" + CHUNKED.upper()),
        (b"1.0", CHUNKED),
        (b"1.1", SIZED + b"Content-Length: 6\r\n"),
        (b"1.1", CHUNKED + CHUNKED),
    ],
)
def test_a_request_whose_length_is_told_in_two_ways_is_refused(
    before: bytes, version: bytes, headers: bytes, site: Site
) -> None:
    """What follows it is not read as a request: a proxy in front may take it for something else."""
    head = b"POST / HTTP/" + version + b"\r\nHost: test\r\n" + headers + b"\r\n"
    with site.open(before + head + b"0\r\n\r\n" + HELLO) as client:
        replies = b""
        while part := client.recv(4096):
            replies += part
    codes = [part[:3] for part in replies.split(b"HTTP/1.1 ")[1:]]
    assert codes[: len(codes) - 1] == ([b"200"] if before else [])
    assert codes[-1] in (b"400", b"501")
    assert site.answers()


@pytest.mark.parametrize("headers", [CHUNKED, b"Content-Length: 5\r\n"])
def test_a_request_whose_length_is_told_in_one_way_is_answered(headers: bytes, site: Site) -> None:
    with site.open(b"POST / HTTP/1.1\r\nHost: test\r\n" + headers + b"\r\n0\r\n\r\n") as client:
        assert client.recv(12) == b"HTTP/1.1 200"


def test_headers_that_drip_are_not_waited_for(site: Site) -> None:
    with site.open(b"GET / HTTP/1.1\r\n") as client:
        client.settimeout(0.02)
        for _ in range(500):
            try:
                client.sendall(b"X: y\r\n")
                assert client.recv(1) == b""
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the connection is still open")


def test_a_body_that_drips_after_the_reply_is_not_waited_for(site: Site) -> None:
    with site.open(b"GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 60000\r\n\r\n") as client:
        assert client.recv(12) == b"HTTP/1.1 200"
        client.settimeout(0.02)
        for _ in range(500):
            try:
                client.sendall(b"x")
                if client.recv(4096) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the connection is still open")


def test_a_request_on_its_way_has_all_the_time_it_needs(site: Site) -> None:
    with site.open(HELLO.replace(b"/ ", b"/slow ")) as client:
        assert site.entered.wait(10)
        with site.open() as other:
            assert ended(other)  # a whole header time later
        site.opened.set()
        assert client.recv(12) == b"HTTP/1.1 200"


def test_whoever_speaks_takes_the_place_of_whoever_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "most_connections", lambda: 4)
    with served() as site:
        slow = site.open(HELLO.replace(b"/ ", b"/slow "))
        assert site.entered.wait(10)
        idle = [site.open() for _ in range(20)]
        assert site.answers()
        until(lambda: len(site.state.connections) <= 4)
        assert all(ended(client) for client in idle[:16])
        site.opened.set()
        assert slow.recv(12) == b"HTTP/1.1 200"
        assert site.answers()
        for client in (slow, *idle):
            client.close()


def test_where_all_are_at_work_a_new_one_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "most_connections", lambda: 2)
    with served() as site:
        busy = [site.open(HELLO.replace(b"/ ", b"/slow ")) for _ in range(2)]
        until(lambda: len(site.state.tasks) == 2)
        with site.open() as client:
            assert ended(client)
        site.opened.set()
        assert [client.recv(12) for client in busy] == [b"HTTP/1.1 200"] * 2
        for client in busy:
            client.close()


def test_a_client_who_does_not_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "WRITE_SECONDS", 0.2)
    with served() as site:
        site.length = 100_000_000
        with site.open(HELLO):
            until(lambda: len(site.state.tasks) == 1)
            until(lambda: not site.state.connections)


def test_half_of_the_files_are_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"soft": 1024}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limits["soft"], resource.RLIM_INFINITY))
    found = {}
    for limits["soft"] in (8, 1024, 10**6, resource.RLIM_INFINITY):
        found[limits["soft"]] = most_connections()
    assert found == {8: 16, 1024: 512, 10**6: MOST, resource.RLIM_INFINITY: MOST}
    # several rounds of accepting may pass before a connection that was cut gives its file back
    assert 512 + 4 * BACKLOG < 1024


def test_a_handshake_has_as_long_as_headers_have(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    async def create_server(_: Any, *args: Any, **options: Any) -> None:
        given.update(options)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "create_server", create_server)
    loop = EventLoop()
    try:
        loop.run_until_complete(loop.create_server(None, ssl=object()))
        assert given["ssl_handshake_timeout"] == startup.HEADER_SECONDS
    finally:
        loop.close()


def test_the_server_is_started_with_these_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **options: seen.update(options))
    monkeypatch.setattr(startup, "create_worker_app", lambda path: None)
    monkeypatch.setattr(startup.signal, "signal", lambda *given: None)
    monkeypatch.setattr(startup.os, "environ", {})
    startup.run(write_office(tmp_path), Settings())
    config = uvicorn.Config("no:app", **seen)
    assert config.http is GuardedProtocol
    assert config.get_loop_factory() is EventLoop
    assert (config.backlog, config.ws) == (BACKLOG, "none")


class Kept(logging.Handler):
    def __init__(self, clock: Any) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(JsonFormatter())
        self.addFilter(Throttle(clock=clock))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def test_lines_that_repeat_are_held_back() -> None:
    now = 0.0
    kept = Kept(lambda: now)
    logger = logging.Logger("idios.server")
    logger.addHandler(kept)
    for i in range(1000):
        logger.error("socket.accept() out of system resource\nsocket: %s", i)
        logger.info("request", extra={"fields": {"status": 429}})
    assert len(kept.lines) == 2 * EACH_MINUTE
    now = 61.0
    logger.error("socket.accept() out of system resource\nsocket: %s", 7)
    assert f'"held_back": {1000 - EACH_MINUTE}' in kept.lines[-1]


def test_lines_of_requests_and_different_lines_are_all_written() -> None:
    kept = Kept(lambda: 0.0)
    logger = logging.Logger("idios.server")
    logger.addHandler(kept)
    for i in range(100):
        logger.info("request", extra={"fields": {"status": 200 if i % 2 else 401}})
        logger.warning(f"something else {i}")
    assert len(kept.lines) == 200


def test_a_line_has_nothing_that_a_terminal_obeys() -> None:
    logger, kept = logging.Logger("idios.server"), Kept(lambda: 0.0)
    logger.addHandler(kept)
    path = "/\x9b2J\x1b[31m\u202e\x7f\U000e0001"
    logger.info("request", extra={"fields": {"path": path}})
    assert kept.lines[-1].isprintable()
    assert json.loads(kept.lines[-1])["path"] == path
