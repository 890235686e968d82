"""Where a ledger is kept, and with which key: from an address to a database and its signing key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from idios.errors import InvalidInput, LedgerUnavailable, WrongLedgerKey
from idios.ledger.database import Database
from idios.ledger.key import create_key, new_key, read_key
from idios.ledger.postgresql import open_postgresql
from idios.ledger.sqlite import file_of, in_memory, open_sqlite
from idios.ledger.tables import last_entries
from idios.ledger.writer import proves_key


def open_database(url: str, *, timeout: float, create: bool) -> Database:
    """The database at the address, not yet looked into."""
    if not timeout > 0:
        raise InvalidInput(f"timeout must be a number of seconds above 0, not {timeout!r}")
    address = ledger_address(url)
    if address.get_backend_name() == "sqlite":
        return open_sqlite(address, timeout, create)
    return open_postgresql(address, timeout)


@contextmanager
def existing_ledger(url: str, key_file: str | Path | None, timeout: float = 30) -> Iterator[tuple[Database, bytes]]:
    """The database and key of a ledger that exists, of whatever format; closed in the end."""
    database = open_database(url, timeout=timeout, create=False)
    try:
        if not database.exists():
            raise LedgerUnavailable(f"there is no ledger in {database.place}; check the address")
        yield database, open_key(database, url, key_file)
    finally:
        database.close()


def open_key(database: Database, url: str, key_file: str | Path | None) -> bytes:
    """The ledger's key; a new one only where there is nothing it would have had to sign."""
    path = key_path(ledger_address(url), key_file)
    if path is None:
        return new_key()
    key = read_key(path)
    with database.reading() as connection:
        last = last_entries(connection, 1)
        if key is not None:
            if not proves_key(connection, key):
                raise WrongLedgerKey(
                    f"the key in {path} is not the one that signed the ledger {database.place}: "
                    "neither its first nor its last entry fits; use the ledger's own key file"
                )
            return key
    if last:
        raise WrongLedgerKey(
            f"the ledger {database.place} has {last[0].sequence} entries, but its key file {path} is "
            "missing; restore the key file, a new key cannot sign an old chain"
        )
    return create_key(path)


def ledger_address(url: str) -> URL:
    """The address, refused unless it is one of a ledger."""
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


def key_path(address: URL, key_file: str | Path | None) -> Path | None:
    """Where the ledger's key is kept; None for one in memory."""
    if key_file is not None:
        return Path(key_file).resolve()
    if address.get_backend_name() != "sqlite":
        raise InvalidInput("a ledger in PostgreSQL needs key_file: its key is kept outside the database")
    return None if in_memory(address) else file_of(address).with_suffix(".key")
