"""Experiments may end before their last round."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020"
down_revision = "0017"
branch_labels = None
depends_on = None

DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("experiments", sa.Column("stopped", DOCUMENT))
    op.add_column("experiments", sa.Column("patience_since", NUMBER, nullable=False, server_default="0"))
    with op.batch_alter_table("experiments") as experiments:
        experiments.alter_column("patience_since", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("experiments") as experiments:
        experiments.drop_column("patience_since")
        experiments.drop_column("stopped")
