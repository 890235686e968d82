"""How each kind of database is opened.

SQLite in a file is the default, in memory it is for tests and one-off use; PostgreSQL is for many processes on many
machines.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from idios.errors import InvalidInput, LedgerUnavailable
from idios.ledger.database import UNCHANGED, Database, DatabaseFile, FairLock, get_fair_lock, translate_error
from idios.ledger.key import create_private_file

# Any number does, as long as every Idios uses the same one.
_CREATION_LOCK = "SELECT pg_advisory_xact_lock(7305806)"
# Every session of a ledger shares this one, so that others can tell whether there are any.
_USE = "7305807, hashtext(current_schema())"


def is_in_memory(url: URL) -> bool:
    """Whether the address names an SQLite database without a file."""
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def get_file(url: URL) -> Path:
    """Return the database's file, absolute: connections opened later must not depend on the working directory."""
    name = url.database or ""
    if name.startswith("file:") or url.query:
        raise InvalidInput("an SQLite ledger is named by a plain path, as in sqlite:///ledger.db")
    return Path(name).resolve()


def open_sqlite(url: URL, timeout: float, create: bool) -> Database:
    """Open the database at an address such as sqlite:///ledger.db."""
    if is_in_memory(url):
        engine = create_engine(
            "sqlite://", poolclass=StaticPool, hide_parameters=True, connect_args=_connect_arguments(timeout)
        )
        notes, place, lock, file = engine, "in memory", FairLock(), None
        _listen(engine, timeout)
    else:
        path = get_file(url)
        if not path.exists():
            if not create:
                raise LedgerUnavailable(f"there is no ledger in {path}; check the address")
            _create_file(path)
        file = DatabaseFile(path)
        engine, notes = _make_engine(path, timeout), _make_engine(path, timeout)
        place, lock = str(path), get_fair_lock(str(path))
        _listen(engine, timeout)
        # A note need not be on disk when it is made; the next charge's commit takes it there.
        _listen(notes, timeout, synchronous="NORMAL")
    return Database(
        place=place,
        reader=engine,
        writer=engine.execution_options(idios_writes=True),
        notes=notes.execution_options(idios_writes=True),
        lock=lock,
        timeout=timeout,
        readers_wait=is_in_memory(url),
        notes_wait=True,
        row_lock=False,
        file=file,
    )


def _create_file(path: Path) -> None:
    # SQLite would let the umask decide who can read it; the files beside it get the permissions of this one.
    try:
        os.close(create_private_file(path))
    except FileExistsError:
        pass  # another process was first
    except OSError as error:
        raise LedgerUnavailable(
            f"the ledger {path} cannot be opened; check that its directory exists and may be written "
            f"({error.strerror}); {UNCHANGED}"
        ) from error


def _make_engine(path: Path, timeout: float) -> Engine:
    return create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),
        poolclass=QueuePool,
        pool_timeout=timeout,
        hide_parameters=True,
        connect_args=_connect_arguments(timeout),
    )


def _connect_arguments(timeout: float) -> dict[str, Any]:
    # No isolation level: Python begins a transaction too late for a consistent read.
    return {"timeout": timeout, "isolation_level": None, "check_same_thread": False}


def _listen(engine: Engine, timeout: float, synchronous: str = "FULL") -> None:
    @event.listens_for(engine, "connect")
    def durable(connection: sqlite3.Connection, _: object) -> None:
        _set_write_ahead(connection, timeout)
        connection.execute(f"PRAGMA synchronous = {synchronous}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("idios_writes", False)
        # A writer takes the lock at once: one that reads first may find its view outdated when it writes.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_write_ahead(connection: sqlite3.Connection, timeout: float) -> None:
    # The mode stays with the file. While one process sets it, SQLite fails others with "locked" without waiting.
    deadline = time.monotonic() + timeout
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode not in ("wal", "memory"):
                connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = (error.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def open_postgresql(url: URL, timeout: float) -> Database:
    """Open the database at an address such as postgresql://user:password@host/name."""
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
        place=_name_place(url),
        reader=engine.execution_options(isolation_level="REPEATABLE READ"),
        writer=engine.execution_options(isolation_level="READ COMMITTED"),
        notes=engine.execution_options(isolation_level="READ COMMITTED"),
        lock=get_fair_lock(url.render_as_string(hide_password=False)),
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
        raise translate_error(error, _name_place(url)) from error
    if not free:
        raise LedgerUnavailable(f"a server or another command has the ledger {_name_place(url)} open; stop it first")


def _name_place(url: URL) -> str:
    # Without user, password and query: the place is part of messages.
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()
