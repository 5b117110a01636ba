"""Rounds can pause, close early and be tried again; refused uploads, begun tasks and living workers are noted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
STATE = sa.String(32)


def upgrade() -> None:
    op.add_column("experiments", sa.Column("cloned_from", TEXT))
    op.add_column("experiments", sa.Column("archived_at", TIME))
    op.add_column("rounds", sa.Column("seconds_left", sa.Double()))
    op.add_column("rounds", sa.Column("needed", INTEGER))
    op.add_column("contributions", sa.Column("idempotency_key", TEXT))
    op.create_index("ix_contributions_experiment_id_participant", "contributions", ["experiment_id", "participant"])
    _rejections()
    _task_runs()
    _workers()


def downgrade() -> None:
    op.drop_table("workers")
    op.drop_table("task_runs")
    op.drop_table("rejections")
    op.drop_index("ix_contributions_experiment_id_participant", "contributions")
    op.drop_column("contributions", "idempotency_key")
    op.drop_column("rounds", "needed")
    op.drop_column("rounds", "seconds_left")
    op.drop_column("experiments", "archived_at")
    op.drop_column("experiments", "cloned_from")


def _rejections() -> None:
    op.create_table(
        "rejections",
        sa.Column("assignment_id", TEXT, nullable=False),
        sa.Column("code", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("participant", TEXT, nullable=False),
        sa.Column("detail", TEXT, nullable=False),
        sa.Column("count", INTEGER, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("assignment_id", "code", name="pk_rejections"),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignments.id"], name="fk_rejections_assignment_id"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_rejections_experiment_id"),
    )
    op.create_index("ix_rejections_experiment_id_round", "rejections", ["experiment_id", "round"])


def _task_runs() -> None:
    op.create_table(
        "task_runs",
        sa.Column("task", STATE, nullable=False),
        sa.Column("argument", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT),
        sa.Column("attempts", INTEGER, nullable=False),
        sa.Column("worker", TEXT),
        sa.Column("called_again", sa.Boolean(), nullable=False),
        sa.Column("error", DOCUMENT),
        sa.Column("dead_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("task", "argument", name="pk_task_runs"),
    )
    op.create_index("ix_task_runs_dead_at", "task_runs", ["dead_at"])


def _workers() -> None:
    op.create_table(
        "workers",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("queue", STATE, nullable=False),
        sa.Column("host", TEXT, nullable=False),
        sa.Column("pid", INTEGER, nullable=False),
        sa.Column("device", TEXT, nullable=False),
        sa.Column("task", STATE),
        sa.Column("subject", TEXT),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.create_index("ix_workers_queue_seen_at", "workers", ["queue", "seen_at"])
