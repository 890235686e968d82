"""Transactions on the ledger's database: many readers, one writer at a time.

Rules:

1. A writer holds the ledger's lock from before its first read to its commit: what it saw is still true.
2. When a transaction ends without an error, what it wrote is on disk.
3. Notes about work in progress are short transactions of their own. They lock no row of the ledger and may be lost
   when the power fails, which ends the work that they are about; nothing else depends on them.
4. Every failure of the database comes out as a LedgerError that says what to do; the ledger stays right.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, Engine, insert, inspect, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from idios.errors import LedgerError, LedgerUnavailable
from idios.ledger.faults import UNCHANGED, fault
from idios.ledger.tables import FORMAT, LOCK, REVISION, SCHEMA, chain, metadata
from idios.ledger.turnstile import Turnstile

ROOM = 2**20
"""The free space, in bytes, below which a disk counts as full: a charge takes some 100,000 before they are merged."""

_REWRITE = update(SCHEMA).values(version_num=SCHEMA.c.version_num)


class DatabaseFile:
    """The file that a database is in: which one it was when it was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = self._identity()

    def check(self) -> None:
        """Refuse to go on when another file has its name now: no other process would see what is written here."""
        if self._identity() != self._opened:
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

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


@dataclass(frozen=True)
class Database:
    """A database that holds one ledger; sqlite.py and postgresql.py say how each kind is opened."""

    place: str
    reader: Engine
    writer: Engine
    notes: Engine
    turnstile: Turnstile
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

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the ledger."""
        with self._in_line(self.readers_wait), self._translated(), self.reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The ledger's lock, a view that no other transaction can change, and a durable commit at the end."""
        with self._in_line(True), self._translated(), self.writer.begin() as connection:
            if self.row_lock:
                connection.execute(LOCK)
            yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """The ledger's lock and the right to change its tables: no other process makes, changes or writes them."""
        with self._in_line(True), self._translated(), self.writer.begin() as connection:
            self._lock_creation(connection)
            connection.execute(LOCK)
            yield connection

    @contextmanager
    def noting(self) -> Iterator[Connection]:
        """A short transaction on the operational tables alone."""
        with self._in_line(self.notes_wait), self._translated(), self.notes.begin() as connection:
            yield connection

    def check_format(self) -> None:
        """Refuse tables that are not of this version's format."""
        with self.reading() as connection:
            found = format_of(connection, self.place)
        if found < FORMAT:
            raise LedgerError(
                f"the ledger {self.place} has format {found}, this version of Idios reads format {FORMAT}: "
                "run `idios ledger upgrade`; make a backup first"
            )

    def exists(self) -> bool:
        """Whether there is a ledger, of any format."""
        with self.reading() as connection:
            return inspect(connection).has_table(chain.name)

    def check_writable(self) -> None:
        """Refuse a database that cannot be written, by writing what is there already."""
        with self.noting() as connection:
            connection.execute(_REWRITE)

    def check_room(self) -> None:
        """Refuse a disk that is full, where that can be told."""
        if self.file is not None:
            self.file.check_room()

    def close(self) -> None:
        """Close every connection."""
        self.writer.dispose()
        self.notes.dispose()

    def create(self, begin: Callable[[Connection], None]) -> bool:
        """Make the tables and let `begin` do the rest in the same transaction; False if another process was first."""
        with self._in_line(True), self._translated(), self.writer.begin() as connection:
            self._lock_creation(connection)
            if inspect(connection).has_table(chain.name):
                return False
            metadata.create_all(connection)
            SCHEMA.create(connection, checkfirst=True)
            connection.execute(insert(chain).values(format=FORMAT))
            connection.execute(insert(SCHEMA).values(version_num=REVISION))
            begin(connection)
            return True

    def _lock_creation(self, connection: Connection) -> None:
        if self.creation_lock is not None:
            connection.execute(text(self.creation_lock))

    @contextmanager
    def _in_line(self, wait: bool) -> Iterator[None]:
        if os.getpid() != self.process:
            raise LedgerError(
                f"the ledger {self.place} was opened before this process was forked; open it again in each process"
            )
        if self.file is not None:
            self.file.check()
        if not wait:
            yield
            return
        with self.turnstile.turn(self.timeout) as entered:
            if not entered:
                raise LedgerUnavailable(
                    f"the ledger {self.place} was busy for {self.timeout:g} seconds; try again; {UNCHANGED}"
                )
            yield

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise fault(error, self.place) from error


def format_of(connection: Connection, place: str) -> int:
    """The ledger's format, refused if it is not one that this version can read or upgrade."""
    found = connection.scalars(select(chain.c.format)).all()
    if len(found) != 1 or not 1 <= found[0] <= FORMAT:
        raise LedgerError(
            f"the ledger {place} has format {', '.join(map(str, found)) or 'none'}, this version of Idios reads "
            f"format {FORMAT}; use the version that wrote it or a newer one"
        )
    return int(found[0])
