"""Experiments, rounds, assignments, contributions and what is recorded of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
STATE = sa.String(32)


def upgrade() -> None:
    _experiments()
    _participants()
    _rounds()
    _records()
    _outbox()


def downgrade() -> None:
    for table in (
        "outbox",
        "events",
        "artifacts",
        "ledger",
        "metrics",
        "contributions",
        "assignments",
        "rounds",
        "enrolments",
        "participants",
        "experiments",
    ):
        op.drop_table(table)


def _experiments() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("state", STATE, nullable=False),
        sa.Column("version", INTEGER, nullable=False),
        sa.Column("spec", DOCUMENT, nullable=False),
        sa.Column("algorithm", TEXT, nullable=False),
        sa.Column("dataset", TEXT, nullable=False),
        sa.Column("error", DOCUMENT),
        sa.Column("idempotency_key", TEXT),
        sa.Column("idempotency_digest", TEXT),
        sa.Column("rounds", INTEGER, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("participants", INTEGER, nullable=False),
        sa.Column("base_digest", TEXT),
        sa.Column("digest", TEXT),
        sa.Column("sizes", DOCUMENT),
        sa.Column("event_seq", INTEGER, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_experiments"),
        sa.UniqueConstraint("idempotency_key", name="uq_experiments_idempotency_key"),
    )
    op.create_index("ix_experiments_created_at_id", "experiments", ["created_at", "id"])
    op.create_index("ix_experiments_state", "experiments", ["state"])


def _participants() -> None:
    op.create_table(
        "participants",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("token_hash", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_participants"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_participants_experiment_id"),
        sa.UniqueConstraint("experiment_id", "name", name="uq_participants_experiment_id_name"),
        sa.UniqueConstraint("token_hash", name="uq_participants_token_hash"),
    )
    op.create_table(
        "enrolments",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("code_hash", TEXT, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_enrolments"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_enrolments_experiment_id"),
        sa.UniqueConstraint("code_hash", name="uq_enrolments_code_hash"),
    )


def _rounds() -> None:
    op.create_table(
        "rounds",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("attempt", INTEGER, nullable=False),
        sa.Column("state", STATE, nullable=False),
        sa.Column("version", INTEGER, nullable=False),
        sa.Column("base_digest", TEXT, nullable=False),
        sa.Column("digest", TEXT),
        sa.Column("frozen_digest", TEXT),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("deadline_at", TIME, nullable=False),
        sa.Column("frozen_at", TIME),
        sa.Column("committed_at", TIME),
        sa.Column("evaluated_at", TIME),
        sa.Column("bytes_up", INTEGER, nullable=False),
        sa.Column("bytes_down", INTEGER, nullable=False),
        sa.Column("error", DOCUMENT),
        sa.PrimaryKeyConstraint("id", name="pk_rounds"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_rounds_experiment_id"),
        sa.UniqueConstraint("experiment_id", "number", "attempt", name="uq_rounds_experiment_id_number_attempt"),
    )
    op.create_index("ix_rounds_state", "rounds", ["state"])
    op.create_table(
        "assignments",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("round_id", TEXT, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("participant", TEXT, nullable=False),
        sa.Column("kind", STATE, nullable=False),
        sa.Column("participant_id", TEXT),
        sa.Column("state", STATE, nullable=False),
        sa.Column("version", INTEGER, nullable=False),
        sa.Column("attempt", INTEGER, nullable=False),
        sa.Column("fence", INTEGER, nullable=False),
        sa.Column("lease_until", TIME),
        sa.Column("task", DOCUMENT, nullable=False),
        sa.Column("error", DOCUMENT),
        sa.Column("seconds", sa.Double()),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_assignments"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_assignments_experiment_id"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_assignments_round_id"),
        sa.ForeignKeyConstraint(["participant_id"], ["participants.id"], name="fk_assignments_participant_id"),
        sa.UniqueConstraint("round_id", "participant", name="uq_assignments_round_id_participant"),
    )
    op.create_index("ix_assignments_experiment_id_round", "assignments", ["experiment_id", "round"])
    op.create_index("ix_assignments_participant_id", "assignments", ["participant_id"])
    op.create_index("ix_assignments_state", "assignments", ["state"])
    op.create_table(
        "contributions",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("round_id", TEXT, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("participant", TEXT, nullable=False),
        sa.Column("assignment_id", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("size", INTEGER, nullable=False),
        sa.Column("examples", INTEGER, nullable=False),
        sa.Column("metrics", DOCUMENT, nullable=False),
        sa.Column("bytes_down", INTEGER, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_contributions"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_contributions_experiment_id"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_contributions_round_id"),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignments.id"], name="fk_contributions_assignment_id"),
        sa.UniqueConstraint("assignment_id", name="uq_contributions_assignment_id"),
        sa.UniqueConstraint("round_id", "participant", name="uq_contributions_round_id_participant"),
    )


def _records() -> None:
    op.create_table(
        "metrics",
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", "name", "round", name="pk_metrics"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_metrics_experiment_id"),
    )
    op.create_table(
        "ledger",
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("update_digest", TEXT, nullable=False),
        sa.Column("update_size", INTEGER, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", "round", name="pk_ledger"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_ledger_experiment_id"),
    )
    op.create_table(
        "artifacts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("size", INTEGER, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("location", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_artifacts_experiment_id"),
        sa.UniqueConstraint(
            "experiment_id", "round", "kind", "name", name="uq_artifacts_experiment_id_round_kind_name"
        ),
    )
    op.create_table(
        "events",
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("seq", INTEGER, nullable=False),
        sa.Column("type", TEXT, nullable=False),
        sa.Column("round", INTEGER),
        sa.Column("data", DOCUMENT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", "seq", name="pk_events"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_events_experiment_id"),
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", INTEGER, autoincrement=True, nullable=False),
        sa.Column("task", STATE, nullable=False),
        sa.Column("argument", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("sent_at", TIME),
        sa.Column("attempts", INTEGER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
    )
    op.create_index("ix_outbox_argument_task", "outbox", ["argument", "task"])
    op.create_index("ix_outbox_sent_at", "outbox", ["sent_at"])
