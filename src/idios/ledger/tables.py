"""The ledger's tables: the chain, one row to lock, the derived rows and their proof, and what is operational.

Everything but numbers is text, and ASCII where it is signed: SQLite and PostgreSQL keep the same bytes. The
operational tables are about work in progress; they are neither in the chain nor derived from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    bindparam,
    insert,
    select,
)

from idios.codec import field_types
from idios.errors import LedgerTampered
from idios.ledger.amounts import RECORDS
from idios.ledger.chain import Entry
from idios.ledger.rows import ROWS, Row, SomeRow

FORMAT = 3
# The newest of the migrations, which a new ledger is at from its beginning.
REVISION = "0003"
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

# Which migrations the tables have had. It is Alembic's own table, so it is not part of what Alembic compares.
SCHEMA = Table(
    "idios_schema",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="idios_schema_pkc"),
)

# The proof of the derived rows, sealed with the end of the chain; see proof.py.
merkle = Table(
    "idios_merkle",
    metadata,
    Column("page", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

# The keys that callers gave their requests; see idempotency.py.
requests = Table(
    "idios_requests",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("request_key", Text, primary_key=True),
    Column("question_key", Text, nullable=False),
    Column("time", Text, nullable=False, index=True),
)

# The questions that outlast one HTTP request; see running.py.
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

# The console's sessions that were signed out; see sessions.py.
ended_sessions = Table(
    "idios_ended_sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("expires", Text, nullable=False, index=True),
)


def _derived(row: type[Row]) -> Table:
    indexed = {"payments": ("analyst",), "questions": ("released",)}.get(row.table, ())
    return Table(
        f"idios_{row.table}",
        metadata,
        *(
            Column(
                name,
                _Sequence if kind is int else Text(),
                primary_key=name in row.identity,
                nullable=optional,
                index=name in indexed,
            )
            for name, (kind, optional) in field_types(row).items()
        ),
    )


TABLES: dict[type[Row], Table] = {row: _derived(row) for row in ROWS}


# Built once: building a statement takes SQLAlchemy about as long as running it takes SQLite.
LOCK = select(chain.c.format).with_for_update()
APPEND = insert(entries)
_NEWEST = select(entries).order_by(entries.c.sequence.desc()).limit(bindparam("count"))
_NUMBERED = select(entries).where(entries.c.sequence.in_(bindparam("numbers", expanding=True)))


def read_row(row: type[SomeRow], columns: Any) -> SomeRow:
    """The row behind its columns."""
    try:
        return RECORDS.from_json(row, columns, row.__name__)
    except ValueError as error:
        raise LedgerTampered(f"a row of the ledger's {row.table} cannot be read ({error}); {VERIFY}") from error


def read_entries(
    connection: Connection, *, after: int, limit: int | None = None, kinds: tuple[str, ...] = ()
) -> list[Entry]:
    """The entries that follow number `after`, in order."""
    wanted = select(entries).where(entries.c.sequence > after).order_by(entries.c.sequence).limit(limit)
    if kinds:
        wanted = wanted.where(entries.c.kind.in_(kinds))
    return [Entry(*row) for row in connection.execute(wanted)]


def last_entries(connection: Connection, count: int) -> list[Entry]:
    """The newest entries, newest first."""
    return [Entry(*row) for row in connection.execute(_NEWEST, {"count": count})]


def numbered_entries(connection: Connection, numbers: set[int]) -> dict[int, Entry]:
    """The entries with these numbers."""
    found = {}
    for part in _parts(sorted(numbers), 500):
        for row in connection.execute(_NUMBERED, {"numbers": part}):
            found[row.sequence] = Entry(*row)
    return found


def _parts(numbers: list[int], size: int) -> Iterator[list[int]]:
    # Databases take a limited number of parameters in one statement.
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]
