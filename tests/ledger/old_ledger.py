"""A ledger as format 1 or 2 left it: its tables, a signed chain, and the rows that the version of that time derived."""

from __future__ import annotations

import hashlib
from fractions import Fraction

from sqlalchemy import Engine, NullPool, create_engine, event, make_url, text

from idios.ledger.chain import START, Anchor, next_entry
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
from idios.ledger.request import Request
from idios.ledger.upgrading import migrate
from tests.ledger.ledger_place import Place

KEY = b"0123456789abcdef" * 2
SECRET, REVOKED = "a token of ada", "a token of bob"
ZERO = Fraction(0)
ASKED = Request("people", "1", "ada", "median(income)", Fraction(1, 4))
LOST = Request("people", "2", None, "max(age)", Fraction(1, 8))


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
    "INSERT INTO idios_datasets VALUES ('people', '2', '1/20', '3/1', '1/10', '3/8', '0/1', NULL)",
    "INSERT INTO idios_datasets VALUES ('firms', '1', '0/1', '5/1', '0/1', '0/1', '0/1', 19)",
    "INSERT INTO idios_analysts VALUES ('ada'), ('bob')",
    "INSERT INTO idios_grants VALUES ('ada', 'people', NULL, NULL, '1/4', '0/1')",
    "INSERT INTO idios_grants VALUES ('bob', 'people', '1/2', '0/1', '1/4', '0/1')",
    f"INSERT INTO idios_tokens VALUES ('{_digest(SECRET)[:16]}', '{_digest(SECRET)}', 'ada', "
    "'2999-01-01T00:00:00.000000Z', NULL)",
    f"INSERT INTO idios_tokens VALUES ('{_digest(REVOKED)[:16]}', '{_digest(REVOKED)}', 'bob', "
    "'2999-01-01T00:00:00.000000Z', 8)",
    f"INSERT INTO idios_questions VALUES ('{ASKED.key}', 'people', 9, 10)",
    f"INSERT INTO idios_questions VALUES ('{LOST.key}', 'people', 15, NULL)",
    f"INSERT INTO idios_payments VALUES ('{ASKED.key}', 'ada'), ('{ASKED.key}', 'bob')",
]


def raw_engine(place: Place) -> Engine:
    """The database without the ledger, with transactions that hold for tables too."""
    if place.engine == "postgresql":
        return create_engine(make_url(place.url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    engine = create_engine(place.url, poolclass=NullPool, connect_args={"isolation_level": None})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


SECOND = [
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
    *ROWS[-3:],
]


def write_old_ledger(place: Place, form: int = 1) -> Anchor:
    """Make a ledger of format 1 or 2 in an empty place; the end of its chain."""
    place.key_file.write_bytes(KEY)
    head = START
    with raw_engine(place).begin() as connection:
        migrate(connection, f"000{form}")
        if form == 1:
            connection.execute(text("DROP TABLE idios_schema"))  # format 1 had none
        for number, fact in enumerate(HISTORY):
            entry = next_entry(KEY, head, f"2026-11-15T00:00:{number:02}.000000Z", fact)
            connection.execute(
                text("INSERT INTO idios_entries VALUES (:sequence, :time, :kind, :payload, :mac)"),
                {name: getattr(entry, name) for name in ("sequence", "time", "kind", "payload", "mac")},
            )
            head = Anchor(entry.sequence, entry.mac)
        for statement in ROWS if form == 1 else SECOND:
            connection.execute(text(statement))
    return head
