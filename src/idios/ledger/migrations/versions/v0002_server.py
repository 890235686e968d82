"""Format 2: tokens with roles, withdrawn grants, declared budgets, and the tables a server works with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Change the derived tables, which are filled anew from the chain, and add the operational ones."""
    for table in ("datasets", "grants", "tokens"):
        op.execute(f"DELETE FROM idios_{table}")
    # Altered where the database can do that, not dropped: whoever was allowed to read a table still is.
    with op.batch_alter_table("idios_datasets") as datasets:
        datasets.add_column(_text("declared_epsilon"))
        datasets.add_column(_text("declared_delta"))
    with op.batch_alter_table("idios_grants") as grants:
        grants.add_column(sa.Column("withdrawn", _SEQUENCE, nullable=True))
    with op.batch_alter_table("idios_tokens") as tokens:
        tokens.alter_column("analyst", new_column_name="holder")
        tokens.add_column(_text("role"))
        tokens.add_column(sa.Column("issued", _SEQUENCE, nullable=False))
    op.create_table(
        "idios_requests",
        sa.Column("caller", sa.Text(), primary_key=True),
        sa.Column("request_key", sa.Text(), primary_key=True),
        _text("question_key"),
        _text("time"),
    )
    op.create_index("ix_idios_requests_time", "idios_requests", ["time"])
    op.create_table(
        "idios_running",
        sa.Column("id", sa.Text(), primary_key=True),
        _text("caller"),
        _text("dataset"),
        _text("request"),
        _text("started"),
        _text("heartbeat"),
        _text("step"),
        sa.Column("share", sa.Double(), nullable=False),
        _text("state"),
        sa.Column("cancel", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_idios_running_started", "idios_running", ["started"])
    op.execute("UPDATE idios_chain SET format = 2")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
