"""Projects have alerts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0021"
down_revision = "0018"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
WORD = sa.String(32)
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("experiments", sa.Column("stall_told_at", TIME))
    op.create_table(
        "alerts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("address", TEXT, nullable=False),
        sa.Column("events", DOCUMENT, nullable=False),
        sa.Column("secret", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_alerts_project"),
    )
    op.create_index("ix_alerts_project", "alerts", ["project"])
    op.create_table(
        "alert_deliveries",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("alert_id", TEXT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("event", TEXT, nullable=False),
        sa.Column("message", DOCUMENT, nullable=False),
        sa.Column("attempts", NUMBER, nullable=False),
        sa.Column("status", NUMBER),
        sa.Column("error", TEXT),
        sa.Column("due_at", TIME),
        sa.Column("tried_at", TIME),
        sa.Column("delivered_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_deliveries"),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], name="fk_alert_deliveries_alert_id"),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_alert_deliveries_project"),
    )
    op.create_index("ix_alert_deliveries_due_at", "alert_deliveries", ["due_at"])
    op.create_index("ix_alert_deliveries_alert_id_created_at", "alert_deliveries", ["alert_id", "created_at"])


def downgrade() -> None:
    op.drop_table("alert_deliveries")
    op.drop_table("alerts")
    with op.batch_alter_table("experiments") as experiments:
        experiments.drop_column("stall_told_at")
