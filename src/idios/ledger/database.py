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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, insert, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from idios.errors import LedgerError, LedgerUnavailable
from idios.ledger.faults import UNCHANGED, fault
from idios.ledger.tables import FORMAT, LOCK, REVISION, SCHEMA, chain, metadata
from idios.ledger.turnstile import Turnstile


@dataclass(frozen=True)
class Database:
    """A database that holds one ledger; sqlite.py and postgresql.py say how each kind is opened."""

    place: str
    reader: Engine
    writer: Engine
    notes: Engine
    turnstile: Turnstile
    timeout: float
    # One connection serves everybody in memory, so its readers have to stand in line as well.
    readers_wait: bool = False
    # Where a note locks the whole database, it stands in line with the writers instead of polling.
    notes_wait: bool = False
    # Run before tables are made, where the database does not already let only one process do that at a time.
    creation_lock: str | None = None
    process: int = field(default_factory=os.getpid)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the ledger."""
        with self._in_line(self.readers_wait), self._translated(), self.reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The ledger's lock, a view nobody else can change, and a durable commit at the end."""
        with self._in_line(True), self._translated(), self.writer.begin() as connection:
            connection.execute(LOCK)
            yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """The ledger's lock and the right to change its tables: nobody else makes, changes or writes them."""
        with self._in_line(True), self._translated(), self.writer.begin() as connection:
            self._lock_creation(connection)
            connection.execute(LOCK)
            yield connection

    @contextmanager
    def noting(self) -> Iterator[Connection]:
        """A short transaction on the operational tables alone."""
        with self._in_line(self.notes_wait), self._translated(), self.notes.begin() as connection:
            yield connection

    def prepare(self, create: bool) -> None:
        """Make the tables if they are not there, or check that they are of this version's format."""
        if not self.exists():
            if not create:
                raise LedgerUnavailable(f"there is no ledger in {self.place}; check the address")
            self._create()
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

    def close(self) -> None:
        """Close every connection."""
        self.writer.dispose()
        self.notes.dispose()

    def _create(self) -> None:
        with self._in_line(True), self._translated(), self.writer.begin() as connection:
            self._lock_creation(connection)
            if inspect(connection).has_table(chain.name):
                return  # another process was first
            metadata.create_all(connection)
            SCHEMA.create(connection, checkfirst=True)
            connection.execute(insert(chain).values(format=FORMAT))
            connection.execute(insert(SCHEMA).values(version_num=REVISION))

    def _lock_creation(self, connection: Connection) -> None:
        if self.creation_lock is not None:
            connection.execute(text(self.creation_lock))

    @contextmanager
    def _in_line(self, wait: bool) -> Iterator[None]:
        if os.getpid() != self.process:
            raise LedgerError(
                f"the ledger {self.place} was opened before this process was forked; open it again in each process"
            )
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
