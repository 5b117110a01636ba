"""Users with roles and tokens of their own; a session is a user's. Browsers have to sign in again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    users = op.create_table(
        "users",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("password_hash", TEXT),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
    )
    op.execute(
        users.insert().values(
            id="admin", name="admin", role="admin", enabled=True, created_at=sa.func.current_timestamp()
        )
    )
    _tokens()
    op.execute("DELETE FROM sessions")
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("user_id", TEXT, nullable=False))
        sessions.create_foreign_key("fk_sessions_user_id", "users", ["user_id"], ["id"])


def downgrade() -> None:
    with op.batch_alter_table("sessions") as sessions:
        sessions.drop_constraint("fk_sessions_user_id", type_="foreignkey")
        sessions.drop_column("user_id")
    op.drop_table("user_tokens")
    op.drop_table("users")


def _tokens() -> None:
    op.create_table(
        "user_tokens",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("user_id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("token_hash", TEXT, nullable=False),
        sa.Column("scopes", DOCUMENT, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("used_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_user_tokens"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_user_tokens_user_id"),
        sa.UniqueConstraint("user_id", "name", name="uq_user_tokens_user_id_name"),
        sa.UniqueConstraint("token_hash", name="uq_user_tokens_token_hash"),
    )
