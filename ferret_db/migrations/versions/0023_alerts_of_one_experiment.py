"""An alert may be about one experiment alone, and may be off."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("alerts") as alerts:
        alerts.add_column(sa.Column("experiment_id", TEXT))
        alerts.add_column(sa.Column("enabled", sa.Boolean(), nullable=False, server_default=sa.true()))
        alerts.create_foreign_key("fk_alerts_experiment_id", "experiments", ["experiment_id"], ["id"])
    with op.batch_alter_table("alerts") as alerts:
        alerts.alter_column("enabled", server_default=None)
    op.create_index("ix_alerts_experiment_id", "alerts", ["experiment_id"])


def downgrade() -> None:
    op.drop_index("ix_alerts_experiment_id", "alerts")
    with op.batch_alter_table("alerts") as alerts:
        alerts.drop_constraint("fk_alerts_experiment_id", type_="foreignkey")
        alerts.drop_column("experiment_id")
        alerts.drop_column("enabled")
