"""The derived rows in the database, none of which is trusted without its proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from idios.codec import field_types
from idios.ledger.amounts import RECORDS, Plain
from idios.ledger.chain import Anchor
from idios.ledger.names import checked_name
from idios.ledger.proof import Proof, write_proof
from idios.ledger.rows import ROWS, Row, SomeRow, identity_of
from idios.ledger.tables import TABLES, read_row


def _this(row: type[Row]) -> Any:
    return and_(*(TABLES[row].c[name] == bindparam(f"this_{name}") for name in row.identity))


# Built once: building a statement takes SQLAlchemy about as long as running it takes SQLite.
_FIND = {row: select(TABLES[row]).where(_this(row)) for row in ROWS}
_ADD = {row: insert(TABLES[row]) for row in ROWS}
_CHANGE = {
    row: update(TABLES[row])
    .where(_this(row))
    .values({name: bindparam(name) for name in field_types(row) if name not in row.identity})
    for row in ROWS
    if len(field_types(row)) > len(row.identity)
}


class TableBook:
    """Rows in the database, each read once: a transaction's view of the ledger does not change under it."""

    def __init__(self, connection: Connection, proof: Proof) -> None:
        self.connection = connection
        self.proof = proof
        self._seen: dict[tuple[type[Row], tuple[str, ...]], Row | None] = {}

    def find(self, row: type[SomeRow], *identity: str) -> SomeRow | None:
        """The row with this identity, if there is one."""
        # What could not have been stored is not asked of the database: each driver fails in its own way.
        if not all(isinstance(part, str) and part.isprintable() for part in identity):
            return None
        place = (row, identity)
        if place not in self._seen:
            found = self.connection.execute(_FIND[row], _where(row, identity)).one_or_none()
            self._seen[place] = self.proof.read(row, identity, found)
        seen = self._seen[place]
        return seen if isinstance(seen, row) else None

    def every(self, row: type[SomeRow], **wanted: str | None) -> list[SomeRow]:
        """All rows, none missing, or those with the wanted values (None: any)."""
        table = TABLES[row]
        asked, narrowed = select(table).order_by(*table.primary_key.columns), False
        for name, value in wanted.items():
            if value is not None:
                asked, narrowed = asked.where(table.c[name] == checked_name(name, value)), True
        rows = [self.proved(row, found) for found in self.connection.execute(asked)]
        if not narrowed:
            self.proof.check_count(row, len(rows))
        return rows

    def proved(self, row: type[SomeRow], found: Sequence[Any]) -> SomeRow:
        """The row behind columns that were found in its table."""
        columns = dict(zip(field_types(row), found, strict=True))
        identity = tuple(columns[name] for name in row.identity)
        if not all(isinstance(part, str) for part in identity):
            return read_row(row, columns)  # which refuses it: SQLite stores any type in a column
        read = self.proof.read(row, identity, found)
        assert read is not None
        return read

    def add(self, row: Row) -> None:
        """Keep a row that was not there."""
        columns = RECORDS.to_json(row)
        self.connection.execute(_ADD[type(row)], columns)
        self._keep(row, columns, added=True)

    def change(self, row: Row) -> None:
        """Keep a row in place of the one with its identity."""
        columns = RECORDS.to_json(row)
        values: dict[str, Plain] = {name: value for name, value in columns.items() if name not in row.identity}
        self.connection.execute(_CHANGE[type(row)], values | _where(type(row), identity_of(row)))
        self._keep(row, columns, added=False)

    def _keep(self, row: Row, columns: dict[str, Plain], *, added: bool) -> None:
        self.proof.put(row, tuple(columns.values()), added=added)
        self._seen[type(row), identity_of(row)] = row


def _where(row: type[Row], identity: tuple[str, ...]) -> dict[str, Plain]:
    return {f"this_{name}": value for name, value in zip(row.identity, identity, strict=True)}


def replace_rows(
    connection: Connection, key: bytes, head: Anchor, rows: dict[type[Row], dict[tuple[str, ...], Row]]
) -> None:
    """Make the derived tables hold these rows and no others, with their proof."""
    for row, table in TABLES.items():
        connection.execute(delete(table))
        if rows[row]:
            connection.execute(insert(table), [RECORDS.to_json(one) for one in rows[row].values()])
    write_proof(connection, key, head, (one for some in rows.values() for one in some.values()))
