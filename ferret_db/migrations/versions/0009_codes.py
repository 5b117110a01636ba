"""Enrolment codes can be listed and revoked, and say who used them and who tried to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INDEX = "ix_enrolments_experiment_id_created_at_id"


def upgrade() -> None:
    op.add_column("enrolments", sa.Column("used_by", TEXT))
    op.add_column("enrolments", sa.Column("revoked_at", sa.DateTime(timezone=True)))
    op.add_column("enrolments", sa.Column("refused", INTEGER, nullable=False, server_default="0"))
    with op.batch_alter_table("enrolments") as table:
        table.alter_column("refused", server_default=None)
    op.create_index(INDEX, "enrolments", ["experiment_id", "created_at", "id"])


def downgrade() -> None:
    op.drop_index(INDEX, "enrolments")
    for column in ("refused", "revoked_at", "used_by"):
        op.drop_column("enrolments", column)
