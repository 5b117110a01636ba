"""What is inside a round's update is kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "updates",
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("round", NUMBER, nullable=False),
        sa.Column("statistics", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", "round", name="pk_updates"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_updates_experiment_id"),
    )


def downgrade() -> None:
    op.drop_table("updates")
