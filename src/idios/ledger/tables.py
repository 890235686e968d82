"""The ledger's tables: the chain, one row to lock, the derived rows and their proof, and what is operational.

Everything but numbers is text, and ASCII where it is signed: SQLite and PostgreSQL keep the same bytes. The
operational tables are about work in progress; they are neither in the chain nor derived from it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    select,
)

from idios.codec import field_types
from idios.errors import LedgerTampered
from idios.ledger.state import ROWS, DerivedRow, SomeRow
from idios.ledger.values import RECORDS

FORMAT = 7
"""The number of the layout below, which each ledger keeps: a change of the tables is another format."""
VERIFY = "run `idios ledger verify`"

metadata = MetaData()

# SQLite's own key is spelled INTEGER and is as wide as a BIGINT.
_Sequence = BigInteger().with_variant(Integer, "sqlite")

entries = Table(
    "idios_entries",
    metadata,
    Column("sequence", _Sequence, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("mac", Text, nullable=False),
)

# The one row that writers lock. It says how the ledger is laid out and nothing about its content.
chain = Table("idios_chain", metadata, Column("format", Integer, primary_key=True, autoincrement=False))

# The proof of the derived rows, sealed with the end of the chain; see proof.py.
merkle = Table(
    "idios_merkle",
    metadata,
    Column("page", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

# The keys that callers gave their requests; see operational.py.
idempotency_keys = Table(
    "idios_idempotency_keys",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("question_key", Text, nullable=False),
    Column("time", Text, nullable=False, index=True),
)

# The questions that outlast one HTTP request; see operational.py.
running = Table(
    "idios_running",
    metadata,
    Column("id", Text, primary_key=True),
    Column("caller", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("started", Text, nullable=False, index=True),
    Column("heartbeat", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("share", Double, nullable=False),
    Column("state", Text, nullable=False),
    Column("cancel", Boolean, nullable=False),
)

# The console's sessions that were signed out; see operational.py.
ended_sessions = Table(
    "idios_ended_sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("expires", Text, nullable=False, index=True),
)


def _define_table(row: type[DerivedRow]) -> Table:
    indexed = {"payments": ("analyst",), "questions": ("released",)}.get(row.table, ())
    return Table(
        f"idios_{row.table}",
        metadata,
        *(
            Column(
                name,
                _Sequence if kind is int else Text(),
                primary_key=name in row.primary_key,
                nullable=optional,
                index=name in indexed,
            )
            for name, (kind, optional) in field_types(row).items()
        ),
    )


TABLES: dict[type[DerivedRow], Table] = {row: _define_table(row) for row in ROWS}

# Built once: building a statement takes SQLAlchemy about as long as running it takes SQLite.
LOCK = select(chain.c.format).with_for_update()


def read_row(row: type[SomeRow], columns: Any) -> SomeRow:
    """Make the row of its columns."""
    try:
        return RECORDS.from_json(row, columns, row.__name__)
    except ValueError as error:
        raise LedgerTampered(f"a row of the ledger's {row.table} cannot be read ({error}); {VERIFY}") from error
