"""The ledger in an SQLite file, or in memory for tests and one-off use."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool, StaticPool

from idios.errors import InvalidInput, LedgerUnavailable
from idios.ledger.database import Database, DatabaseFile
from idios.ledger.faults import UNCHANGED
from idios.ledger.key import create_private
from idios.ledger.turnstile import Turnstile, turnstile_for


def in_memory(url: URL) -> bool:
    """Whether the address names no file."""
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def file_of(url: URL) -> Path:
    """The database's file, absolute: connections opened later must not depend on the working directory."""
    name = url.database or ""
    if name.startswith("file:") or url.query:
        raise InvalidInput("an SQLite ledger is named by a plain path, as in sqlite:///ledger.db")
    return Path(name).resolve()


def open_sqlite(url: URL, timeout: float, create: bool) -> Database:
    """The database at an address such as sqlite:///ledger.db."""
    if in_memory(url):
        engine = create_engine("sqlite://", poolclass=StaticPool, hide_parameters=True, connect_args=_connect(timeout))
        notes, place, turnstile, file = engine, "in memory", Turnstile(), None
        _listen(engine, timeout)
    else:
        path = file_of(url)
        if not path.exists():
            if not create:
                raise LedgerUnavailable(f"there is no ledger in {path}; check the address")
            _create_file(path)
        file = DatabaseFile(path)
        engine, notes = _file_engine(path, timeout), _file_engine(path, timeout)
        place, turnstile = str(path), turnstile_for(str(path))
        _listen(engine, timeout)
        # A note need not be on disk when it is made; the next charge's commit takes it there.
        _listen(notes, timeout, synchronous="NORMAL")
    return Database(
        place=place,
        reader=engine,
        writer=engine.execution_options(idios_writes=True),
        notes=notes.execution_options(idios_writes=True),
        turnstile=turnstile,
        timeout=timeout,
        readers_wait=in_memory(url),
        notes_wait=True,
        row_lock=False,
        file=file,
    )


def _create_file(path: Path) -> None:
    # SQLite would let the umask decide who can read it; the files beside it get the permissions of this one.
    try:
        os.close(create_private(path))
    except FileExistsError:
        pass  # another process was first
    except OSError as error:
        raise LedgerUnavailable(
            f"the ledger {path} cannot be opened; check that its directory exists and may be written "
            f"({error.strerror}); {UNCHANGED}"
        ) from error


def _file_engine(path: Path, timeout: float) -> Engine:
    return create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),
        poolclass=QueuePool,
        pool_timeout=timeout,
        hide_parameters=True,
        connect_args=_connect(timeout),
    )


def _connect(timeout: float) -> dict[str, Any]:
    # No isolation level: Python begins a transaction too late for a consistent read.
    return {"timeout": timeout, "isolation_level": None, "check_same_thread": False}


def _listen(engine: Engine, timeout: float, synchronous: str = "FULL") -> None:
    @event.listens_for(engine, "connect")
    def durable(connection: sqlite3.Connection, _: object) -> None:
        _write_ahead(connection, timeout)
        connection.execute(f"PRAGMA synchronous = {synchronous}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("idios_writes", False)
        # A writer takes the lock at once: one that reads first may find its view outdated when it writes.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _write_ahead(connection: sqlite3.Connection, timeout: float) -> None:
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
