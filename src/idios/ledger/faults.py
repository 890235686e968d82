"""What a database's failure means for the ledger, in words a controller can act on."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError, TimeoutError

from idios.errors import LedgerError, LedgerTampered, LedgerUnavailable

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


def fault(error: SQLAlchemyError, place: str) -> LedgerError:
    """The ledger's own error for a database's.

    >>> fault(SQLAlchemyError("boom"), "ledger.db")
    LedgerError('the ledger ledger.db: its database reports SQLAlchemyError; nothing was recorded')
    """
    if isinstance(error, TimeoutError):
        return LedgerUnavailable(f"the ledger {place} has no free connection left; try again; {UNCHANGED}")
    if isinstance(error, IntegrityError):
        return LedgerTampered(
            f"the ledger {place}: its tables disagree with its chain; run `idios ledger verify`; {UNCHANGED}"
        )
    if isinstance(error, DBAPIError):
        reason = _reason(error.orig)
        if reason is not None:
            # A commit whose write failed may still be found complete when the file is next recovered.
            outcome = UNCERTAIN if reason is _SQLITE[sqlite3.SQLITE_IOERR] else UNCHANGED
            return LedgerUnavailable(f"the ledger {place} {reason}; {outcome}")
        if error.connection_invalidated:
            return LedgerUnavailable(f"the ledger {place} lost the connection to its server; {UNCERTAIN}")
        if _never_connected(error.orig):
            return LedgerUnavailable(f"the ledger {place} cannot be reached ({_said(error.orig)}); {UNCHANGED}")
    cause = error.orig if isinstance(error, DBAPIError) else error
    return LedgerError(f"the ledger {place}: its database reports {type(cause).__name__}; {UNCHANGED}")


def _reason(cause: BaseException | None) -> str | None:
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE.get(code & 0xFF)
    return _POSTGRESQL.get(getattr(cause, "sqlstate", None) or "")


def _never_connected(cause: BaseException | None) -> bool:
    # What goes wrong before there is a session has no SQLSTATE, be it the network, the name or the password.
    return type(cause).__name__ in ("OperationalError", "ConnectionTimeout") and not getattr(cause, "sqlstate", None)


def _said(cause: BaseException | None) -> str:
    # The driver tells host, user and database in its first line, and never the password.
    return str(cause).strip().partition("\n")[0][:300]
