"""Experiments have a priority: their share of the workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("experiments", sa.Column("priority", INTEGER, nullable=False, server_default="1"))
    with op.batch_alter_table("experiments") as experiments:
        experiments.alter_column("priority", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("experiments") as experiments:
        experiments.drop_column("priority")
