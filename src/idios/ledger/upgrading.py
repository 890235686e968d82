"""An older ledger brought to this version: its tables by migrations, its derived rows from its chain.

All in one transaction, which both kinds of database allow for tables as for rows: on any failure the ledger is as
it was. Alembic is imported only when it is needed, as that takes longer than opening a ledger.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect

from idios.errors import LedgerTampered
from idios.ledger import migrations
from idios.ledger.book import replace_rows
from idios.ledger.database import Database, format_of
from idios.ledger.tables import FORMAT, SCHEMA, chain
from idios.ledger.verification import replay


def upgrade(database: Database, key: bytes) -> bool:
    """Bring the ledger to this version's format; False if it is of it already."""
    with database.changing() as connection:
        if format_of(connection, database.place) == FORMAT:
            return False
        migrate(connection)
        result = replay(connection, key)
        if result.problem is not None:
            raise LedgerTampered(
                f"the ledger {database.place} cannot be upgraded, as its chain is not good: entry {result.sequence} "
                f"{result.problem}; nothing was changed"
            )
        replace_rows(connection, key, result.head, result.book.rows)
        return True


def migrate(connection: Connection, target: str = "head") -> None:
    """Run the migrations that the tables lack, up to the target, in the connection's transaction."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    script = scripts()
    context = MigrationContext.configure(connection, opts={"version_table": SCHEMA.name})
    current = context.get_current_revision()
    if current is None and inspect(connection).has_table(chain.name):
        current = "0001"  # format 1 is older than the table that keeps the version
    missing = list(script.iterate_revisions(target, current or "base"))
    with Operations.context(context):
        for step in reversed(missing):
            step.module.upgrade()
            context.stamp(script, step.revision)


def scripts() -> Any:
    """The migrations, as Alembic reads them."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(Path(migrations.__file__).parent))
