"""Participants sign their contributions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ADDED = (("participants", "public_key"), ("contributions", "public_key"), ("contributions", "signature"))


def upgrade() -> None:
    for table, name in ADDED:
        op.add_column(table, sa.Column(name, TEXT))


def downgrade() -> None:
    for table, name in reversed(ADDED):
        op.drop_column(table, name)
