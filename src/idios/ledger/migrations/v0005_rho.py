"""Format 5: ρ beside ε, and the accounting that a data set is declared with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables of what is charged anew: their rows are derived from the chain afterwards."""
    op.drop_table("idios_datasets")
    op.create_table(
        "idios_datasets",
        _key("dataset"),
        _text("version"),
        _text("min_epsilon"),
        _text("epsilon"),
        _text("delta"),
        _text("declared_epsilon"),
        _text("declared_delta"),
        _text("accounting"),
        *_list_spent(),
        _entry("retired"),
    )
    op.drop_table("idios_grants")
    op.create_table(
        "idios_grants",
        _key("analyst"),
        _key("dataset"),
        sa.Column("epsilon", sa.Text(), nullable=True),
        sa.Column("delta", sa.Text(), nullable=True),
        *_list_spent(),
        _entry("withdrawn"),
    )
    op.drop_table("idios_questions")
    op.create_table(
        "idios_questions",
        _key("key"),
        _text("dataset"),
        _text("rho"),
        sa.Column("impure", _SEQUENCE, nullable=False),
        sa.Column("reserved", _SEQUENCE, nullable=False),
        _entry("released"),
    )
    op.create_index("ix_idios_questions_released", "idios_questions", ["released"])
    op.execute("UPDATE idios_chain SET format = 5")


def _list_spent() -> list[sa.Column[str] | sa.Column[int]]:
    names = ("epsilon_spent", "delta_spent", "rho_spent")
    return [*map(_text, names), sa.Column("impure", _SEQUENCE, nullable=False)]


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), primary_key=True)


def _entry(name: str) -> sa.Column[int]:
    return sa.Column(name, _SEQUENCE, nullable=True)
