"""Copies of a ledger: made while it is in use, checked before they count, and put back.

Rules:

1. A copy is one consistent state of the ledger, and it is verified with the key before it gets its name.
2. Nothing is ever overwritten, and nothing is put back while a process has the ledger open.
3. The key is not part of a copy: a finder of one can neither sign nor forge entries.
4. A copy that is put back lacks what was recorded since. Its chain is good all the same, so only an anchor can
   tell, and what was spent since has to be counted by hand.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, NullPool, create_engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from idios.errors import InvalidInput, LedgerTampered, LedgerUnavailable, WrongLedgerKey
from idios.ledger.chain import Anchor, read_last
from idios.ledger.database import Database, check_format, translate_error
from idios.ledger.key import create_private_file, hold_exclusively, read_key, sync_directory
from idios.ledger.opening import check_unused, get_file, is_in_memory, locate_key, parse_address
from idios.ledger.tables import chain
from idios.ledger.verification import Verification, verify


@dataclass(frozen=True, slots=True)
class Restored:
    """A ledger that was put back: what it holds, and how many entries before the anchor it lacks at least."""

    verification: Verification
    lost: int


def back_up(database: Database, key: bytes, path: Path) -> Verification:
    """Copy the ledger into a new file while others write it, and return the verification of the copy."""
    url = database.writer.url
    if database.writer.dialect.name != "sqlite":
        command = _write_command("pg_dump", url, "--table=idios_*", f"--file={path}")
        raise InvalidInput(f"a ledger in PostgreSQL is copied by PostgreSQL's own program: {command}")
    if is_in_memory(url):
        raise InvalidInput("a ledger in memory has no backup: its key ends with it, and nothing else reads the copy")
    with _draft(path, "the backup") as draft:
        with database.reading() as connection:
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            _copy(source, draft, f"the ledger {database.place}")
        verification = _examine(draft, key, None, f"the copy of {database.place}")
        if not verification.ok:
            raise LedgerTampered(f"there is no backup, as the ledger {database.place} is not good: {verification}")
    return verification


def restore(url: str, key_file: str | Path | None, source: str | Path, anchor: Anchor | None = None) -> Restored:
    """Put a copy back where no ledger is; refused, with nothing left behind, if it is not as signed."""
    address, source = parse_address(url), Path(source)
    if address.get_backend_name() != "sqlite":
        check_unused(address)
        command = _write_command("psql", address, "--set=ON_ERROR_STOP=1", "--single-transaction", f"--file={source}")
        raise InvalidInput(
            "a ledger in PostgreSQL is put back by PostgreSQL's own program, into a database without one: "
            f"{command}; then check it with `idios ledger verify --anchor`"
        )
    if is_in_memory(address):
        raise InvalidInput("a ledger in memory cannot be restored; name a file, as in sqlite:///ledger.db")
    target, secret = get_file(address), locate_key(address, key_file)
    # A write-ahead log without its database would be taken for the restored one's.
    for path in (target, target.with_name(f"{target.name}-wal"), target.with_name(f"{target.name}-journal")):
        if path.exists():
            raise InvalidInput(f"{path} exists already; a ledger is never overwritten: move it away first")
    key = None if secret is None else read_key(secret)
    if secret is None or key is None:
        raise WrongLedgerKey(f"the ledger's key file {secret} is missing; restore it first, it is not in the backup")
    if not source.is_file():
        raise InvalidInput(f"there is no backup {source}")
    # A process that has the ledger open still writes it, even where its file was moved away.
    with hold_exclusively(secret), _draft(target, "the ledger") as draft:
        with closing(_read_only(source)) as opened:
            _copy(opened, draft, f"the backup {source}")
        verification = _examine(draft, key, anchor, str(source))
        if not verification.ok:
            raise LedgerTampered(f"the backup {source} was not restored, as it is not good: {verification}")
    lost = 0 if anchor is None else max(0, anchor.sequence - verification.head.sequence)
    return Restored(verification, lost)


def _examine(path: Path, key: bytes, anchor: Anchor | None, place: str) -> Verification:
    """Say what a copy holds; an anchor beyond its end is left to the caller."""
    engine = create_engine("sqlite://", creator=lambda: _read_only(path), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(chain.name):
                raise InvalidInput(f"there is no ledger in {place}; name a file that `idios ledger backup` made")
            check_format(connection, place)
            last = read_last(connection, 1)
            if anchor is not None and (not last or last[0].sequence < anchor.sequence):
                anchor = None
            return verify(connection, key, anchor)
    except SQLAlchemyError as error:
        raise translate_error(error, place) from error


@contextmanager
def _draft(path: Path, what: str) -> Iterator[Path]:
    """Make a temporary file that is renamed to `path` on success, and removed otherwise."""
    if path.exists():
        raise InvalidInput(f"{path} exists already and is not overwritten; name another file")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        # Made here, for its owner alone: it holds every answer.
        os.close(create_private_file(draft))
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        # Linking fails if the name is taken, which renaming does not.
        os.link(draft, path)
        draft.unlink()
        sync_directory(path.parent)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already and is not overwritten; name another file") from None
    except OSError as error:
        raise LedgerUnavailable(f"{what} {path} cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def _copy(source: sqlite3.Connection, draft: Path, what: str) -> None:
    try:
        with closing(sqlite3.connect(draft)) as target:
            # All pages in one step: a backup in several starts again whenever another process writes in between.
            source.backup(target, pages=-1)
            # The copy is one file, without a write-ahead log beside it.
            target.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise LedgerUnavailable(f"{what} cannot be copied: {error}") from error


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _write_command(program: str, url: URL, *options: str) -> str:
    """Write the command line for a PostgreSQL database, without its password."""
    named = (("--host", url.host), ("--port", url.port), ("--username", url.username), ("--dbname", url.database))
    return shlex.join([program, *(f"{name}={value}" for name, value in named if value), *options])
