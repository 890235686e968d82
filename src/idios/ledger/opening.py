"""Where a ledger is kept, and with which key: from an address to a database and its signing key.

Rules:

1. A ledger and its key are made together, where there is neither. A key without its ledger is a ledger that was lost:
   it is refused, as beginning anew would forget all spending, unless the controller says so, on the record.
2. A ledger without its key is refused too.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from idios.core.neighbours import write_count
from idios.errors import InvalidInput, LedgerUnavailable, WrongLedgerKey
from idios.ledger.chain import BEGINNING, START, Anchor, append_entry, is_signed, read_entries, read_last
from idios.ledger.database import UNCHANGED, Database, DatabaseFile, FairLock, get_fair_lock, translate_error
from idios.ledger.facts import Begun
from idios.ledger.key import Hold, create_key, create_private_file, generate_key, read_key
from idios.ledger.proof import write_proof
from idios.ledger.statements import run
from idios.ledger.values import format_time, system_clock

# Any number does, as long as every Idios uses the same one.
_CREATION_LOCK = "SELECT pg_catalog.pg_advisory_xact_lock(7305806)"
# Every session of a ledger shares this one, so that others can tell whether there are any.
_USE = "7305807, pg_catalog.hashtext(pg_catalog.current_schema())"
# The ledger is in the first schema that the role, the database or the address names. Functions, operators and types are
# PostgreSQL's own, which come before it, and a literal ends where it seems to.
_MEANING = (
    "SELECT pg_catalog.set_config('search_path', "
    "pg_catalog.concat(pg_catalog.quote_ident(pg_catalog.current_schema()), ', pg_temp'), false), "
    "pg_catalog.set_config('standard_conforming_strings', 'on', false), "
    "pg_catalog.set_config('client_encoding', 'UTF8', false)"
)


@dataclass(frozen=True)
class OpenedLedger:
    """A ledger's database and key, and the hold on it while it is open (None in memory)."""

    database: Database
    key: bytes
    hold: Hold | None

    def close(self) -> None:
        """Close every connection and release the hold."""
        self.database.close()
        if self.hold is not None:
            self.hold.release()


def open_ledger(
    url: str,
    key_file: str | Path | None,
    *,
    timeout: float,
    create: bool,
    begun: Begun | None = None,
) -> OpenedLedger:
    """Open the ledger at the address; make a new one where there is neither ledger nor key, if `create` says so.

    With `begun` there must be no ledger: a new one is made, also where there is a key, and begins with that entry.
    """
    address = parse_address(url)
    path, volatile = locate_key(address, key_file), is_in_memory(address)
    # The key first: a process that makes a ledger makes its file before its key.
    if create and begun is None and not volatile and path is not None and path.exists() and _is_file_missing(address):
        raise _make_lost_error(path, str(get_file(address)))
    database = _open_database(address, timeout=timeout, create=create)
    try:
        key = None
        if not database.exists():
            if not create:
                raise LedgerUnavailable(f"there is no ledger in {database.place}; check the address")
            key = _create(database, path, begun, key_may_exist=volatile or begun is not None)
        elif begun is not None:
            raise InvalidInput(f"there is a ledger in {database.place} already; a new one needs an empty place")
        database.check_format()
        if volatile and key is not None:
            return OpenedLedger(database, key, None)
        assert path is not None
        return OpenedLedger(database, _read_key(database, path), Hold(path))
    except BaseException:
        database.close()
        raise


def _open_database(address: URL, *, timeout: float, create: bool) -> Database:
    if not timeout > 0:
        raise InvalidInput(f"timeout must be a number of seconds above 0, not {timeout!r}")
    if address.get_backend_name() == "sqlite":
        return open_sqlite(address, timeout, create)
    return open_postgresql(address, timeout)


def _create(database: Database, path: Path | None, begun: Begun | None, *, key_may_exist: bool) -> bytes | None:
    """Make a ledger and return its key; None if another process made one meanwhile."""
    keys: list[bytes] = []
    made = False

    def begin(connection: Connection) -> None:
        nonlocal made
        key = None if path is None else read_key(path)
        if key is not None and not key_may_exist:
            assert path is not None
            raise _make_lost_error(path, database.place)
        if key is None:
            key, made = (generate_key(), False) if path is None else create_key(path)
        head = START
        if begun is not None:
            entry = append_entry(connection, key, START, format_time(system_clock()), begun)
            head = Anchor(entry.sequence, entry.mac)
        write_proof(connection, key, head, ())
        keys.append(key)

    try:
        database.create(begin)
    except BaseException:
        if made and path is not None:
            path.unlink(missing_ok=True)  # it has signed nothing, and without a ledger it would look like a loss
        raise
    return keys[0] if keys else None


def _make_lost_error(path: Path, place: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"there is no ledger in {place}, but its key {path} is there: a ledger was lost, or the address is another. A "
        "new one would forget all that was spent. Check the address, put a backup back with `idios ledger restore`, or "
        "begin anew on purpose and on the record with `idios ledger create --reason ...`"
    )


def _is_file_missing(address: URL) -> bool:
    return address.get_backend_name() == "sqlite" and not get_file(address).exists()


def _read_key(database: Database, path: Path) -> bytes:
    key = read_key(path)
    with database.reading() as connection:
        if key is None:
            last = read_last(connection, 1)
            written = write_count(last[0].sequence if last else 0, "entry")
            raise WrongLedgerKey(
                f"the ledger {database.place} has {written}, but its key file {path} "
                "is missing; restore the key file, a new key cannot sign an old chain"
            )
        if not _is_signed_with(connection, key):
            raise WrongLedgerKey(
                f"the key in {path} is not the one that signed the ledger {database.place}: "
                "neither its first nor its last entry fits; use the ledger's own key file"
            )
    return key


def _is_signed_with(connection: Connection, key: bytes) -> bool:
    """Whether the last or the first entry is signed with the key; true of an empty chain.

    One of the two is enough, so that a ledger that was tampered with can still be opened and verified.
    """
    last, first = read_last(connection, 2), read_entries(connection, after=0, limit=1)
    if not last or not first:
        return not last
    previous = last[1].mac if len(last) > 1 else BEGINNING
    return is_signed(key, previous, last[0]) or is_signed(key, BEGINNING, first[0])


def parse_address(url: str) -> URL:
    """Parse the address; refuse one that is not of a ledger."""
    try:
        address = make_url(url)
        known = address.drivername in ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg")
    except (ArgumentError, ValueError):
        known = False
    if not known:
        # The address is not repeated: it may hold a password.
        raise InvalidInput(
            "a ledger's address is sqlite:///file, sqlite:// (in memory) or postgresql://user:password@host/database"
        )
    return address


def locate_key(address: URL, key_file: str | Path | None) -> Path | None:
    """Say where the ledger's key is kept; None for one in memory."""
    if key_file is not None:
        return Path(key_file).resolve()
    if address.get_backend_name() != "sqlite":
        raise InvalidInput("a ledger in PostgreSQL needs key_file: its key is kept outside the database")
    return None if is_in_memory(address) else get_file(address).with_suffix(".key")


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
        run(connection, "BEGIN IMMEDIATE" if writes else "BEGIN")


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
            cursor.execute(_MEANING)
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
            free = connection.scalar(text(f"SELECT pg_catalog.pg_try_advisory_xact_lock({_USE})"))
    except SQLAlchemyError as error:
        raise translate_error(error, _name_place(url)) from error
    if not free:
        raise LedgerUnavailable(f"a server or another command has the ledger {_name_place(url)} open; stop it first")


def _name_place(url: URL) -> str:
    # Without user, password and query: the place is part of messages.
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()
