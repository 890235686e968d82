"""The chain: numbered entries, each signed together with the signature before it.

    MAC_0 = 0…0,   MAC_n = HMAC-SHA256(key, MAC_{n-1} ‖ canonical JSON of [n, time, kind, payload])

So a changed, inserted, removed or reordered entry breaks its own signature or the next one's, and only
the key can mend it. What the chain alone cannot show is that its newest entries were cut off: an
anchor kept elsewhere can.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from sqlalchemy import Connection, bindparam, select

from idios.codec import canonical
from idios.errors import InvalidInput
from idios.ledger.facts import Fact, read_fact
from idios.ledger.statements import run, write_marks
from idios.ledger.tables import entries

BEGINNING = "0" * 64

# Built once: building a statement takes SQLAlchemy about as long as running it takes SQLite.
_NEWEST = select(entries).order_by(entries.c.sequence.desc()).limit(bindparam("count"))
_ENTRIES = f"SELECT sequence, time, kind, payload, mac FROM {entries}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger, as it is stored."""

    sequence: int
    time: str
    kind: str
    payload: str
    mac: str

    @property
    def fact(self) -> Fact:
        """What the entry says happened; ValueError if it cannot be read."""
        return read_fact(self.kind, self.payload)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The end of the chain at some time; kept elsewhere, it finds a chain that was cut off.

    >>> Anchor.parse(str(Anchor(3, "ab" * 32))).sequence
    3
    """

    sequence: int
    mac: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.mac}"

    @classmethod
    def parse(cls, text: str) -> Anchor:
        """Read an anchor that was printed as this text."""
        match = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{64})", text.strip())
        if match is None:
            raise InvalidInput(
                "an anchor is a number, a colon and 64 hexadecimal digits, as `idios ledger head` prints it, "
                f"not {text.strip()[:90]!r}"
            )
        return cls(int(match[1]), match[2])


START = Anchor(0, BEGINNING)


def sign(key: bytes, previous: str, sequence: int, time: str, kind: str, payload: str) -> str:
    """Compute the MAC of an entry that follows the one whose MAC is `previous`."""
    entry = canonical([sequence, time, kind, payload]).encode("ascii")
    return hmac.digest(key, bytes.fromhex(previous) + entry, "sha256").hex()


def sign_entry(key: bytes, head: Anchor, time: str, fact: Fact) -> Entry:
    """Make the signed entry that records the fact at the end of the chain."""
    sequence, payload = head.sequence + 1, fact.payload
    return Entry(sequence, time, fact.kind, payload, sign(key, head.mac, sequence, time, fact.kind, payload))


def is_signed(key: bytes, previous: str, entry: Entry) -> bool:
    """Whether the entry is signed with the key and follows the one whose MAC is `previous`."""
    try:
        expected = sign(key, previous, entry.sequence, entry.time, entry.kind, entry.payload)
        return hmac.compare_digest(expected, entry.mac)
    except (TypeError, ValueError):
        return False  # a column was overwritten with something else than the ledger's text


def append_entry(connection: Connection, key: bytes, head: Anchor, time: str, fact: Fact) -> Entry:
    """Record the fact at the end of the chain; the entry is durable when the transaction has ended."""
    entry = sign_entry(key, head, time, fact)
    write_entries(connection, [entry])
    return entry


def write_entries(connection: Connection, signed: list[Entry]) -> None:
    """Write signed entries, which follow the last one that is there."""
    rows = [(entry.sequence, entry.time, entry.kind, entry.payload, entry.mac) for entry in signed]
    run(connection, _append(len(rows)), [value for row in rows for value in row])


@cache
def _append(count: int) -> str:
    return f"INSERT INTO {entries} (sequence, time, kind, payload, mac) VALUES {write_marks(5, count)}"


def read_entries(
    connection: Connection, *, after: int, limit: int | None = None, kinds: tuple[str, ...] = ()
) -> list[Entry]:
    """Read the entries that follow number `after`, in order."""
    statement = select(entries).where(entries.c.sequence > after).order_by(entries.c.sequence).limit(limit)
    if kinds:
        statement = statement.where(entries.c.kind.in_(kinds))
    return [Entry(*row) for row in connection.execute(statement)]


def read_last(connection: Connection, count: int) -> list[Entry]:
    """Read the newest entries, newest first."""
    return [Entry(*row) for row in connection.execute(_NEWEST, {"count": count})]


def read_numbered(connection: Connection, numbers: set[int]) -> dict[int, Entry]:
    """Read the entries with these numbers."""
    by_number = {}
    for part in _split(sorted(numbers), 500):
        for row in run(connection, f"{_ENTRIES} WHERE sequence IN {write_marks(len(part))}", part):
            by_number[row[0]] = Entry(*row)
    return by_number


def _split(numbers: list[int], size: int) -> Iterator[list[int]]:
    # Databases take a limited number of parameters in one statement.
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]
