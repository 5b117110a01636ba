"""What administrators do is written into a log that shows when it was altered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("number", INTEGER, autoincrement=False, nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("actor", "action", "subject")),
        sa.Column("detail", sa.JSON(), nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("previous", "hash")),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_table(
        "audit_head",
        sa.Column("id", INTEGER, autoincrement=False, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
    )


def downgrade() -> None:
    op.drop_table("audit_head")
    op.drop_table("audit")
