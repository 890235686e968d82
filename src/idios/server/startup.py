"""From a configuration, or from the demonstration's own, to a running server; and what is checked before."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from fastapi import FastAPI

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
from idios.server.protocol import BACKLOG, KEEP_ALIVE_SECONDS, GuardedProtocol
from idios.server.service import Service

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
        "loop": "idios.server.protocol:EventLoop",
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
