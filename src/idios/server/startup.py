"""From a configuration, or from the demonstration's own, to a running server; and what is checked before."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import h11
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from idios.config import PREFIX, Configuration, Settings, read_configuration
from idios.data.formats.resources import TemporaryFolder, divide_memory
from idios.errors import ConfigurationError, LedgerError
from idios.ledger import Ledger, Role
from idios.party import TrustedParty
from idios.sandbox import write_people
from idios.server import logs
from idios.server.app import create_app
from idios.server.catalogue import check_levels
from idios.server.metrics import FILES
from idios.server.service import Service

# Connections: how many there are, how long one may be idle, and how long its client may not read.
#
# Rules:
#
# 1. A connection without a request on its way is idle. It has HEADER_SECONDS from its first byte, or from its
#    beginning, to send all of its headers; between two requests it has the server's keep-alive time.
# 2. There are at most half as many connections as files that the process may open; the other half is for the ledger,
#    the data and replies. One more takes the place of the connection that has been idle longest, so that a client who
#    sends a request at once is served; if none is idle, the new one is closed.
# 3. A client who does not read a reply for WRITE_SECONDS is disconnected.
# 4. A request whose length is told in two ways, or in one that its version of HTTP does not have, is refused, and its
#    connection closed: a proxy in front may have cut it elsewhere, and what follows would be another client's request.
#
# A TLS connection counts here once its handshake is done, for which it has HEADER_SECONDS too.


HEADER_SECONDS = 10.0
WRITE_SECONDS = 60.0
KEEP_ALIVE_SECONDS = 30
BACKLOG = 64
"""How many connections are accepted before any of them is counted; the kernel keeps as many waiting."""
MOST, LEAST = 4096, 16

_IDLE: WeakKeyDictionary[ServerState, OrderedDict[GuardedProtocol, None]] = WeakKeyDictionary()
"""The idle connections of each server, the longest idle first."""


def most_connections() -> int:
    """How many connections one process keeps: half of the files it may open (``ulimit -n``)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(LEAST, min(MOST, soft // 2))


class _Timer:
    """Calls an action after a delay, unless it is stopped; starting one that runs changes nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float, action: Callable[[], None]) -> None:
        if self._handle is None:
            self._handle = self._loop.call_later(seconds, action)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's event loop, with a shorter timeout of TLS handshakes than its minute."""

    async def create_server(self, *given: Any, **options: Any) -> asyncio.Server:
        """Listen."""
        if options.get("ssl"):
            options.setdefault("ssl_handshake_timeout", HEADER_SECONDS)
        return await super().create_server(*given, **options)


class _StrictConnection(h11.Connection):
    """h11's parser, which by itself lets Transfer-Encoding win over Content-Length."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Parse the next event."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("Transfer-Encoding beside Content-Length, or in a request of HTTP/1.0")
        return event


class GuardedProtocol(H11Protocol):
    """uvicorn's protocol, by the rules above."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        size = self.config.h11_max_incomplete_event_size
        self.conn = _StrictConnection(h11.SERVER, **({} if size is None else {"max_incomplete_event_size": size}))
        self._idle = _IDLE.setdefault(self.server_state, OrderedDict())
        self._header_timer, self._write_timer = _Timer(self.loop), _Timer(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, or the place of the connection that has been idle longest if none is left."""
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            if not self._idle:
                self._cut()
                return
            next(iter(self._idle))._cut()
        self._idle[self] = None
        self._header_timer.start(HEADER_SECONDS, self._cut)

    def data_received(self, data: bytes) -> None:
        """Read, and note whether a request is on its way now."""
        super().data_received(data)
        self._look()
        if not self._at_work and not self.transport.is_closing():
            self._header_timer.start(HEADER_SECONDS, self._cut)

    def on_response_complete(self) -> None:
        """Become idle again, unless the next request is there already."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Start the timeout of a client who does not read."""
        super().pause_writing()
        self._write_timer.start(WRITE_SECONDS, self._cut)

    def resume_writing(self) -> None:
        """Stop that timeout: the client has read."""
        super().resume_writing()
        self._write_timer.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._forget()
        super().connection_lost(exc)

    @property
    def _at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _look(self) -> None:
        if self._at_work:
            self._idle.pop(self, None)
            self._header_timer.stop()
        elif self in self.connections:
            self._idle.setdefault(self, None)

    def _cut(self) -> None:
        self._forget()
        self.connections.discard(self)  # at once: the transport calls connection_lost only later
        self.transport.abort()

    def _forget(self) -> None:
        self._idle.pop(self, None)
        self._header_timer.stop()
        self._write_timer.stop()


CONFIG = "IDIOS_CONFIG"
ATTEMPTS = 12
THREAD_SECONDS = 5.0
"""How long threads have to end once everything is closed."""
SWITCH_SECONDS = 0.0005
"""After so long a thread that plans or renders makes room: a short request needs the interpreter a dozen times."""
DEMO = """\
[ledger]
url = "sqlite:///ledger.db"
key_file = "ledger.key"

[datasets.people]
source = "people.parquet"
version = "generated"
protection = "differential"
budget = 10

[datasets.people.columns]
age = { type = "integer", bounds = [0, 120], nullable = false }
income = { type = "integer", nullable = false }
region = { type = "category", values = ["north", "south", "east", "west"] }
"""

log = logging.getLogger("idios.server")


def load_configuration(config: Path) -> Configuration:
    """Read a configuration that may be served: its levels, and a ledger whose end and permissions are what was signed.

    Each process verifies the whole chain while it already answers: every row that it relies on has its proof.
    """
    configuration = read_configuration(config)
    check_levels(configuration.datasets.values())
    with Ledger.open(configuration.ledger_url, configuration.key_file) as ledger:
        ledger.check()
    return configuration


def list_address_risks(settings: Settings) -> list[str]:
    """List what is risky about where the server listens."""
    risks = []
    local = settings.host in ("localhost", "::1") or settings.host.startswith("127.")
    if not (local or settings.tls_cert or settings.behind_proxy):
        risks.append("Tokens travel in the clear: give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy")
    if settings.believes_anybody:
        risks.append(
            f"--behind-proxy {settings.behind_proxy} believes any client about their address, so that no limit by "
            "address holds, not even on failed sign-ins: name the address of the proxy alone"
        )
    return risks


def check_address(settings: Settings) -> None:
    """Refuse an address or a certificate that cannot be used, in one line and before anything is opened."""
    if settings.tls_cert:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key or None)
        except OSError as error:  # an SSLError is one too
            raise ConfigurationError(
                f"the certificate {settings.tls_cert} with the key {settings.tls_key} cannot be used: "
                f"{error.strerror or error}"
            ) from None
    try:
        family, kind, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        raise ConfigurationError(
            f"the server cannot listen on {settings.host} port {settings.port}: {error.strerror}; choose another with "
            "--host and --port"
        ) from None


def list_next_steps(configuration: Configuration) -> list[str]:
    """List what a controller still has to do before they or an analyst can sign in."""
    with Ledger.open(configuration.ledger_url, configuration.key_file) as ledger:
        roles = {token.role for token in ledger.tokens() if token.revoked is None}
    hints = {
        Role.CONTROLLER: "No controller has a token yet: idios analyst token NAME --controller",
        Role.ANALYST: "No analyst has a token yet: idios analyst add NAME, then grant NAME DATASET, then token NAME",
    }
    return [hint for role, hint in hints.items() if role not in roles]


def verify_ledger(ledger: Ledger, wait: float = 5) -> None:
    """Verify the whole chain, and let the ledger answer nothing more if it is not what was signed."""
    log.info("verifying the ledger")
    for _ in range(ATTEMPTS):
        try:
            result = ledger.verify()
        except LedgerError as error:
            log.warning("the ledger cannot be verified yet", extra={"fields": {"problem": str(error)}})
            time.sleep(wait)
            continue
        if result.ok:
            log.info("verified the ledger", extra={"fields": {"entries": result.entries, "head": str(result.head)}})
        else:
            ledger.health.distrust(str(result))
        return
    ledger.health.distrust("the ledger could not be verified")


def create_worker_app(config: Path | None = None) -> FastAPI:
    """Make the application of one process; a worker finds its configuration in the environment."""
    logs.configure_logging()
    sys.setswitchinterval(SWITCH_SECONDS)
    path = config or Path(os.environ[CONFIG])
    configuration = read_configuration(path)
    with divide_memory(configuration.server.workers):
        party = TrustedParty.from_config(path, retired=False)
    threading.Thread(target=verify_ledger, args=(party.ledger,), name="verification", daemon=True).start()
    app = create_app(Service.start(party, configuration.datasets, configuration.server), end_threads)
    # What is here now stays: to look through it for garbage would hold up every question for a tenth of a second.
    gc.collect()
    gc.freeze()
    return app


def end_threads() -> None:
    """Let the process end soon: Python waits for threads, and so for ever for one that never ends."""

    def leave() -> None:
        log.warning("a thread did not end")
        os._exit(0)

    timer = threading.Timer(THREAD_SECONDS, leave)
    timer.daemon = True  # it runs for as long as another thread keeps the process, and no longer
    timer.start()


def run(config: Path, settings: Settings) -> None:
    """Serve until told to stop."""
    import uvicorn

    if settings.workers > 1 and read_configuration(config).ledger_url == "sqlite://":
        raise ConfigurationError("several workers need a ledger that they can share, not one in memory")
    options: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "workers": settings.workers,  # always given: else uvicorn reads an environment variable of its own
        "proxy_headers": bool(settings.behind_proxy),
        "forwarded_allow_ips": settings.proxies or None,
        "http": GuardedProtocol,
        "ws": "none",
        "loop": "idios.server.startup:EventLoop",
        "backlog": BACKLOG,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        # The question queue gives running questions their time; a little more lets it finish its own work.
        "timeout_graceful_shutdown": settings.shutdown_seconds + 10,
        "h11_max_incomplete_event_size": 32_768,
    }
    if settings.tls_cert:
        options |= {"ssl_certfile": settings.tls_cert, "ssl_keyfile": settings.tls_key}
    # uvicorn shuts down gracefully and then raises the signal again; this makes it an ordinary exit, with clean-up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.environ |= {CONFIG: str(config.resolve()), **_environment(settings)}
    if settings.workers == 1:
        uvicorn.run(create_worker_app(config), **options)
        return
    with TemporaryFolder("metrics") as folder:
        os.environ[FILES] = folder
        uvicorn.run("idios.server.startup:create_worker_app", factory=True, **options)


def _environment(settings: Settings) -> dict[str, str]:
    """The settings as a worker reads them."""
    plain = vars(settings).items()
    return {PREFIX + key.upper(): str(value).lower() if isinstance(value, bool) else str(value) for key, value in plain}


@contextmanager
def open_demo() -> Iterator[tuple[Path, list[str]]]:
    """Write a configuration of generated people in a temporary folder, and say what to tell the person who tries it."""
    with TemporaryFolder("demo") as folder:
        config = Path(folder) / "idios.toml"
        config.write_text(DEMO, encoding="utf-8")
        write_people(Path(folder) / "people.parquet")
        with TrustedParty.from_config(config) as party:
            ledger = party.ledger
            ledger.add_analyst("ada")
            ledger.grant("ada", "people", epsilon=Fraction(3))
            analyst = ledger.issue_token("ada").secret
            controller = ledger.issue_token("grace", role=Role.CONTROLLER).secret
        yield (
            config,
            [
                "Generated data, a budget of ε = 10, of which ada may spend 3. Everything is gone when this ends.",
                f"  the analyst ada signs in with       {analyst}",
                f"  the controller grace signs in with  {controller}",
            ],
        )
