"""The server under load: 64 analysts on loopback, on SQLite and on PostgreSQL with two workers.

    python -m bench.server [SECONDS]

Every analyst asks new questions, now and then one of their old ones, and half of them run out of budget on the way.
Afterwards the ledger is held against what the clients saw: nothing overspent, no answer lost, the chain intact, memory
flat. The peer of a ratio is the same server's /healthz under the same clients: what HTTP alone costs on this machine.
Where others use its cores too, the server's own CPU for each request says more than their number.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from idios.config import read_configuration
from idios.ledger import Ledger
from idios.party import TrustedParty
from idios.sandbox import write_people
from tests.services.postgresql import PostgresqlServer
from tests.services.serving import Serving

ANALYSTS = 64
SECONDS = 60.0
EPSILON = Fraction(1, 20)
SMALL_CAP = EPSILON * 15
"""What every second analyst may spend: a few seconds of questions."""

STATISTICS = ("COUNT(*)", "MEDIAN(age)", "MEDIAN(income)")
"""A count, a median within bounds, and one without any."""

TOML = """
[ledger]
url = "{ledger}"
key_file = "ledger.key"

[server]
requests_per_minute = 100000
requests_per_minute_address = 10000000

[datasets.people]
source = "people.parquet"
version = "generated"
protection = "differential"
budget = 100000
release_seconds = {release}

[datasets.people.columns]
age = {{ type = "integer", bounds = [0, 120], nullable = false }}
income = {{ type = "integer", nullable = false }}
region = {{ type = "category", values = ["north", "south", "east", "west"] }}
"""


class Connection:
    """HTTP/1.1 on one kept connection, with as little of its own as possible: the server is what is measured."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: bench\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """One request; its status and body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        writer.write(
            f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(content)}\r\n\r\n".encode() + content
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        (length,) = (int(line.split(":")[1]) for line in head if line.startswith("content-length"))
        return int(head[0].split()[1]), await reader.readexactly(length)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


