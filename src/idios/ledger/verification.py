"""Whether the chain is what was signed, and the tables are what the chain says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from idios.ledger.amounts import RECORDS
from idios.ledger.chain import START, Anchor, Entry, fits
from idios.ledger.proof import compare_proof
from idios.ledger.rows import MemoryBook, Row
from idios.ledger.state import apply
from idios.ledger.tables import TABLES, read_entries

PAGE = 1000


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
            return f"{self.entries} entries, all as signed; the tables agree with them"
        where = "" if self.sequence is None else f"entry {self.sequence}: "
        return f"{where}{self.problem} (good entries before it: {self.entries})"


@dataclass
class Replay:
    """The chain read from its beginning, as far as it is good."""

    book: MemoryBook
    head: Anchor = START
    sequence: int | None = None
    problem: str | None = None

    def found(self, sequence: int | None, problem: str) -> None:
        """Note the first problem."""
        if self.problem is None:
            self.sequence, self.problem = sequence, problem


def replay(connection: Connection, key: bytes, anchor: Anchor | None = None) -> Replay:
    """Check every signature and bring a book in memory up to the last good entry."""
    result = Replay(MemoryBook())
    lowest = -(2**62)
    page = read_entries(connection, after=lowest, limit=PAGE)
    while page and result.problem is None:
        for entry in page:
            _follow(result, key, entry, anchor)
            if result.problem is not None:
                break
        page = read_entries(connection, after=page[-1].sequence, limit=PAGE)
    if anchor is not None and result.problem is None and anchor.sequence > result.head.sequence:
        result.found(
            result.head.sequence + 1,
            f"is missing: the chain ends at entry {result.head.sequence}, the anchor is entry "
            f"{anchor.sequence}; it was cut off",
        )
    return result


def _follow(result: Replay, key: bytes, entry: Entry, anchor: Anchor | None) -> None:
    expected = result.head.sequence + 1
    if entry.sequence < expected:
        return result.found(entry.sequence, "was inserted: entries are numbered from 1, each number once")
    if entry.sequence > expected:
        return result.found(
            expected, f"is missing: entry {entry.sequence} follows entry {expected - 1}; it was removed"
        )
    if not fits(key, result.head.mac, entry):
        return result.found(
            expected,
            "is not signed as it stands: it was changed, inserted or moved, or one before it was removed",
        )
    if anchor is not None and anchor.sequence == expected and anchor.mac != entry.mac:
        return result.found(expected, "is not the anchored one: the chain was rewritten by a holder of the key")
    try:
        apply(result.book, expected, entry.fact)
    except ValueError as error:
        return result.found(expected, f"is signed, but cannot stand here: {error}")
    result.head = Anchor(expected, entry.mac)
    return None


def verify(connection: Connection, key: bytes, anchor: Anchor | None) -> Verification:
    """Check the chain, the anchor and the derived tables."""
    result = replay(connection, key, anchor)
    if result.problem is None:
        for row in TABLES:
            _compare(connection, result, row)
    if result.problem is None:
        rows = (one for some in result.book.rows.values() for one in some.values())
        problem = compare_proof(connection, key, result.head, rows)
        if problem is not None:
            result.found(None, problem)
    return Verification(result.head.sequence, result.head, result.sequence, result.problem)


def _compare(connection: Connection, result: Replay, row: type[Row]) -> None:
    expected = dict(result.book.rows[row])
    for found in connection.execute(select(TABLES[row])).mappings():
        identity = tuple(found[name] for name in row.identity)
        known = expected.pop(identity, None)
        if known is None:
            result.found(None, f"the table of {row.table} has {_named(identity)}, which no entry accounts for")
        elif RECORDS.to_json(known) != dict(found):
            result.found(
                None,
                f"the table of {row.table} is wrong about {_named(identity)}: {_difference(known, found)}",
            )
    for identity in expected:
        result.found(None, f"the table of {row.table} lacks {_named(identity)}")


def _difference(known: Row, found: Any) -> str:
    differing = (
        f"{name} is {found[name]}, the chain says {value}"
        for name, value in RECORDS.to_json(known).items()
        if found[name] != value
    )
    return next(differing)


def _named(identity: tuple[Any, ...]) -> str:
    return " ".join(str(part)[:64] for part in identity)
