"""How an older ledger becomes one of this version: its tables by migrations, its derived rows from its chain.

Rules:

1. A migration is never edited once a ledger may have been made with it: it says what its tables are in its own
   words, whatever tables.py says today.
2. It changes tables, never entries. The derived rows are made anew from the chain afterwards.
3. All happens in one transaction, which both kinds of database allow for tables as for rows: on any failure the ledger
   is as it was.
4. A new ledger is made at once as tables.py says; a test holds that against all migrations in their order.

Alembic is imported only when it is needed, as that takes longer than opening a ledger.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from idios.errors import LedgerTampered
from idios.ledger.database import Database, read_format
from idios.ledger.store import replace_rows
from idios.ledger.tables import FORMAT, SCHEMA
from idios.ledger.verification import replay

FOLDERS = [str(Path(__file__).parent)]
"""Where the migrations are, one module each, in the order of their numbers."""


def upgrade(database: Database, key: bytes) -> bool:
    """Bring the ledger to this version's format; False if it is of it already."""
    with database.changing() as connection:
        if read_format(connection, database.place) == FORMAT:
            return False
        migrate(connection)
        result = replay(connection, key)
        if result.problem is not None:
            raise LedgerTampered(
                f"the ledger {database.place} cannot be upgraded, as its chain is not good: entry {result.sequence} "
                f"{result.problem}; nothing was changed"
            )
        replace_rows(connection, key, result.head, result.store.rows)
        return True


def migrate(connection: Connection, target: str = "head") -> None:
    """Run the migrations that the tables lack, up to the target, in the connection's transaction."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    scripts = read_scripts()
    context = MigrationContext.configure(connection, opts={"version_table": SCHEMA.name})
    missing = list(scripts.iterate_revisions(target, context.get_current_revision() or "base"))
    with Operations.context(context):
        for step in reversed(missing):
            step.module.upgrade()
            context.stamp(scripts, step.revision)


def read_scripts() -> Any:
    """Read the migrations, as Alembic does."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(FOLDERS[0], version_locations=FOLDERS)
