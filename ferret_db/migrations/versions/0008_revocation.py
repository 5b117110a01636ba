"""A participant can be removed from its experiment."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("participants", sa.Column("revoked_at", sa.DateTime(timezone=True)))
    op.add_column("participants", sa.Column("revoked_for", TEXT))


def downgrade() -> None:
    op.drop_column("participants", "revoked_for")
    op.drop_column("participants", "revoked_at")
