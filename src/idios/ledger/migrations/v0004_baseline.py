"""Format 4, the oldest: the chain, the row to lock, the derived rows and their proof, and the operational tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = None

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    _create_chain()
    _create_derived()
    _create_operational()
    op.execute("INSERT INTO idios_chain (format) VALUES (4)")


def _create_chain() -> None:
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
        "idios_merkle",
        sa.Column("page", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
    )


def _create_derived() -> None:
    op.create_table(
        "idios_datasets",
        _key("dataset"),
        _text("version"),
        _text("min_epsilon"),
        _text("epsilon"),
        _text("delta"),
        _text("declared_epsilon"),
        _text("declared_delta"),
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
        _entry("withdrawn"),
    )
    op.create_table(
        "idios_tokens",
        _key("token"),
        _text("digest"),
        _text("holder"),
        _text("role"),
        _text("expires"),
        sa.Column("issued", _SEQUENCE, nullable=False),
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
    op.create_table("idios_failures", _key("key"), sa.Column("failed", _SEQUENCE, primary_key=True))


def _create_operational() -> None:
    op.create_table(
        "idios_idempotency_keys", _key("caller"), _key("idempotency_key"), _text("question_key"), _text("time")
    )
    op.create_index("ix_idios_idempotency_keys_time", "idios_idempotency_keys", ["time"])
    op.create_table(
        "idios_running",
        _key("id"),
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
    op.create_table("idios_ended_sessions", _key("id"), _text("expires"))
    op.create_index("ix_idios_ended_sessions_expires", "idios_ended_sessions", ["expires"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), primary_key=True)


def _entry(name: str) -> sa.Column[int]:
    return sa.Column(name, _SEQUENCE, nullable=True)
