"""Transactions on the ledger's database: many readers, one writer at a time.

Rules:

1. A writer holds the ledger's lock from before its first read to its commit: what it saw is still true.
2. When a transaction ends without an error, what it wrote is on disk.
3. Notes about work in progress are short transactions of their own. They lock no row of the ledger and may be lost
   when the power fails, which ends the work that they are about; nothing else depends on them.
4. Threads are served in the order they came. SQLite lets waiting writers sleep and poll, so that of sixteen busy
   threads some wait for seconds while others pass them again and again: one fair lock per database and process queues
   them before they reach it.
5. Every failure of the database comes out as a LedgerError that says what to do; the ledger stays right.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakValueDictionary

from sqlalchemy import Connection, Engine, delete, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError, TimeoutError

from idios.errors import LedgerError, LedgerTampered, LedgerUnavailable
from idios.ledger.tables import FORMAT, LOCK, chain, ended_sessions, metadata

ROOM = 2**20
"""The free space, in bytes, below which a disk counts as full: a charge takes some 100,000 before they are merged."""

# A row that no session has: no writer waits for it, and only the transaction that adds it sees it.
_ADD_MARK = insert(ended_sessions).values(id="", expires="")
_REMOVE_MARK = delete(ended_sessions).where(ended_sessions.c.id == "")

UNCHANGED = "nothing was recorded"
UNCERTAIN = "what was being recorded may or may not be there: ask again, no question is charged twice"

# By the low byte of SQLite's result code: the rest says where inside SQLite it happened.
_SQLITE = {
    sqlite3.SQLITE_BUSY: "is locked by another process; try again, or stop the process that holds it",
    sqlite3.SQLITE_LOCKED: "is locked by another process; try again, or stop the process that holds it",
    sqlite3.SQLITE_READONLY: "is read-only; give this process the right to write the file and its directory",
    sqlite3.SQLITE_PERM: "may not be opened by this process; give it the right to the file and its directory",
    sqlite3.SQLITE_IOERR: "cannot be read or written; look at the disk and its free space",
    sqlite3.SQLITE_FULL: "has no room left; free some space on its disk",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that its directory exists and may be written",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a backup and verify it with its anchor",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database; give the ledger a file of its own",
}

# By PostgreSQL's SQLSTATE.
_POSTGRESQL = {
    "55P03": "is locked by another process; try again, or end the session that holds it",
    "53100": "has no room left; free some space on the server's disk",
    "25006": "is read-only; connect to a server that can be written",
    "42501": "may not be written by this user; grant it the ledger's tables",
}

# One lock for each database that this process has open.
_locks: WeakValueDictionary[str, FairLock] = WeakValueDictionary()
_registry = threading.Lock()


class DatabaseFile:
    """The file that a database is in: which one it was when it was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = self._read_identity()

    def check(self) -> None:
        """Refuse to go on when another file has its name now: no other process would see what is written here."""
        if self._read_identity() != self._opened:
            raise LedgerUnavailable(
                f"the ledger's file {self._path} was moved or replaced while this process had it open; restart it; "
                f"{UNCHANGED}"
            )

    def check_room(self) -> None:
        """Refuse a disk that is full."""
        self.check()
        disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < ROOM:
            raise LedgerUnavailable(f"the ledger {self._path} has no room left; free some space on its disk")

    def _read_identity(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino


@dataclass(frozen=True)
class Database:
    """A database that holds one ledger; opening.py says how each kind is opened."""

    place: str
    reader: Engine
    writer: Engine
    notes: Engine
    lock: FairLock
    timeout: float
    # In memory all threads share one connection, so readers have to queue as well.
    readers_wait: bool = False
    # Where a note locks the whole database, it queues with the writers instead of polling.
    notes_wait: bool = False
    # Where a writing transaction does not lock the whole database when it begins, it locks the chain's row.
    row_lock: bool = True
    # Run before tables are made, where the database does not already let only one process do that at a time.
    creation_lock: str | None = None
    # The ledger's file as it was when it was opened; None where there is no file.
    file: DatabaseFile | None = None
    process: int = field(default_factory=os.getpid)
    _closed: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the ledger."""
        with self._queue(self.readers_wait), self._translate_errors(), self.reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The ledger's lock, a view that no other transaction can change, and a durable commit at the end."""
        with self._queue(True), self._translate_errors(), self.writer.begin() as connection:
            if self.row_lock:
                connection.execute(LOCK)
            yield connection

    @contextmanager
    def noting(self) -> Iterator[Connection]:
        """A short transaction on the operational tables alone."""
        with self._queue(self.notes_wait), self._translate_errors(), self.notes.begin() as connection:
            yield connection

    def check_format(self) -> None:
        """Refuse a ledger of another format than this version's."""
        with self.reading() as connection:
            check_format(connection, self.place)

    def exists(self) -> bool:
        """Whether there is a ledger, of any format."""
        with self.reading() as connection:
            return inspect(connection).has_table(chain.name)

    def check_writable(self) -> None:
        """Refuse a database that cannot be written, by writing a row and removing it."""
        with self.noting() as connection:
            connection.execute(_ADD_MARK)
            connection.execute(_REMOVE_MARK)

    def check_room(self) -> None:
        """Refuse a disk that is full, where that can be told."""
        if self.file is not None:
            self.file.check_room()

    def close(self) -> None:
        """Close every connection, and open no other."""
        self._closed.set()
        self.writer.dispose()
        self.notes.dispose()

    def create(self, begin: Callable[[Connection], None]) -> bool:
        """Make the tables and let `begin` do the rest in the same transaction; False if another process was first."""
        with self._queue(True), self._translate_errors(), self.writer.begin() as connection:
            if self.creation_lock is not None:
                connection.execute(text(self.creation_lock))
            if inspect(connection).has_table(chain.name):
                return False
            metadata.create_all(connection)
            connection.execute(insert(chain).values(format=FORMAT))
            begin(connection)
            return True

    @contextmanager
    def _queue(self, wait: bool) -> Iterator[None]:
        if self._closed.is_set():
            raise LedgerError(f"the ledger {self.place} was closed; open it again; {UNCHANGED}")
        if os.getpid() != self.process:
            raise LedgerError(
                f"the ledger {self.place} was opened before this process was forked; open it again in each process"
            )
        if self.file is not None:
            self.file.check()
        if not wait:
            yield
            return
        with self.lock.hold(self.timeout) as acquired:
            if not acquired:
                raise self.make_busy_error()
            yield

    def make_busy_error(self) -> LedgerUnavailable:
        """Make the error of a thread that has waited too long for others."""
        return LedgerUnavailable(
            f"the ledger {self.place} was busy for {self.timeout:g} seconds; try again; {UNCHANGED}"
        )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise translate_error(error, self.place) from error


def check_format(connection: Connection, place: str) -> None:
    """Refuse a ledger of another format than this version's."""
    formats = connection.scalars(select(chain.c.format)).all()
    if formats != [FORMAT]:
        raise LedgerError(
            f"the ledger {place} has format {', '.join(map(str, formats)) or 'none'}, this version of Idios reads "
            f"format {FORMAT}: use the version that wrote it, or move it and its key away, begin a new ledger with "
            "`idios ledger create --reason ...` and count what was spent with `idios ledger forfeit`"
        )


class FairLock:
    """A fair (first in, first out) lock for threads.

    >>> with FairLock().hold(timeout=1) as acquired:
    ...     acquired
    True
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    @contextmanager
    def hold(self, timeout: float) -> Iterator[bool]:
        """Hold the lock; False if it was not free within `timeout` seconds."""
        acquired = self._acquire(timeout)
        try:
            yield acquired
        finally:
            if acquired:
                self._release()

    def _acquire(self, timeout: float) -> bool:
        gate = threading.Lock()
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            gate.acquire()
            self._waiting.append(gate)
        opened = False
        try:
            opened = gate.acquire(timeout=timeout)
        finally:
            # Also when a signal's exception ends the wait: a turn already given must go to the next waiter.
            with self._guard:
                given = gate not in self._waiting
                if not given:
                    self._waiting.remove(gate)
            if given and not opened:
                self._release()
        return opened

    def _release(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


def get_fair_lock(place: str) -> FairLock:
    """Return the one lock of this process for a database, however many times it is opened."""
    with _registry:
        return _locks.setdefault(place, FairLock())


def translate_error(error: SQLAlchemyError, place: str) -> LedgerError:
    """Make the ledger's own error of a database's, in words a controller can act on.

    >>> translate_error(SQLAlchemyError("boom"), "ledger.db")
    LedgerError('the ledger ledger.db: its database reports SQLAlchemyError; nothing was recorded')
    """
    if isinstance(error, TimeoutError):
        return LedgerUnavailable(f"the ledger {place} has no free connection left; try again; {UNCHANGED}")
    if isinstance(error, IntegrityError):
        return LedgerTampered(
            f"the ledger {place}: its tables disagree with its chain; run `idios ledger verify`; {UNCHANGED}"
        )
    if isinstance(error, DBAPIError):
        reason = _find_reason(error.orig)
        if reason is not None:
            # A commit whose write failed may still be found complete when the file is next recovered.
            outcome = UNCERTAIN if reason is _SQLITE[sqlite3.SQLITE_IOERR] else UNCHANGED
            return LedgerUnavailable(f"the ledger {place} {reason}; {outcome}")
        if error.connection_invalidated:
            return LedgerUnavailable(f"the ledger {place} lost the connection to its server; {UNCERTAIN}")
        if _has_never_connected(error.orig):
            return LedgerUnavailable(f"the ledger {place} cannot be reached ({_quote_driver(error.orig)}); {UNCHANGED}")
    cause = error.orig if isinstance(error, DBAPIError) else error
    return LedgerError(f"the ledger {place}: its database reports {type(cause).__name__}; {UNCHANGED}")


def _find_reason(cause: BaseException | None) -> str | None:
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE.get(code & 0xFF)
    return _POSTGRESQL.get(getattr(cause, "sqlstate", None) or "")


def _has_never_connected(cause: BaseException | None) -> bool:
    # What goes wrong before there is a session has no SQLSTATE, be it the network, the name or the password.
    return type(cause).__name__ in ("OperationalError", "ConnectionTimeout") and not getattr(cause, "sqlstate", None)


def _quote_driver(cause: BaseException | None) -> str:
    # The driver tells host, user and database in its first line, and never the password.
    return str(cause).strip().partition("\n")[0][:300]
