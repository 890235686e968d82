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

from sqlalchemy import NullPool, create_engine, make_url, text

from idios.ledger import Declaration, Ledger, Request

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
        """Run SQL without the ledger, as somebody with access to its database could."""
        url = make_url(self.url)
        engine = create_engine(
            url if self.engine == "sqlite" else url.set(drivername="postgresql+psycopg"), poolclass=NullPool
        )
        with engine.begin() as connection:
            result = connection.execute(text(statement), parameters)
            return list(result) if result.returns_rows else []

    def worker(self, action: str, *arguments: object) -> subprocess.Popen[str]:
        """Another process on this ledger; see ledger_worker.py for what it can do."""
        return subprocess.Popen(
            [sys.executable, str(WORKER), self.url, str(self.key_file), action, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


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
) -> Request:
    return Request("people", version, analyst, question, Fraction(epsilon), Fraction(delta))  # type: ignore[arg-type]


def kinds(ledger: Ledger) -> Sequence[str]:
    return [entry.kind for entry in ledger.entries(limit=None)]
