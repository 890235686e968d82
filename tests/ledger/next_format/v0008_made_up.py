"""Format 7, made up: what an upgrade does to an older ledger, without a next format to do it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add a table and an index, and change one derived and one operational table."""
    op.create_table("idios_made_up", sa.Column("name", sa.Text(), primary_key=True))
    # The derived rows are filled anew from the chain.
    op.execute("DELETE FROM idios_datasets")
    with op.batch_alter_table("idios_datasets") as datasets:
        datasets.add_column(sa.Column("owner", sa.Text(), nullable=True))
    # SQLite cannot alter a column: the table is copied.
    with op.batch_alter_table("idios_running") as running:
        running.alter_column("step", nullable=True, existing_type=sa.Text(), existing_nullable=False)
    op.create_index("ix_idios_running_caller", "idios_running", ["caller"])
    op.execute("UPDATE idios_chain SET format = 8")
