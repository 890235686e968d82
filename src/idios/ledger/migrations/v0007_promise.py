"""Format 7: what a data set promises, which tables are joined to it, and whether anyone was let in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table of data sets anew: its rows are derived from the chain afterwards."""
    op.drop_table("idios_datasets")
    op.create_table(
        "idios_datasets",
        sa.Column("dataset", sa.Text(), primary_key=True),
        *map(_text, ("version", "min_epsilon", "epsilon", "delta", "declared_epsilon", "declared_delta")),
        *map(_text, ("accounting", "unit", "neighbours", "protection", "tables", "public")),
        *map(_text, ("epsilon_spent", "delta_spent", "rho_spent")),
        *(sa.Column(name, _SEQUENCE, nullable=False) for name in ("impure", "charges", "granted")),
        sa.Column("retired", _SEQUENCE, nullable=True),
    )
    op.execute("UPDATE idios_chain SET format = 7")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
