"""One caller crowds a server, another wants an answer: how long does that one wait, and how much is logged?

    python -m bench.crowding

1. 45 quotes at once, each as expensive to plan as was known when planning was not counted; meanwhile another analyst
   asks for a budget, and a monitor for /readyz and /healthz.
2. 2,000 connections that say nothing, to a server that may open 1,024 files; meanwhile an analyst asks for a budget.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from bench.server import Connection
from idios.party import TrustedParty
from idios.sandbox import write_people
from tests.services.serving import Serving

QUOTES = 45
IDLE = 2000
FILES = 1024
SECONDS = 60.0
PATIENCE = 400.0
LISTED = ", ".join(str(7 * i % 20_000) for i in range(2900))
HEAVY = (
    f"SELECT BIN(income, 20), COUNT(*) FROM people WHERE age > 3 AND NOT income IN ({LISTED}) GROUP BY BIN(income, 20)"
)

TOML = """
[ledger]
url = "sqlite:///ledger.db"
key_file = "ledger.key"

[server]
requests_per_minute = 100000
requests_per_minute_address = 10000000

[datasets.people]
source = "people.parquet"
version = "generated"
protection = "differential"
budget = 1000

[datasets.people.columns]
age = { type = "integer", bounds = [0, 120], nullable = false }
income = { type = "integer", bounds = [0, 19999] }
"""


@contextmanager
def served(files: int | None = None) -> Iterator[tuple[Serving, str, str]]:
    """A server with two analysts, who has so many files at most."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "idios.toml"
        config.write_text(TOML)
        write_people(Path(folder) / "people.parquet")
        with TrustedParty.from_config(config) as party:
            for name in ("ada", "bob"):
                party.ledger.add_analyst(name)
                party.ledger.grant(name, "people", epsilon=Fraction(100))
            tokens = [party.ledger.issue_token(name) for name in ("ada", "bob")]
        own = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files or own[0], own[1]))  # the server inherits it
        serving = Serving(config)
        resource.setrlimit(resource.RLIMIT_NOFILE, (own[1], own[1]))
        with serving.wait():
            yield serving, tokens[0], tokens[1]


async def timed(request: Awaitable[tuple[int, bytes]]) -> str:
    began = time.monotonic()
    try:
        status, _ = await asyncio.wait_for(request, PATIENCE)
        return f"{time.monotonic() - began:7.2f} s (status {status})"
    except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        return f"{time.monotonic() - began:7.2f} s without an answer ({type(error).__name__})"


async def quotes(serving: Serving, one: str, other: str) -> None:
    async def flood() -> None:
        connection = Connection(serving.port, one)
        await connection.send("POST", "/v1/quote", {"sql": HEAVY, "epsilon": "200"})
        connection.close()

    began = time.monotonic()
    flooding = [asyncio.create_task(flood()) for _ in range(QUOTES)]
    await asyncio.sleep(0.5)
    looks = {
        path: timed(Connection(serving.port, other).send("GET", path)) for path in ("/v1/budget", "/readyz", "/healthz")
    }
    for path, found in zip(looks, await asyncio.gather(*looks.values()), strict=True):
        print(f"{QUOTES} heavy quotes, {path:<12} {found}", flush=True)
    await asyncio.gather(*flooding, return_exceptions=True)
    print(f"{QUOTES} heavy quotes, all answered {time.monotonic() - began:7.2f} s", flush=True)


async def idle(serving: Serving, token: str) -> None:
    began, before = time.monotonic(), serving.log.stat().st_size
    opened: list[asyncio.StreamWriter] = []

    async def open_one() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        opened.append(writer)

    async def hold() -> None:
        """As many as there may be, and a new one for each that was closed."""
        while True:
            open_now = [writer for writer in opened if not writer.transport.is_closing()]
            opened[:] = open_now
            await asyncio.gather(*(open_one() for _ in range(IDLE - len(open_now))), return_exceptions=True)
            await asyncio.sleep(0.5)

    holding = asyncio.create_task(hold())
    await asyncio.sleep(3)
    waits = [await timed(Connection(serving.port, token).send("GET", "/v1/budget")) for _ in range(3)]
    print(f"{IDLE} idle connections, {FILES} files, /v1/budget: {', '.join(waits)}", flush=True)
    await asyncio.sleep(max(0.0, SECONDS - (time.monotonic() - began)))
    print(
        f"{IDLE} idle connections for a minute, /v1/budget: "
        f"{await timed(Connection(serving.port, token).send('GET', '/v1/budget'))}",
        flush=True,
    )
    holding.cancel()
    with serving.log.open("rb") as log:
        log.seek(before)
        written = log.read()
    minutes = (time.monotonic() - began) / 60
    lines, kilobytes = written.count(b"\n") / minutes, len(written) / minutes / 1000
    print(f"{IDLE} idle connections: {lines:,.0f} lines and {kilobytes:,.1f} kB of log a minute", flush=True)


def main() -> int:
    with served() as (serving, one, other):
        asyncio.run(quotes(serving, one, other))
    with served(FILES) as (serving, one, _):
        asyncio.run(idle(serving, one))
    return 0


if __name__ == "__main__":
    sys.exit(main())
