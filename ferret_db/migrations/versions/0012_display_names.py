"""Participants have a name in any script, which people read, beside the one that paths and the ledger know."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
UNIQUE = "uq_participants_experiment_id_display_name"


def upgrade() -> None:
    op.add_column("participants", sa.Column("display_name", TEXT))
    op.execute("UPDATE participants SET display_name = name")
    with op.batch_alter_table("participants") as table:
        table.alter_column("display_name", nullable=False)
        table.create_unique_constraint(UNIQUE, ["experiment_id", "display_name"])


def downgrade() -> None:
    with op.batch_alter_table("participants") as table:
        table.drop_constraint(UNIQUE, type_="unique")
        table.drop_column("display_name")
