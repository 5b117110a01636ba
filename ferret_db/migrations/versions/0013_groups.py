"""Enrolment codes, and the participants that they became, may belong to a group."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TABLES = ("enrolments", "participants")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("group", TEXT))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "group")
