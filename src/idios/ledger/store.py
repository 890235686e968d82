"""The derived rows in the database, none of which is trusted without its proof; and the writer of one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from idios.codec import field_types
from idios.errors import LedgerTampered
from idios.ledger.chain import Anchor, Entry, append_entry
from idios.ledger.facts import Fact
from idios.ledger.proof import Memory, Proof, write_proof
from idios.ledger.state import ROWS, ContradictoryFact, DerivedRow, PrimaryKey, SomeRow, apply, get_primary_key
from idios.ledger.tables import TABLES, VERIFY, read_row
from idios.ledger.values import RECORDS, Clock, Plain, check_name, format_time


def _match_key(row: type[DerivedRow]) -> Any:
    return and_(*(TABLES[row].c[name] == bindparam(f"this_{name}") for name in row.primary_key))


# Built once: building a statement takes SQLAlchemy about as long as running it takes SQLite.
_FIND = {row: select(TABLES[row]).where(_match_key(row)) for row in ROWS}
_ADD = {row: insert(TABLES[row]) for row in ROWS}
_UPDATE = {
    row: update(TABLES[row])
    .where(_match_key(row))
    .values({name: bindparam(name) for name in field_types(row) if name not in row.primary_key})
    for row in ROWS
    if len(field_types(row)) > len(row.primary_key)
}


class DatabaseRowStore:
    """Rows in the database, each read once: a transaction's view of the ledger does not change under it."""

    def __init__(self, connection: Connection, proof: Proof) -> None:
        self.connection = connection
        self.proof = proof
        self._rows: dict[tuple[type[DerivedRow], PrimaryKey], DerivedRow | None] = {}

    def get(self, row: type[SomeRow], *key: str) -> SomeRow | None:
        """Return the row with this primary key, if there is one."""
        # What could not have been stored is not asked of the database: each driver fails in its own way.
        if not all(isinstance(part, str) and part.isprintable() for part in key):
            return None
        place = (row, key)
        if place not in self._rows:
            columns = self.connection.execute(_FIND[row], _bind_key(row, key)).one_or_none()
            self._rows[place] = self.proof.read(row, key, columns)
        known = self._rows[place]
        return known if isinstance(known, row) else None

    def list_all(self, row: type[SomeRow], **wanted: str | None) -> list[SomeRow]:
        """Return all rows, none missing, or those with the wanted values (None: any)."""
        table = TABLES[row]
        statement, narrowed = select(table).order_by(*table.primary_key.columns), False
        for name, value in wanted.items():
            if value is not None:
                statement, narrowed = statement.where(table.c[name] == check_name(name, value)), True
        rows = [self.prove(row, columns) for columns in self.connection.execute(statement)]
        if not narrowed:
            self.proof.check_count(row, len(rows))
        return rows

    def prove(self, row: type[SomeRow], columns: Sequence[Any]) -> SomeRow:
        """Return the row behind columns of its table; refuse one that was not signed."""
        named, kinds = dict(zip(field_types(row), columns, strict=True)), field_types(row)
        key = tuple(named[name] for name in row.primary_key)
        if not all(isinstance(named[name], kinds[name][0]) for name in row.primary_key):
            return read_row(row, named)  # which refuses it: SQLite stores any type in a column
        proved = self.proof.read(row, key, columns)
        assert proved is not None
        return proved

    def add(self, row: DerivedRow) -> None:
        """Keep a row that was not there."""
        columns = RECORDS.to_json(row)
        self.connection.execute(_ADD[type(row)], columns)
        self._keep(row, columns, added=True)

    def update(self, row: DerivedRow) -> None:
        """Keep a row in place of the one with its primary key."""
        columns = RECORDS.to_json(row)
        values: dict[str, Plain] = {name: value for name, value in columns.items() if name not in row.primary_key}
        self.connection.execute(_UPDATE[type(row)], values | _bind_key(type(row), get_primary_key(row)))
        self._keep(row, columns, added=False)

    def _keep(self, row: DerivedRow, columns: dict[str, Plain], *, added: bool) -> None:
        self.proof.put(row, tuple(columns.values()), added=added)
        self._rows[type(row), get_primary_key(row)] = row


def _bind_key(row: type[DerivedRow], key: PrimaryKey) -> dict[str, Plain]:
    return {f"this_{name}": value for name, value in zip(row.primary_key, key, strict=True)}


def replace_rows(
    connection: Connection, key: bytes, head: Anchor, rows: dict[type[DerivedRow], dict[PrimaryKey, DerivedRow]]
) -> None:
    """Make the derived tables hold these rows and no others, with their proof."""
    for row, table in TABLES.items():
        connection.execute(delete(table))
        if rows[row]:
            connection.execute(insert(table), [RECORDS.to_json(derived) for derived in rows[row].values()])
    write_proof(connection, key, head, (row for table in rows.values() for row in table.values()))


class Writer:
    """Appends facts to a chain whose end it has checked, and keeps the derived rows and their proof in step."""

    def __init__(self, connection: Connection, memory: Memory, clock: Clock) -> None:
        self.connection = connection
        # The ledger is locked: what this process knows is not newer than what is there.
        self.proof = Proof(connection, memory, memory.known)
        self.store = DatabaseRowStore(connection, self.proof)
        self._key = memory.key
        self._clock = clock

    def append(self, fact: Fact | None) -> Entry | None:
        """Record the fact, if there is one; its entry is durable when the transaction has ended."""
        if fact is None:
            return None
        entry = append_entry(self.connection, self._key, self.proof.head, format_time(self._clock()), fact)
        try:
            apply(self.store, entry.sequence, fact)
        except ContradictoryFact as error:
            raise LedgerTampered(f"the ledger's tables disagree with its chain: {error}; {VERIFY}") from error
        self.proof.write(Anchor(entry.sequence, entry.mac))
        return entry
