"""One writing transaction: the derived rows, and a writer that appends to the chain."""

from __future__ import annotations

from sqlalchemy import Connection

from idios.errors import LedgerTampered
from idios.ledger.amounts import RECORDS
from idios.ledger.book import TableBook
from idios.ledger.chain import Anchor, Entry, next_entry
from idios.ledger.facts import Fact
from idios.ledger.names import Clock, moment
from idios.ledger.proof import Memory, Proof
from idios.ledger.rows import Contradiction
from idios.ledger.state import apply
from idios.ledger.tables import APPEND, VERIFY


class Writer:
    """Appends facts to a chain whose end it has checked, and keeps the derived rows and their proof in step."""

    def __init__(self, connection: Connection, memory: Memory, clock: Clock) -> None:
        self.connection = connection
        # The ledger is locked: what this process knows is not newer than what is there.
        self.proof = Proof(connection, memory, memory.known)
        self.book = TableBook(connection, self.proof)
        self._key = memory.key
        self._clock = clock

    def append(self, fact: Fact | None) -> Entry | None:
        """Record the fact, if there is one; its entry is durable when the transaction has ended."""
        if fact is None:
            return None
        entry = next_entry(self._key, self.proof.head, moment(self._clock()), fact)
        self.connection.execute(APPEND, RECORDS.to_json(entry))
        try:
            apply(self.book, entry.sequence, fact)
        except Contradiction as error:
            raise LedgerTampered(f"the ledger's tables disagree with its chain: {error}; {VERIFY}") from error
        self.proof.write(Anchor(entry.sequence, entry.mac))
        return entry
