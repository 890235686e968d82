"""Format 6: what tells people apart in a data set, and how often it was charged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table of data sets anew: its rows are derived from the chain afterwards."""
    op.drop_table("idios_datasets")
    op.create_table(
        "idios_datasets",
        sa.Column("dataset", sa.Text(), primary_key=True),
        *map(_text, ("version", "min_epsilon", "epsilon", "delta", "declared_epsilon", "declared_delta")),
        *map(_text, ("accounting", "unit", "epsilon_spent", "delta_spent", "rho_spent")),
        sa.Column("impure", _SEQUENCE, nullable=False),
        sa.Column("charges", _SEQUENCE, nullable=False),
        sa.Column("retired", _SEQUENCE, nullable=True),
    )
    op.execute("UPDATE idios_chain SET format = 6")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
