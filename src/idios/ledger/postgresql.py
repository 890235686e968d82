"""The ledger in a PostgreSQL database, for many processes on many machines."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

from sqlalchemy import URL, NullPool, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from idios.errors import InvalidInput, LedgerUnavailable
from idios.ledger.database import Database
from idios.ledger.faults import fault
from idios.ledger.turnstile import turnstile_for

# Any number does, as long as every Idios uses the same one.
_CREATION_LOCK = "SELECT pg_advisory_xact_lock(7305806)"
# Every session of a ledger shares this one, so that others can tell whether there are any.
_USE = "7305807, hashtext(current_schema())"


def open_postgresql(url: URL, timeout: float) -> Database:
    """The database at an address such as postgresql://user:password@host/name."""
    if find_spec("psycopg") is None:
        raise InvalidInput("a ledger in PostgreSQL needs the psycopg driver: install idios[postgres]")
    # A server that vanishes from the network without closing is given up after a minute, not after hours.
    patience = {
        "connect_timeout": max(2, math.ceil(timeout)),
        "tcp_user_timeout": 60_000,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        pool_timeout=timeout,
        hide_parameters=True,
        connect_args={name: value for name, value in patience.items() if name not in url.query},
    )

    @event.listens_for(engine, "connect")
    def durable(connection: Any, _: object) -> None:
        milliseconds = max(1, round(timeout * 1000))
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", (str(milliseconds),))
            # A process that stops while it holds the ledger must not hold it for ever.
            cursor.execute("SET idle_in_transaction_session_timeout = '60s'")
            cursor.execute(f"SELECT pg_advisory_lock_shared({_USE})")
            # A commit is on disk before it is acknowledged, whatever the server's default.
            cursor.execute(
                "SELECT set_config('synchronous_commit', 'on', false) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )
        connection.commit()

    return Database(
        place=_place(url),
        reader=engine.execution_options(isolation_level="REPEATABLE READ"),
        writer=engine.execution_options(isolation_level="READ COMMITTED"),
        notes=engine.execution_options(isolation_level="READ COMMITTED"),
        turnstile=turnstile_for(url.render_as_string(hide_password=False)),
        timeout=timeout,
        creation_lock=_CREATION_LOCK,
    )


def check_unused(url: URL) -> None:
    """Refuse a ledger that a process has open, on any machine."""
    engine = create_engine(url.set(drivername="postgresql+psycopg"), poolclass=NullPool, hide_parameters=True)
    try:
        with engine.begin() as connection:
            free = connection.scalar(text(f"SELECT pg_try_advisory_xact_lock({_USE})"))
    except SQLAlchemyError as error:
        raise fault(error, _place(url)) from error
    if not free:
        raise LedgerUnavailable(f"a server or another command has the ledger {_place(url)} open; stop it first")


def _place(url: URL) -> str:
    # Without user, password and query: the place is part of messages.
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()
