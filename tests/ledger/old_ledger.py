"""A ledger as format 4, the oldest, left it, and a next format that is made up.

Its tables are those of the migration, its rows those that the version of that time derived; they stay as they are
written here when the format changes.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import Column, Engine, Index, MetaData, NullPool, Table, Text, create_engine, event, make_url, text

from idios.ledger.chain import START, Anchor, sign_entry
from idios.ledger.facts import (
    AnalystAdded,
    Declared,
    Fact,
    Failed,
    Granted,
    Inspected,
    Raised,
    Released,
    Reserved,
    Retired,
    Shared,
    TokenIssued,
    TokenRevoked,
)
from idios.ledger.migrations import FOLDERS, migrate
from idios.ledger.request import ChargeRequest
from idios.ledger.tables import metadata
from tests.ledger.ledger_place import Place

KEY = b"0123456789abcdef" * 2
SECRET, REVOKED = "a token of ada", "a token of bob"
ZERO = Fraction(0)
ASKED = ChargeRequest("people", "1", "ada", "median(income)", Fraction(1, 4))
LOST = ChargeRequest("people", "2", None, "max(age)", Fraction(1, 8))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _issued(secret: str, analyst: str) -> TokenIssued:
    return TokenIssued(_digest(secret)[:16], _digest(secret), analyst, "2999-01-01T00:00:00.000000Z")


HISTORY: list[Fact] = [
    Declared("people", "1", Fraction(1), ZERO, Fraction(1, 20)),
    AnalystAdded("ada"),
    AnalystAdded("bob"),
    Granted("ada", "people", None, None),
    Granted("bob", "people", Fraction(1, 2), ZERO),
    _issued(SECRET, "ada"),
    _issued(REVOKED, "bob"),
    TokenRevoked(_digest(REVOKED)[:16]),
    Reserved(ASKED.key, "people", "1", ASKED.question, ASKED.epsilon, ZERO, "ada"),
    Released(ASKED.key, '{"value": "41320"}'),
    Shared(ASKED.key, "people", "bob", ASKED.epsilon, ZERO),
    Raised("people", Fraction(2), ZERO),
    Declared("people", "2", Fraction(2), ZERO, Fraction(1, 20)),
    Raised("people", Fraction(3), Fraction(1, 10)),
    Reserved(LOST.key, "people", "2", LOST.question, LOST.epsilon, ZERO, None),
    Failed(LOST.key, None, "connection lost"),
    Inspected("people", "2", "max(age)", Fraction(1), ZERO),
    Declared("firms", "1", Fraction(5), ZERO, ZERO),
    Retired("firms"),
]

ROWS = [
    "INSERT INTO idios_datasets (dataset, version, min_epsilon, epsilon, delta, epsilon_spent, delta_spent, "
    "declared_epsilon, declared_delta) VALUES ('people', '2', '1/20', '3/1', '1/10', '3/8', '0/1', '2/1', '0/1')",
    "INSERT INTO idios_datasets (dataset, version, min_epsilon, epsilon, delta, epsilon_spent, delta_spent, "
    "declared_epsilon, declared_delta, retired) "
    "VALUES ('firms', '1', '0/1', '5/1', '0/1', '0/1', '0/1', '5/1', '0/1', 19)",
    "INSERT INTO idios_analysts VALUES ('ada'), ('bob')",
    "INSERT INTO idios_grants (analyst, dataset, epsilon, delta, epsilon_spent, delta_spent) "
    "VALUES ('ada', 'people', NULL, NULL, '1/4', '0/1'), ('bob', 'people', '1/2', '0/1', '1/4', '0/1')",
    "INSERT INTO idios_tokens (token, digest, holder, expires, revoked, role, issued) "
    f"VALUES ('{_digest(SECRET)[:16]}', '{_digest(SECRET)}', 'ada', '2999-01-01T00:00:00.000000Z', NULL, "
    f"'analyst', 6), ('{_digest(REVOKED)[:16]}', '{_digest(REVOKED)}', 'bob', '2999-01-01T00:00:00.000000Z', 8, "
    "'analyst', 7)",
    f"INSERT INTO idios_questions VALUES ('{ASKED.key}', 'people', 9, 10)",
    f"INSERT INTO idios_questions VALUES ('{LOST.key}', 'people', 15, NULL)",
    f"INSERT INTO idios_payments VALUES ('{ASKED.key}', 'ada'), ('{ASKED.key}', 'bob')",
    f"INSERT INTO idios_failures VALUES ('{LOST.key}', 16)",
    f"INSERT INTO idios_idempotency_keys VALUES ('analyst:ada', 'k0', '{ASKED.key}', '2026-11-15T00:00:09.000000Z')",
    "INSERT INTO idios_running VALUES ('q0', 'analyst:ada', 'people', '{}', '2026-11-15T00:00:09.000000Z', "
    "'2026-11-15T00:00:10.000000Z', 'reading', 0.5, 'answered', FALSE)",
    "INSERT INTO idios_ended_sessions VALUES ('s0', '2999-01-01T00:00:00.000000Z')",
]


def raw_engine(place: Place) -> Engine:
    """The database without the ledger, with transactions that hold for tables too."""
    if place.engine == "postgresql":
        return create_engine(make_url(place.url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    engine = create_engine(place.url, poolclass=NullPool, connect_args={"isolation_level": None})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def write_old_ledger(place: Place, *more: Fact) -> Anchor:
    """Make a ledger of format 4 in an empty place; the end of its chain. What more happened is in no row of it."""
    place.key_file.write_bytes(KEY)
    head = START
    with raw_engine(place).begin() as connection:
        migrate(connection, "0004")
        for number, fact in enumerate([*HISTORY, *more]):
            entry = sign_entry(KEY, head, f"2026-11-15T00:00:{number:02}.000000Z", fact)
            connection.execute(
                text("INSERT INTO idios_entries VALUES (:sequence, :time, :kind, :payload, :mac)"),
                {name: getattr(entry, name) for name in ("sequence", "time", "kind", "payload", "mac")},
            )
            head = Anchor(entry.sequence, entry.mac)
        for statement in ROWS:
            connection.execute(text(statement))
    return head


def use_next_format(patch: pytest.MonkeyPatch) -> MetaData:
    """Let this version of Idios be one whose format is 8, with a migration to it; its tables."""
    tables = MetaData()
    for table in metadata.tables.values():
        table.to_metadata(tables)
    tables.tables["idios_datasets"].append_column(Column("owner", Text))
    tables.tables["idios_running"].c.step.nullable = True
    Index("ix_idios_running_caller", tables.tables["idios_running"].c.caller)
    Table("idios_made_up", tables, Column("name", Text, primary_key=True))
    for module in ("database", "backup", "migrations"):
        patch.setattr(f"idios.ledger.{module}.FORMAT", 8)
    patch.setattr("idios.ledger.database.REVISION", "0008")
    patch.setattr("idios.ledger.database.metadata", tables)
    patch.setattr("idios.ledger.migrations.FOLDERS", [*FOLDERS, str(Path(__file__).parent / "next_format")])
    return tables
