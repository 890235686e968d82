"""Format 1: the chain, the row to lock, and the rows derived from the chain."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "idios_entries",
        sa.Column("sequence", _SEQUENCE, primary_key=True, autoincrement=False),
        _text("time"),
        _text("kind"),
        _text("payload"),
        _text("mac"),
    )
    op.create_table("idios_chain", sa.Column("format", sa.Integer(), primary_key=True, autoincrement=False))
    op.create_table(
        "idios_datasets",
        _key("dataset"),
        _text("version"),
        _text("min_epsilon"),
        _text("epsilon"),
        _text("delta"),
        _text("epsilon_spent"),
        _text("delta_spent"),
        _entry("retired"),
    )
    op.create_table("idios_analysts", _key("analyst"))
    op.create_table(
        "idios_grants",
        _key("analyst"),
        _key("dataset"),
        sa.Column("epsilon", sa.Text(), nullable=True),
        sa.Column("delta", sa.Text(), nullable=True),
        _text("epsilon_spent"),
        _text("delta_spent"),
    )
    op.create_table(
        "idios_tokens",
        _key("token"),
        _text("digest"),
        _text("analyst"),
        _text("expires"),
        _entry("revoked"),
    )
    op.create_table(
        "idios_questions",
        _key("key"),
        _text("dataset"),
        sa.Column("reserved", _SEQUENCE, nullable=False),
        _entry("released"),
    )
    op.create_index("ix_idios_questions_released", "idios_questions", ["released"])
    op.create_table("idios_payments", _key("key"), _key("analyst"))
    op.create_index("ix_idios_payments_analyst", "idios_payments", ["analyst"])
    op.execute("INSERT INTO idios_chain (format) VALUES (1)")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), primary_key=True)


def _entry(name: str) -> sa.Column[int]:
    return sa.Column(name, _SEQUENCE, nullable=True)
