"""Whether the chain is what was signed, the tables are what the chain says, and the ledger can be used."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from idios.core.neighbours import write_count
from idios.errors import LedgerTampered
from idios.ledger.chain import START, Anchor, Entry, is_signed, read_entries
from idios.ledger.database import Database
from idios.ledger.proof import compare_proof
from idios.ledger.state import AnalystRow, DatasetRow, DerivedRow, GrantRow, MemoryRowStore, TokenRow, apply
from idios.ledger.store import DatabaseRowStore, Writer, replace_rows
from idios.ledger.tables import TABLES
from idios.ledger.values import RECORDS

log = logging.getLogger("idios.ledger")
# Where logging is not set up, errors are raised and nothing is printed besides.
log.addHandler(logging.NullHandler())

PAGE = 1000
PERMISSIONS: tuple[type[DerivedRow], ...] = (DatasetRow, AnalystRow, GrantRow, TokenRow)
"""The tables of permissions, short enough to be checked while others wait."""
ANCHORED, SEEN = "the anchor is", "this process has seen"
"""How an end of the chain is known that must be in it."""
PAUSE = 1.0
SHARE = 20
"""They are checked again after this many seconds, or after this many times as long as it took."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found: the number of good entries, and the first problem if there is one.

    `sequence` is the first bad entry's number; None when the chain is good and a derived table is not.
    """

    entries: int
    head: Anchor
    sequence: int | None = None
    problem: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None

    def __str__(self) -> str:
        if self.ok:
            return f"{write_count(self.entries, 'entry')}, all as signed; the tables agree with them"
        where = "" if self.sequence is None else f"entry {self.sequence}: "
        return f"{where}{self.problem} (good entries before it: {self.entries})"


@dataclass
class Replay:
    """The chain read from its beginning, as far as it is good."""

    store: MemoryRowStore
    head: Anchor = START
    sequence: int | None = None
    problem: str | None = None

    def report(self, sequence: int | None, problem: str) -> None:
        """Note the first problem."""
        if self.problem is None:
            self.sequence, self.problem = sequence, problem


def replay(connection: Connection, key: bytes, anchor: Anchor | None = None, known: Anchor | None = None) -> Replay:
    """Check every signature and bring a store in memory up to the last good entry.

    The chain must hold the anchor, which was kept elsewhere, and the end that is known from before.
    """
    ends = [(end, told) for end, told in ((anchor, ANCHORED), (known, SEEN)) if end is not None]
    result = Replay(MemoryRowStore())
    lowest = -(2**62)
    page = read_entries(connection, after=lowest, limit=PAGE)
    while page and result.problem is None:
        for entry in page:
            _follow(result, key, entry, ends)
            if result.problem is not None:
                break
        page = read_entries(connection, after=page[-1].sequence, limit=PAGE)
    for end, told in ends:
        if end.sequence > result.head.sequence:
            result.report(
                result.head.sequence + 1,
                f"is missing: the chain ends at entry {result.head.sequence}, {told} entry {end.sequence}; it was cut "
                "off",
            )
    return result


def _follow(result: Replay, key: bytes, entry: Entry, ends: Sequence[tuple[Anchor, str]]) -> None:
    expected = result.head.sequence + 1
    if entry.sequence < expected:
        return result.report(entry.sequence, "was inserted: entries are numbered from 1, each number once")
    if entry.sequence > expected:
        return result.report(
            expected, f"is missing: entry {entry.sequence} follows entry {expected - 1}; it was removed"
        )
    if not is_signed(key, result.head.mac, entry):
        return result.report(
            expected,
            "is not signed as it stands: it was changed, inserted or moved, or one before it was removed",
        )
    for end, told in ends:
        if end.sequence == expected and end.mac != entry.mac:
            what = "the anchored one" if told == ANCHORED else "the one that was there before"
            return result.report(expected, f"is not {what}: the chain was rewritten by a holder of the key")
    try:
        apply(result.store, expected, entry.fact)
    except ValueError as error:
        return result.report(expected, f"is signed, but cannot stand here: {error}")
    result.head = Anchor(expected, entry.mac)
    return None


def verify(connection: Connection, key: bytes, anchor: Anchor | None, known: Anchor | None = None) -> Verification:
    """Check the chain, the anchor, the end that is known from before, and the derived tables."""
    result = replay(connection, key, anchor, known)
    if result.problem is None:
        for row in TABLES:
            _compare(connection, result, row)
    if result.problem is None:
        rows = (row for table in result.store.rows.values() for row in table.values())
        problem = compare_proof(connection, key, result.head, rows)
        if problem is not None:
            result.report(None, problem)
    return Verification(result.head.sequence, result.head, result.sequence, result.problem)


def rebuild(writer: Writer, key: bytes, anchor: Anchor | None) -> None:
    """Make the derived tables and their proof anew from the chain, which must be good."""
    if anchor is None and not writer.proof.sealed:
        raise LedgerTampered(
            f"the proof of the tables is not the one of entry {writer.proof.head.sequence}, the last: entries "
            "may have been cut off; give the newest anchor that you have, or restore a backup"
        )
    result = replay(writer.connection, key, anchor)
    if result.problem is not None:
        raise LedgerTampered(f"the tables cannot be made from this chain: entry {result.sequence} {result.problem}")
    replace_rows(writer.connection, key, result.head, result.store.rows)


def _compare(connection: Connection, result: Replay, row: type[DerivedRow]) -> None:
    expected = dict(result.store.rows[row])
    for stored in connection.execute(select(TABLES[row])).mappings():
        key = tuple(stored[name] for name in row.primary_key)
        known = expected.pop(key, None)
        if known is None:
            result.report(None, f"the table of {row.table} has {_name(key)}, which no entry accounts for")
        elif RECORDS.to_json(known) != dict(stored):
            result.report(
                None,
                f"the table of {row.table} is wrong about {_name(key)}: {_describe_difference(known, stored)}",
            )
    for key in expected:
        result.report(None, f"the table of {row.table} lacks {_name(key)}")


def _describe_difference(known: DerivedRow, stored: Any) -> str:
    differing = (
        f"{name} is {stored[name]}, the chain says {value}"
        for name, value in RECORDS.to_json(known).items()
        if stored[name] != value
    )
    return next(differing)


def _name(key: tuple[Any, ...]) -> str:
    return " ".join(str(part)[:64] for part in key)


class LedgerHealth:
    """What a process knows about the state of its ledger; `Ledger.health`."""

    def __init__(self) -> None:
        self.trouble: str | None = None
        """The last difference from what was signed that was found; None once all was found to be good again."""
        self.verifying = False
        """Whether the whole chain is being verified at the moment."""
        self._distrusted: str | None = None
        self._check_again = 0.0

    @contextmanager
    def mark_verifying(self) -> Iterator[None]:
        """Say for the time of a verification that it is going on."""
        self.verifying = True
        try:
            yield
        finally:
            self.verifying = False

    def note(self, verification: Verification) -> None:
        """Remember what a verification of the whole chain found."""
        self.trouble = None if verification.ok else str(verification)

    def distrust(self, problem: str, *, answer: bool = False) -> None:
        """Note what is wrong, for `check` and the log; nothing is answered from here on, unless `answer` says so."""
        self.trouble = problem
        if not answer:
            self._distrusted = problem
        log.error("not what was signed", extra={"fields": {"problem": problem}})

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Refuse to go on with a distrusted ledger, and remember the first difference from what was signed."""
        if self._distrusted is not None:
            raise LedgerTampered(f"the ledger is not what was signed, and nothing is answered: {self._distrusted}")
        try:
            yield
        except LedgerTampered as error:
            if self.trouble is None:
                self.distrust(str(error), answer=True)
            raise

    def check(self, database: Database, read: Callable[[], AbstractContextManager[DatabaseRowStore]]) -> None:
        """Refuse a ledger that cannot be written, or whose end, proof or permissions are not what was signed.

        What was found good is written and read again only after a while, so that a client who asks often cannot keep
        the ledger busy.
        """
        began = time.monotonic()
        due = began >= self._check_again
        database.check_room()
        if due:
            database.check_writable()
        with read() as store:
            store.proof.check_seal()
            for row in PERMISSIONS if due else ():
                store.list_all(row)
        if due:
            self._check_again = began + max(PAUSE, SHARE * (time.monotonic() - began))
        if self.trouble is not None:
            raise LedgerTampered(f"the ledger is not what was signed: {self.trouble}")
