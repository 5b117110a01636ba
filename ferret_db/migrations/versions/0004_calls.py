"""One call per task until it is taken; experiments start in turn; rounds open in steps; the service has its time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
STATE = sa.String(32)


def upgrade() -> None:
    op.add_column("experiments", sa.Column("real_participants", INTEGER, nullable=False, server_default="0"))
    _count_real_participants()
    op.drop_index("ix_experiments_state", "experiments")
    order = ["state", "real_participants", "created_at"]
    op.create_index("ix_experiments_state_real_participants_created_at", "experiments", order)
    op.create_index("ix_assignments_round_id_state_id", "assignments", ["round_id", "state", "id"])
    op.add_column("workers", sa.Column("message_sent_at", TIME))
    op.add_column("rounds", sa.Column("population", DOCUMENT))
    op.create_table(
        "service",
        sa.Column("id", INTEGER, autoincrement=False, nullable=False),
        sa.Column("holder", TEXT),
        sa.Column("ticks", INTEGER, nullable=False),
        sa.Column("ticked_at", TIME, nullable=False),
        sa.Column("time_at", TIME, nullable=False),
        sa.Column("broker_silent_since", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_service"),
    )
    # Calls that are lost here are made again by the reconciler.
    op.drop_table("outbox")
    op.create_table(
        "outbox",
        *_call_columns(),
        sa.Column("queue", STATE, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("taken_at", TIME),
        sa.UniqueConstraint("task", "argument", name="uq_outbox_task_argument"),
    )
    op.create_index("ix_outbox_experiment_id_queue", "outbox", ["experiment_id", "queue"])
    op.create_index("ix_outbox_sent_at", "outbox", ["sent_at"])
    op.create_index("ix_outbox_taken_at", "outbox", ["taken_at"])


def downgrade() -> None:
    op.drop_table("outbox")
    op.create_table("outbox", *_call_columns())
    op.create_index("ix_outbox_sent_at", "outbox", ["sent_at"])
    op.create_index("ix_outbox_argument_task", "outbox", ["argument", "task"])
    op.drop_table("service")
    op.drop_column("rounds", "population")
    op.drop_column("workers", "message_sent_at")
    op.drop_index("ix_assignments_round_id_state_id", "assignments")
    op.drop_index("ix_experiments_state_real_participants_created_at", "experiments")
    op.create_index("ix_experiments_state", "experiments", ["state"])
    op.drop_column("experiments", "real_participants")


def _count_real_participants() -> None:
    experiments = sa.table("experiments", sa.column("id"), sa.column("spec", sa.JSON()), sa.column("real_participants"))
    connection = op.get_bind()
    for id, spec in connection.execute(sa.select(experiments.c.id, experiments.c.spec)).all():
        wanted = spec.get("participants", {}).get("edge", 0)
        connection.execute(experiments.update().where(experiments.c.id == id).values(real_participants=wanted))


def _call_columns() -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("id", INTEGER, autoincrement=True, nullable=False),
        sa.Column("task", STATE, nullable=False),
        sa.Column("argument", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("sent_at", TIME),
        sa.Column("attempts", INTEGER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
    ]
