"""One writing transaction: the book as it is, and a pen that appends to the chain."""

from __future__ import annotations

from sqlalchemy import Connection

from idios.errors import LedgerTampered
from idios.ledger.chain import BEGINNING, START, Anchor, fits, next_entry
from idios.ledger.codec import to_plain
from idios.ledger.facts import Fact
from idios.ledger.names import Clock, moment
from idios.ledger.rows import Contradiction
from idios.ledger.state import apply
from idios.ledger.tables import APPEND, VERIFY, TableBook, last_entries, read_entries


class Writer:
    """Appends facts to a chain whose end it has checked, and keeps the derived rows in step."""

    def __init__(self, connection: Connection, key: bytes, clock: Clock, known: Anchor) -> None:
        self.connection = connection
        self.book = TableBook(connection)
        self.head = checked_head(connection, key, known)
        self._key = key
        self._clock = clock

    def append(self, fact: Fact | None) -> None:
        """Record the fact, if there is one; it is durable when the transaction has ended."""
        if fact is None:
            return
        entry = next_entry(self._key, self.head, moment(self._clock()), fact)
        self.connection.execute(APPEND, to_plain(entry))
        try:
            apply(self.book, entry.sequence, fact)
        except Contradiction as error:
            raise LedgerTampered(f"the ledger's tables disagree with its chain: {error}; {VERIFY}") from error
        self.head = Anchor(entry.sequence, entry.mac)


def checked_head(connection: Connection, key: bytes, known: Anchor = START) -> Anchor:
    """The end of the chain, refused if it is not signed with the key or lies before an end that was seen."""
    last = last_entries(connection, 2)
    head = Anchor(last[0].sequence, last[0].mac) if last else START
    if head.sequence < known.sequence or (head.sequence == known.sequence and head != known):
        raise LedgerTampered(
            f"the ledger ends at entry {head.sequence} and lacks the entry {known.sequence} that was there "
            "before: it was cut off or replaced by an older copy; restore the newest one"
        )
    if last and head != known and not fits(key, last[1].mac if len(last) > 1 else BEGINNING, last[0]):
        raise LedgerTampered(
            f"entry {head.sequence}, the ledger's last, is not signed with this key: it was changed, or "
            f"written with another key; {VERIFY}"
        )
    return head


def proves_key(connection: Connection, key: bytes) -> bool:
    """Whether the last or the first entry is signed with the key; true of an empty chain.

    One of the two is enough, so that a ledger that was tampered with can still be opened and verified.
    """
    last, first = last_entries(connection, 2), read_entries(connection, after=0, limit=1)
    if not last or not first:
        return not last
    previous = last[1].mac if len(last) > 1 else BEGINNING
    return fits(key, previous, last[0]) or fits(key, BEGINNING, first[0])
