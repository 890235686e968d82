"""One caller crowds a server, another wants an answer: how long does that one wait, and how much is logged?

    python -m bench.crowding [quotes | replies | idle]

1. 45 quotes at once, each as expensive to plan as was known when planning was not counted; meanwhile another analyst
   asks for a budget, and a monitor for /readyz and /healthz.
2. 60 connections ask for 20 s, without a pause, for all that is free and long: an answer that is stored and as long as
   one may be, heavy quotes, the sandbox, lists and pages; six more never read their replies. Meanwhile another analyst
   asks for a budget, from a process of their own.
3. 2,000 connections that say nothing, to a server that may open 1,024 files; meanwhile an analyst asks for a budget.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.server import Connection
from idios.party import TrustedParty
from idios.sandbox import write_people
from tests.services.serving import Serving

QUOTES = 45
CROWD, UNREAD = 60, 6
CROWDED_SECONDS, PAUSE = 20.0, 0.02
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
            tokens = [party.ledger.issue_token(name).secret for name in ("ada", "bob")]
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


def write_long(items: int) -> str:
    """A question of one statistic whose answer is long."""
    listed = ", ".join(f'COUNT(*) AS "{"a long name " * 8}{i}"' for i in range(items))
    return f"SELECT BIN(income, 20), {listed} FROM people GROUP BY BIN(income, 20)"


def watch(port: int, token: str, seconds: float, pipe: Any) -> None:
    """Ask for a budget again and again; how long each took."""

    async def ask() -> list[float]:
        connection, waits, until = Connection(port, token), [], time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            status, _ = await connection.send("GET", "/v1/budget")
            waits.append(time.monotonic() - began)
            if status != 200:
                raise AssertionError(f"/v1/budget: status {status}")
            await asyncio.sleep(PAUSE)
        connection.close()
        return waits

    pipe.send(asyncio.run(ask()))


async def replies(serving: Serving, one: str, other: str) -> None:
    first, items = Connection(serving.port, one), 165
    while items > 1 and (await first.send("POST", "/v1/quote", {"sql": write_long(items), "epsilon": "1"}))[0] != 200:
        items -= 2
    long = {"sql": write_long(items), "epsilon": "1"}
    status, content = await first.send("POST", "/v1/query", long)
    print(f"{items} columns: an answer of {len(content) / 2**20:.1f} MiB (status {status})", flush=True)
    sent: list[tuple[str, int]] = []
    asked: list[tuple[str, str, Any]] = [
        ("POST", "/v1/query", long),
        ("POST", "/v1/quote", {"sql": HEAVY, "epsilon": "200"}),
        ("POST", "/v1/query", long),
        ("POST", "/v1/sandbox", long),
        ("GET", "/v1/answers?limit=500", None),
        ("GET", "/v1/datasets", None),
    ]

    async def flood(number: int, until: float) -> None:
        connection = Connection(serving.port, one)
        while time.monotonic() < until:
            method, path, body = asked[number % len(asked)]
            try:
                status, _ = await connection.send(method, path, body)
            except (OSError, asyncio.IncompleteReadError):
                connection = Connection(serving.port, one)
                status = 0
            sent.append((path, status))
            number += 1
            await asyncio.sleep(0.05 if status in (429, 503) else 0)
        connection.close()

    async def leave_unread() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port, limit=1024)
        body = json.dumps(long).encode()
        head = f"POST /v1/query HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {one}\r\nContent-Length: {len(body)}"
        writer.write(f"{head}\r\nContent-Type: application/json\r\n\r\n".encode() + body)
        await asyncio.sleep(CROWDED_SECONDS)
        writer.close()
        del reader

    for crowded in (False, True):
        here, there = multiprocessing.Pipe()
        watching = multiprocessing.Process(target=watch, args=(serving.port, other, CROWDED_SECONDS, there))
        before, until = serving.processor_seconds(), time.monotonic() + CROWDED_SECONDS
        watching.start()
        most = 0
        crowd = [asyncio.create_task(flood(number, until)) for number in range(CROWD)] if crowded else []
        crowd += [asyncio.create_task(leave_unread()) for _ in range(UNREAD)] if crowded else []
        while watching.is_alive() and not here.poll():
            most = max(most, serving.memory())
            await asyncio.sleep(0.1)
        waits = sorted(here.recv())
        watching.join()
        said = "crowded" if crowded else "alone"
        print(
            f"{said}: /v1/budget {len(waits)} times, p50 {statistics.median(waits) * 1000:.0f} ms, "
            f"p99 {waits[int(0.99 * len(waits))] * 1000:.0f} ms, worst {waits[-1] * 1000:.0f} ms; the server computed "
            f"{serving.processor_seconds() - before:.1f} s and held at most {most / 2**20:.0f} MiB",
            flush=True,
        )
        for task in crowd:
            task.cancel()
    for (path, status), count in sorted(Counter(sent).items()):
        print(f"  {path:<24} status {status}: {count}", flush=True)


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


def main(chosen: Sequence[str]) -> int:
    if not chosen or "quotes" in chosen:
        with served() as (serving, one, other):
            asyncio.run(quotes(serving, one, other))
    if not chosen or "replies" in chosen:
        with served() as (serving, one, other):
            asyncio.run(replies(serving, one, other))
    if not chosen or "idle" in chosen:
        with served(FILES) as (serving, one, _):
            asyncio.run(idle(serving, one))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