@dataclass
class Seen:
    """What the clients saw."""

    answers: dict[str, list[object]] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    refusals: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    contradictions: int = 0

    def count(self, status: int, wait: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        (self.waits if status == 200 else self.refusals).append(wait)

    def keep(self, answer: dict[str, object]) -> None:
        rows = [list(row.values())[-1] for row in answer["rows"]]  # type: ignore[attr-defined]
        if self.answers.setdefault(str(answer["id"]), rows) != rows:
            self.contradictions += 1


@dataclass(frozen=True)
class Result:
    """One run, and whether everything that must hold did."""

    name: str
    rate: float
    cpu: float
    plain_rate: float
    median: float
    p99: float
    refused: float
    statuses: dict[int, int]
    overspent: int
    lost: int
    intact: bool
    memory: tuple[float, float]

    @property
    def ok(self) -> bool:
        grown = self.memory[1] / self.memory[0]
        return not self.overspent and not self.lost and self.intact and grown < 1.2 and not self.statuses.get(500)

    def __str__(self) -> str:
        mark = "ok" if self.ok else "MISSED"
        ratio = self.rate / self.plain_rate
        return (
            f"{self.name:<44} {self.rate:7.0f}/s   CPU {1000 * self.cpu:5.1f} ms"
            f"   /healthz {self.plain_rate:6.0f}/s   ratio {ratio:5.2f}"
            f"   median {1000 * self.median:5.0f} ms   p99 {1000 * self.p99:5.0f} ms"
            f"   refusals {1000 * self.refused:5.0f} ms   overspent {self.overspent}"
            f"   lost {self.lost}   memory {self.memory[0]:.0f} → {self.memory[1]:.0f} MB   {self.statuses}   {mark}"
        )


async def analyst(number: int, port: int, token: str, seen: Seen, deadline: float) -> None:
    """Ask until the time is over: mostly new questions, now and then one asked before."""
    chance = random.Random(number)
    connection = Connection(port, token)
    asked: list[str] = []
    while time.monotonic() < deadline:
        if asked and chance.random() < 0.1:
            sql = chance.choice(asked)
        else:
            low = chance.randrange(100)
            high = chance.randrange(low + 1, 121)
            what = chance.choice(STATISTICS)
            sql = f"SELECT {what} FROM people WHERE age BETWEEN {low} AND {high} AND income > {number}"
        began = time.monotonic()
        status, content = await connection.send("POST", "/v1/query", {"sql": sql, "epsilon": str(EPSILON)})
        seen.count(status, time.monotonic() - began)
        if status == 200:
            asked.append(sql)
            seen.keep(json.loads(content))
        elif status == 503:
            await asyncio.sleep(1)
    connection.close()


async def plain(port: int, token: str, seconds: float) -> float:
    """Requests a second that do nothing, by as many clients."""
    deadline = time.monotonic() + seconds
    count = 0

    async def client() -> None:
        nonlocal count
        connection = Connection(port, token)
        while time.monotonic() < deadline:
            await connection.send("GET", "/healthz")
            count += 1
        connection.close()

    await asyncio.gather(*(client() for _ in range(ANALYSTS)))
    return count / seconds


@asynccontextmanager
async def watched(serving: Serving) -> AsyncIterator[list[float]]:
    """Megabytes of the server, every two seconds."""
    sizes: list[float] = []

    async def watch() -> None:
        while True:
            sizes.append(serving.memory() / 2**20)
            await asyncio.sleep(2)

    task = asyncio.create_task(watch())
    yield sizes
    task.cancel()


async def load(serving: Serving, tokens: list[str], seconds: float) -> tuple[Seen, float, float, list[float]]:
    seen = Seen()
    plain_rate = await plain(serving.port, tokens[0], min(5.0, seconds))
    computed = serving.processor_seconds()
    async with watched(serving) as sizes:
        deadline = time.monotonic() + seconds
        await asyncio.gather(*(analyst(i, serving.port, token, seen, deadline) for i, token in enumerate(tokens)))
    return seen, serving.processor_seconds() - computed, plain_rate, sizes


def run(name: str, folder: Path, ledger: str, release: str, options: tuple[str, ...], seconds: float) -> Result:
    """One server, one load, one reckoning."""
    config = folder / "idios.toml"
    config.write_text(TOML.format(ledger=ledger, release=release))
    write_people(folder / "people.parquet")
    with TrustedParty.from_config(config) as party:
        tokens = []
        for number in range(ANALYSTS):
            party.ledger.add_analyst(f"analyst {number}")
            party.ledger.grant(f"analyst {number}", "people", epsilon=SMALL_CAP if number % 2 else None)
            tokens.append(party.ledger.issue_token(f"analyst {number}").secret)
    with Serving(config, *options).wait() as serving:
        seen, computed, plain_rate, sizes = asyncio.run(load(serving, tokens, seconds))
        serving.stop()
    configuration = read_configuration(config)
    with Ledger.open(configuration.ledger_url, configuration.key_file) as book:
        stored = {one.key[:16]: one for one in book.answers("people")}
        overspent = sum(
            one.epsilon.spent > one.epsilon.budget for one in book.grants() if one.epsilon.budget is not None
        )
        overspent += book.balance("people").epsilon.spent != EPSILON * len(stored)
        lost = seen.contradictions + sum(
            id not in stored or [cells[-1] for cells in stored[id].table.cells] != rows
            for id, rows in seen.answers.items()
        )
        intact = book.verify().ok
    third = max(1, len(sizes) // 3)
    waits = sorted(seen.waits)
    return Result(
        name,
        (len(waits) + len(seen.refusals)) / seconds,
        computed / (len(waits) + len(seen.refusals)),
        plain_rate,
        waits[len(waits) // 2],
        waits[int(0.99 * len(waits))],
        statistics.median(seen.refusals or [0.0]),
        dict(sorted(seen.statuses.items())),
        overspent,
        lost,
        intact,
        # The first third is warming up.
        (statistics.median(sizes[third : 2 * third]), statistics.median(sizes[-third:])),
    )


@contextmanager
def postgresql() -> Iterator[str]:
    server = PostgresqlServer()
    yield server.url
    server.close()


def rows(seconds: float = SECONDS) -> Iterator[Result]:
    for release, said in (("0.25", "padded to 0.25 s"), ("0", "not padded")):
        with tempfile.TemporaryDirectory() as folder:
            yield run(f"SQLite, 1 worker, {said}", Path(folder), "sqlite:///ledger.db", release, (), seconds)
        with tempfile.TemporaryDirectory() as folder, postgresql() as url:
            yield run(f"PostgreSQL, 2 workers, {said}", Path(folder), url, release, ("--workers", "2"), seconds)


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    missed = 0
    for row in rows(seconds):
        print(row, flush=True)
        missed += not row.ok
    return missed


if __name__ == "__main__":
    sys.exit(main())
