"""A small trusted party behind the real application, with a controller, two analysts and their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from fastapi.testclient import TestClient

from idios.client import RemoteParty
from idios.client.transport import Transport, open_http
from idios.config import Configuration, read_configuration
from idios.errors import LedgerUnavailable
from idios.ledger import IssuedToken, Ledger, Role
from idios.ledger.store import Transactions
from idios.party import TrustedParty
from idios.server.app import create_app
from idios.server.service import Service

MEDIAN = "SELECT MEDIAN(income) FROM people"
BY_REGION = "SELECT region, COUNT(*) FROM people GROUP BY region"

TOML = """
[ledger]
url = "{ledger}"
key_file = "ledger.key"

[server]
requests_per_minute = 1000000
requests_per_minute_address = 1000000

[datasets.people]
source = "people.parquet"
shares_source = true
version = "1"
protection = "differential"
budget = {budget}
release_seconds = {release}

[datasets.people.columns]
age = {{ type = "integer", bounds = [0, 120], nullable = false }}
income = {{ type = "integer", nullable = false }}
region = {{ type = "category", values = ["north", "south"] }}

[datasets.patients]
source = "people.parquet"
shares_source = true
version = "1"
protection = "individual"
analysts = "trusted"
budget = 5

[datasets.patients.columns]
age = {{ type = "integer", bounds = [0, 120], nullable = false }}
income = {{ type = "integer", centre = 20000 }}
"""


CONCENTRATED = '{ epsilon = 5, delta = "1e-6" }\naccounting = "concentrated"'
"""A budget of people of which ρ is added up."""


def write_office(
    folder: Path,
    *,
    ledger: str = "sqlite:///ledger.db",
    release: str = "0",
    rows: int = 500,
    budget: str = "10",
) -> Path:
    """The configuration and the data of a small office."""
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "age": rng.integers(18, 90, rows),
            "income": np.round(rng.lognormal(10, 1, rows)).astype(np.int64),
            "region": rng.choice(["north", "south"], rows),
        }
    )
    parquet.write_table(table, folder / "people.parquet")
    config = folder / "idios.toml"
    config.write_text(TOML.format(ledger=ledger, release=release, budget=budget))
    return config


@dataclass(frozen=True)
class Tokens:
    """Who holds what: ada was granted people, bob nothing, grace is the controller."""

    ada: str
    bob: str
    grace: str


def let_in(ledger: Ledger, cap: Fraction | None = Fraction(4)) -> Tokens:
    """Add the analysts, their grants and all tokens."""
    for name in ("ada", "bob"):
        ledger.add_analyst(name)
    ledger.grant("ada", "people", epsilon=cap)
    return Tokens(
        ledger.issue_token("ada").secret,
        ledger.issue_token("bob").secret,
        ledger.issue_token("grace", role=Role.CONTROLLER).secret,
    )


@dataclass(frozen=True)
class Office:
    """A running application and the tokens of those who use it."""

    client: TestClient
    tokens: Tokens
    service: Service
    configuration: Configuration

    @property
    def ledger(self) -> Ledger:
        return self.service.party.ledger

    def call(self, method: str, path: str, who: str | None = "ada", **options: Any) -> Any:
        """One request with a caller's token; None is without one."""
        headers = dict(options.pop("headers", {}))
        if who is not None:
            headers["Authorization"] = f"Bearer {getattr(self.tokens, who, who)}"
        return self.client.request(method, path, headers=headers, **options)

    def ask(self, sql: str = MEDIAN, epsilon: str = "0.5", who: str = "ada", **options: Any) -> Any:
        """A question over HTTP."""
        headers = options.pop("headers", {})
        return self.call("POST", "/v1/query", who, json={"sql": sql, "epsilon": epsilon, **options}, headers=headers)


def open_office(config: Path, **settings: Any) -> Office:
    """The application, not yet entered."""
    party = TrustedParty.from_config(config)
    return _served(config, party, let_in(party.ledger), settings)


def open_another(office: Office, config: Path, **settings: Any) -> Office:
    """The same application as a second process would run it: on the same ledger, for the same people."""
    return _served(config, TrustedParty.from_config(config), office.tokens, settings)


@contextmanager
def connect_office(folder: Path, who: str = "ada") -> Iterator[RemoteParty]:
    """A client of a small office, in this process and without a network."""
    office = open_office(write_office(folder))

    def send(request: httpx2.Request) -> httpx2.Response:
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        path = request.url.raw_path.decode()
        reply = office.client.request(request.method, path, content=request.read(), headers=headers)
        return httpx2.Response(reply.status_code, content=reply.content, headers=dict(reply.headers))

    token = getattr(office.tokens, who)
    http = open_http("http://127.0.0.1:8000", token, transport=httpx2.MockTransport(send))
    with office.client, RemoteParty(Transport(http, token, 900)) as party:
        yield party


def break_after_issuing(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the ledger's next reads fail as soon as a token was issued."""
    issue = Ledger.issue_token

    def issue_and_break(ledger: Ledger, *args: Any, **options: Any) -> IssuedToken:
        issued = issue(ledger, *args, **options)
        monkeypatch.setattr(Transactions, "reading", fail)
        return issued

    def fail(transactions: Transactions) -> None:
        raise LedgerUnavailable("the disk is full")

    monkeypatch.setattr(Ledger, "issue_token", issue_and_break)


def _served(config: Path, party: TrustedParty, tokens: Tokens, settings: dict[str, Any]) -> Office:
    configuration = read_configuration(config, {})
    service = Service.start(party, configuration.datasets, replace(configuration.server, **settings))
    return Office(TestClient(create_app(service), raise_server_exceptions=False), tokens, service, configuration)
