"""A participant may have to be approved before it takes part."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

ADDED = (("enrolments", "approval"), ("participants", "pending"))


def upgrade() -> None:
    for table, name in ADDED:
        op.add_column(table, sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()))
        with op.batch_alter_table(table) as batch:
            batch.alter_column(name, server_default=None)


def downgrade() -> None:
    for table, name in reversed(ADDED):
        op.drop_column(table, name)
