"""Format 3: the proof of the derived rows, which are made anew from the chain together with it; sessions signed out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the pages of the Merkle tree, and one operational table."""
    op.create_table(
        "idios_merkle",
        sa.Column("page", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "idios_ended_sessions",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("expires", sa.Text(), nullable=False),
    )
    op.create_index("ix_idios_ended_sessions_expires", "idios_ended_sessions", ["expires"])
    op.execute("UPDATE idios_chain SET format = 3")
