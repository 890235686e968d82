"""Where a ledger is kept, and with which key: from an address to a database and its signing key.

Rules:

1. A ledger and its key are made together, where there is neither. A key without its ledger is a ledger that was lost:
   it is refused, as beginning anew would forget all spending, unless the controller says so, on the record.
2. A ledger without its key is refused too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError

from idios.errors import InvalidInput, LedgerUnavailable, WrongLedgerKey
from idios.ledger.chain import BEGINNING, START, Anchor, append_entry, is_signed, read_entries, read_last
from idios.ledger.database import Database
from idios.ledger.engines import get_file, is_in_memory, open_postgresql, open_sqlite
from idios.ledger.facts import Begun
from idios.ledger.key import Hold, create_key, generate_key, read_key
from idios.ledger.proof import write_proof
from idios.ledger.values import format_time, system_clock


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
    any_format: bool = False,
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
        if not any_format:
            database.check_format()
        if volatile and key is not None:
            return OpenedLedger(database, key, None)
        assert path is not None
        return OpenedLedger(database, _read_key(database, path), Hold(path))
    except BaseException:
        database.close()
        raise


@contextmanager
def open_existing(url: str, key_file: str | Path | None, timeout: float = 30) -> Iterator[tuple[Database, bytes]]:
    """Open the database and key of a ledger that exists, of whatever format, and close them in the end."""
    opened = open_ledger(url, key_file, timeout=timeout, create=False, any_format=True)
    try:
        yield opened.database, opened.key
    finally:
        opened.close()


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
            raise WrongLedgerKey(
                f"the ledger {database.place} has {last[0].sequence if last else 0} entries, but its key file {path} "
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
