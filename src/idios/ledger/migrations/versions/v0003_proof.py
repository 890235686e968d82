"""Format 3: the proof of the derived rows, which are made anew from the chain together with it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the pages of the Merkle tree."""
    op.create_table(
        "idios_merkle",
        sa.Column("page", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
    )
    op.execute("UPDATE idios_chain SET format = 3")
