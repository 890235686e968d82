"""Where a test's ledger lives: the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, NullPool, Select, create_engine, make_url, select, text

from idios.ledger import ChargeRequest, Declaration, Ledger, Promise
from idios.ledger.facts import UNSAID
from idios.ledger.tables import metadata

WORKER = Path(__file__).with_name("ledger_worker.py")


@dataclass(frozen=True)
class Place:
    """An address and a key file, and raw access behind the ledger's back."""

    engine: str
    url: str
    key_file: Path

    def open(self, **options: Any) -> Ledger:
        return Ledger.open(self.url, self.key_file, **options)

    def execute(self, statement: str, **parameters: Any) -> list[Any]:
        """Run SQL without the ledger, as an intruder with access to its database could."""
        with self._raw().begin() as connection:
            result = connection.execute(text(statement), parameters)
            return list(result) if result.returns_rows else []

    def copied(self, *tables: str) -> dict[str, list[dict[str, Any]]]:
        """Every row of some of the ledger's tables, or of all, to be put back later."""
        with self._raw().begin() as connection:
            names = [f"idios_{table}" for table in tables] or list(metadata.tables)
            return {name: [dict(row) for row in connection.execute(_everything(name)).mappings()] for name in names}

    def put_back(self, copy: dict[str, list[dict[str, Any]]]) -> None:
        """Make the tables what they were, as an intruder could who has kept an old copy and has no key."""
        with self._raw().begin() as connection:
            for name, rows in copy.items():
                connection.execute(metadata.tables[name].delete())
                if rows:
                    connection.execute(metadata.tables[name].insert(), rows)

    def _raw(self) -> Engine:
        url = make_url(self.url)
        return create_engine(
            url if self.engine == "sqlite" else url.set(drivername="postgresql+psycopg"), poolclass=NullPool
        )

    def worker(self, action: str, *arguments: object) -> subprocess.Popen[str]:
        """Another process on this ledger; see ledger_worker.py for what it can do."""
        return subprocess.Popen(
            [sys.executable, str(WORKER), self.url, str(self.key_file), action, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _everything(name: str) -> Select[Any]:
    return select(metadata.tables[name])


def finished(worker: subprocess.Popen[str], code: int = 0) -> Any:
    """What the worker printed, once it has ended with the code it should."""
    output, errors = worker.communicate(timeout=60)
    assert worker.returncode == code, errors
    return json.loads(output) if output else None


def people(epsilon: object = 1, delta: object = 0, version: str = "1", **others: Any) -> Declaration:
    return Declaration("people", version, Fraction(epsilon), Fraction(delta), **others)  # type: ignore[arg-type]


def ask(
    question: str = "median(income)",
    epsilon: object = "1/4",
    *,
    analyst: str | None = None,
    delta: object = 0,
    version: str = "1",
    rho: object = None,
    pure: bool = True,
    promise: Promise = UNSAID,
) -> ChargeRequest:
    amounts = [Fraction(amount) for amount in (epsilon, delta)]  # type: ignore[call-overload]
    given = None if rho is None else Fraction(rho)  # type: ignore[call-overload]
    return ChargeRequest("people", version, analyst, question, *amounts, given, pure, promise)


def kinds(ledger: Ledger) -> Sequence[str]:
    return [entry.kind for entry in ledger.entries(limit=None)]
