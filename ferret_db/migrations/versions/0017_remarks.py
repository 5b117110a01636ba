"""Experiments have tags and notes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
INDEX = "ix_experiment_tags_key_experiment_id"


def upgrade() -> None:
    op.add_column("experiments", sa.Column("notes", TEXT, nullable=False, server_default=""))
    with op.batch_alter_table("experiments") as experiments:
        experiments.alter_column("notes", server_default=None)
    op.create_table(
        "experiment_tags",
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("tag", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", "key", name="pk_experiment_tags"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_experiment_tags_experiment_id"),
    )
    op.create_index(INDEX, "experiment_tags", ["key", "experiment_id"])


def downgrade() -> None:
    op.drop_table("experiment_tags")
    with op.batch_alter_table("experiments") as experiments:
        experiments.drop_column("notes")
