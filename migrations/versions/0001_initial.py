"""All tables, the user ``admin`` and the project ``default``."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
WORD = sa.String(32)
INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _access()
    _projects()
    _experiments()
    _alerts()
    _participants()
    _rounds()
    _records()
    _work()
    _service()


def downgrade() -> None:
    for table in (
        "audit_head",
        "audit",
        "installation",
        "service",
        "workers",
        "task_runs",
        "outbox",
        "events",
        "artifacts",
        "ledger",
        "updates",
        "metrics",
        "rejections",
        "noised_sums",
        "secure_messages",
        "secure_sums",
        "prekeys",
        "contributions",
        "assignments",
        "rounds",
        "enrolments",
        "participants",
        "alert_deliveries",
        "alerts",
        "experiment_tags",
        "experiments",
        "memberships",
        "projects",
        "sessions",
        "user_tokens",
        "users",
    ):
        op.drop_table(table)


def _access() -> None:
    users = op.create_table(
        "users",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("role", WORD, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("password_hash", TEXT),
        sa.Column("issuer", TEXT),
        sa.Column("subject", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
    )
    op.create_index("ix_users_issuer_subject", "users", ["issuer", "subject"], unique=True)
    op.execute(
        users.insert().values(
            id="admin", name="admin", role="admin", enabled=True, created_at=sa.func.current_timestamp()
        )
    )
    op.create_table(
        "user_tokens",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("user_id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("token_hash", TEXT, nullable=False),
        sa.Column("scopes", DOCUMENT, nullable=False),
        sa.Column("parent_id", TEXT),
        sa.Column("expires_at", TIME),
        sa.Column("used_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_user_tokens"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_user_tokens_user_id"),
        sa.ForeignKeyConstraint(["parent_id"], ["user_tokens.id"], name="fk_user_tokens_parent_id", ondelete="CASCADE"),
        sa.UniqueConstraint("user_id", "name", name="uq_user_tokens_user_id_name"),
        sa.UniqueConstraint("token_hash", name="uq_user_tokens_token_hash"),
    )
    op.create_index("ix_user_tokens_parent_id", "user_tokens", ["parent_id"])
    op.create_table(
        "sessions",
        sa.Column("secret_hash", TEXT, nullable=False),
        sa.Column("user_id", TEXT, nullable=False),
        sa.Column("issuer", TEXT, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("token_id", TEXT),
        sa.Column("address", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("secret_hash", name="pk_sessions"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_sessions_user_id"),
        sa.ForeignKeyConstraint(["token_id"], ["user_tokens.id"], name="fk_sessions_token_id", ondelete="CASCADE"),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_index("ix_sessions_token_id", "sessions", ["token_id"])
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])


def _projects() -> None:
    projects = op.create_table(
        "projects",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("description", TEXT, nullable=False),
        sa.Column("models", DOCUMENT),
        sa.Column("data", DOCUMENT),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_projects"),
    )
    op.execute(projects.insert().values(name="default", description="", created_at=sa.func.current_timestamp()))
    op.create_table(
        "memberships",
        sa.Column("project", TEXT, nullable=False),
        sa.Column("user_id", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("project", "user_id", name="pk_memberships"),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_memberships_project"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_memberships_user_id"),
    )
    op.create_index("ix_memberships_user_id", "memberships", ["user_id"])


def _experiments() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("notes", TEXT, nullable=False),
        sa.Column("priority", INTEGER, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("version", INTEGER, nullable=False),
        sa.Column("spec", DOCUMENT, nullable=False),
        sa.Column("seed_group", TEXT, nullable=False),
        sa.Column("algorithm", TEXT, nullable=False),
        sa.Column("dataset", TEXT, nullable=False),
        sa.Column("error", DOCUMENT),
        sa.Column("stopped", DOCUMENT),
        sa.Column("patience_from_round", INTEGER, nullable=False),
        sa.Column("idempotency_key", TEXT),
        sa.Column("idempotency_digest", TEXT),
        sa.Column("rounds", INTEGER, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("participants", INTEGER, nullable=False),
        sa.Column("edge_participants", INTEGER, nullable=False),
        sa.Column("base_digest", TEXT),
        sa.Column("digest", TEXT),
        sa.Column("shapes", DOCUMENT),
        sa.Column("last_event_seq", INTEGER, nullable=False),
        sa.Column("cloned_from", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        sa.Column("archived_at", TIME),
        sa.Column("stall_alerted_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_experiments"),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_experiments_project"),
        sa.UniqueConstraint("project", "idempotency_key", name="uq_experiments_project_idempotency_key"),
    )
    op.create_index("ix_experiments_created_at_id", "experiments", ["created_at", "id"])
    op.create_index("ix_experiments_seed_group", "experiments", ["seed_group"])
    op.create_index(
        "ix_experiments_state_edge_participants_created_at", "experiments", ["state", "edge_participants", "created_at"]
    )
    op.create_table(
        "experiment_tags",
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("tag", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", "key", name="pk_experiment_tags"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_experiment_tags_experiment_id"),
    )
    op.create_index("ix_experiment_tags_key_experiment_id", "experiment_tags", ["key", "experiment_id"])


def _alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("address", TEXT, nullable=False),
        sa.Column("events", DOCUMENT, nullable=False),
        sa.Column("experiment_id", TEXT),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("secret", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_alerts_project"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_alerts_experiment_id"),
    )
    op.create_index("ix_alerts_experiment_id", "alerts", ["experiment_id"])
    op.create_index("ix_alerts_project", "alerts", ["project"])
    op.create_table(
        "alert_deliveries",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("alert_id", TEXT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("event", TEXT, nullable=False),
        sa.Column("message", DOCUMENT, nullable=False),
        sa.Column("attempts", INTEGER, nullable=False),
        sa.Column("status", INTEGER),
        sa.Column("error", TEXT),
        sa.Column("due_at", TIME),
        sa.Column("tried_at", TIME),
        sa.Column("delivered_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_deliveries"),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], name="fk_alert_deliveries_alert_id"),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_alert_deliveries_project"),
    )
    op.create_index("ix_alert_deliveries_alert_id_created_at", "alert_deliveries", ["alert_id", "created_at"])
    op.create_index("ix_alert_deliveries_due_at", "alert_deliveries", ["due_at"])


def _participants() -> None:
    op.create_table(
        "participants",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("display_name", TEXT, nullable=False),
        sa.Column("group", TEXT),
        sa.Column("token_hash", TEXT, nullable=False),
        sa.Column("enrolment_hash", TEXT),
        sa.Column("public_key", TEXT),
        sa.Column("pending", sa.Boolean(), nullable=False),
        sa.Column("revoked_at", TIME),
        sa.Column("revocation_reason", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_participants"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_participants_experiment_id"),
        sa.UniqueConstraint("experiment_id", "name", name="uq_participants_experiment_id_name"),
        sa.UniqueConstraint("experiment_id", "display_name", name="uq_participants_experiment_id_display_name"),
        sa.UniqueConstraint("token_hash", name="uq_participants_token_hash"),
        sa.UniqueConstraint("enrolment_hash", name="uq_participants_enrolment_hash"),
    )
    op.create_table(
        "enrolments",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("group", TEXT),
        sa.Column("approval", sa.Boolean(), nullable=False),
        sa.Column("code_hash", TEXT, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME),
        sa.Column("used_by", TEXT),
        sa.Column("revoked_at", TIME),
        sa.Column("refused", INTEGER, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_enrolments"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_enrolments_experiment_id"),
        sa.UniqueConstraint("code_hash", name="uq_enrolments_code_hash"),
    )
    op.create_index("ix_enrolments_experiment_id_created_at_id", "enrolments", ["experiment_id", "created_at", "id"])


def _rounds() -> None:
    op.create_table(
        "rounds",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("attempt", INTEGER, nullable=False),
        sa.Column("state", WORD, nullable=False),
        sa.Column("version", INTEGER, nullable=False),
        sa.Column("base_digest", TEXT, nullable=False),
        sa.Column("digest", TEXT),
        sa.Column("contributions_digest", TEXT),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("deadline_at", TIME, nullable=False),
        sa.Column("paused_seconds_left", sa.Double()),
        sa.Column("required_contributions", INTEGER),
        sa.Column("population", DOCUMENT),
        sa.Column("stage", WORD),
        sa.Column("stage_until", TIME),
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
        sa.Column("kind", WORD, nullable=False),
        sa.Column("participant_id", TEXT),
        sa.Column("state", WORD, nullable=False),
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
    op.create_index("ix_assignments_round_id_state_id", "assignments", ["round_id", "state", "id"])
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
        sa.Column("cost", DOCUMENT),
        sa.Column("bytes_down", INTEGER, nullable=False),
        sa.Column("memory_digest", TEXT),
        sa.Column("factor", sa.Double()),
        sa.Column("public_key", TEXT),
        sa.Column("signature", TEXT),
        sa.Column("idempotency_key", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_contributions"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_contributions_experiment_id"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_contributions_round_id"),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignments.id"], name="fk_contributions_assignment_id"),
        sa.UniqueConstraint("round_id", "participant", name="uq_contributions_round_id_participant"),
        sa.UniqueConstraint("assignment_id", name="uq_contributions_assignment_id"),
    )
    op.create_index("ix_contributions_experiment_id_participant", "contributions", ["experiment_id", "participant"])
    _secure_sums()
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


def _secure_sums() -> None:
    op.create_table(
        "prekeys",
        sa.Column("participant_id", TEXT, nullable=False),
        sa.Column("mask", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("share", TEXT, nullable=False),
        sa.Column("signature", TEXT, nullable=False),
        sa.Column("used", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("participant_id", "mask", name="pk_prekeys"),
        sa.ForeignKeyConstraint(["participant_id"], ["participants.id"], name="fk_prekeys_participant_id"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_prekeys_experiment_id"),
    )
    op.create_index("ix_prekeys_experiment_id_used", "prekeys", ["experiment_id", "used"])
    op.create_table(
        "secure_sums",
        sa.Column("round_id", TEXT, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("roster", sa.JSON(), nullable=False),
        sa.Column("transcript", sa.JSON()),
        sa.PrimaryKeyConstraint("round_id", "number", name="pk_secure_sums"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_secure_sums_round_id"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_secure_sums_experiment_id"),
    )
    op.create_table(
        "secure_messages",
        sa.Column("round_id", TEXT, nullable=False),
        sa.Column("participant", TEXT, nullable=False),
        sa.Column("kind", WORD, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("round_id", "participant", "kind", name="pk_secure_messages"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_secure_messages_round_id"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_secure_messages_experiment_id"),
    )
    op.create_table(
        "noised_sums",
        sa.Column("round_id", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("round_id", name="pk_noised_sums"),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name="fk_noised_sums_round_id"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_noised_sums_experiment_id"),
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
        "updates",
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("round", INTEGER, nullable=False),
        sa.Column("statistics", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("experiment_id", "round", name="pk_updates"),
        sa.ForeignKeyConstraint(["experiment_id"], ["experiments.id"], name="fk_updates_experiment_id"),
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


def _work() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", INTEGER, autoincrement=True, nullable=False),
        sa.Column("task", WORD, nullable=False),
        sa.Column("argument", TEXT, nullable=False),
        sa.Column("queue", WORD, nullable=False),
        sa.Column("experiment_id", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("sent_at", TIME),
        sa.Column("received_at", TIME),
        sa.Column("attempts", INTEGER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("task", "argument", name="uq_outbox_task_argument"),
    )
    op.create_index("ix_outbox_experiment_id_queue", "outbox", ["experiment_id", "queue"])
    op.create_index("ix_outbox_sent_at", "outbox", ["sent_at"])
    op.create_index("ix_outbox_received_at", "outbox", ["received_at"])
    op.create_table(
        "task_runs",
        sa.Column("task", WORD, nullable=False),
        sa.Column("argument", TEXT, nullable=False),
        sa.Column("experiment_id", TEXT),
        sa.Column("attempts", INTEGER, nullable=False),
        sa.Column("worker", TEXT),
        sa.Column("reschedule_requested", sa.Boolean(), nullable=False),
        sa.Column("error", DOCUMENT),
        sa.Column("given_up_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("task", "argument", name="pk_task_runs"),
    )
    op.create_index("ix_task_runs_given_up_at", "task_runs", ["given_up_at"])
    op.create_table(
        "workers",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("queue", WORD, nullable=False),
        sa.Column("host", TEXT, nullable=False),
        sa.Column("pid", INTEGER, nullable=False),
        sa.Column("device", TEXT, nullable=False),
        sa.Column("bfloat16", sa.Boolean(), nullable=False),
        sa.Column("task", WORD),
        sa.Column("subject", TEXT),
        sa.Column("message_sent_at", TIME),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.create_index("ix_workers_queue_seen_at", "workers", ["queue", "seen_at"])


def _service() -> None:
    op.create_table(
        "service",
        sa.Column("id", INTEGER, autoincrement=False, nullable=False),
        sa.Column("leader", TEXT),
        sa.Column("epoch", INTEGER, nullable=False),
        sa.Column("renewed_at", TIME, nullable=False),
        sa.Column("service_time", TIME, nullable=False),
        sa.Column("broker_silent_since", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_service"),
    )
    op.create_table(
        "installation",
        sa.Column("id", INTEGER, autoincrement=False, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_installation"),
    )
    op.create_table(
        "audit",
        sa.Column("number", INTEGER, autoincrement=False, nullable=False),
        sa.Column("time", TIME, nullable=False),
        sa.Column("actor", TEXT, nullable=False),
        sa.Column("action", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("previous", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_table(
        "audit_head",
        sa.Column("id", INTEGER, autoincrement=False, nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
    )
