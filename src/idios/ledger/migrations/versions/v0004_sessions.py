"""Format 3: sessions that were signed out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0002"


def upgrade() -> None:
    """Add one operational table."""
    op.create_table(
        "idios_ended_sessions",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("expires", sa.Text(), nullable=False),
    )
    op.create_index("ix_idios_ended_sessions_expires", "idios_ended_sessions", ["expires"])
    op.execute("UPDATE idios_chain SET format = 3")
