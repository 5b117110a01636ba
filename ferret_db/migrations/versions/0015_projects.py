"""Experiments belong to projects. All from before belong to one, of which every user becomes a member."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)
KEY = "uq_experiments_idempotency_key"
KEY_IN_PROJECT = "uq_experiments_project_idempotency_key"
PROJECT = "fk_experiments_project"


def upgrade() -> None:
    _projects()
    _memberships()
    with op.batch_alter_table("experiments") as experiments:
        experiments.add_column(sa.Column("project", TEXT, nullable=False, server_default="default"))
        experiments.create_foreign_key(PROJECT, "projects", ["project"], ["name"])
        experiments.drop_constraint(KEY, type_="unique")
        experiments.create_unique_constraint(KEY_IN_PROJECT, ["project", "idempotency_key"])
    with op.batch_alter_table("experiments") as experiments:
        experiments.alter_column("project", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("experiments") as experiments:
        experiments.drop_constraint(KEY_IN_PROJECT, type_="unique")
        experiments.create_unique_constraint(KEY, ["idempotency_key"])
        experiments.drop_constraint(PROJECT, type_="foreignkey")
        experiments.drop_column("project")
    op.drop_table("memberships")
    op.drop_table("projects")


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


def _memberships() -> None:
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
    op.execute("INSERT INTO memberships SELECT 'default', id, created_at FROM users WHERE role <> 'admin'")
