"""Tokens and sessions name the token that they were made with, and go when it goes; sessions know their address."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("user_tokens") as tokens:
        tokens.add_column(sa.Column("parent_id", TEXT))
        tokens.create_foreign_key("fk_user_tokens_parent_id", "user_tokens", ["parent_id"], ["id"], ondelete="CASCADE")
    op.create_index("ix_user_tokens_parent_id", "user_tokens", ["parent_id"])
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("token_id", TEXT))
        sessions.add_column(sa.Column("address", TEXT))
        sessions.create_foreign_key("fk_sessions_token_id", "user_tokens", ["token_id"], ["id"], ondelete="CASCADE")
    op.create_index("ix_sessions_token_id", "sessions", ["token_id"])
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])


def downgrade() -> None:
    op.drop_index("ix_sessions_user_id", "sessions")
    op.drop_index("ix_sessions_token_id", "sessions")
    with op.batch_alter_table("sessions") as sessions:
        sessions.drop_constraint("fk_sessions_token_id", type_="foreignkey")
        sessions.drop_column("address")
        sessions.drop_column("token_id")
    op.drop_index("ix_user_tokens_parent_id", "user_tokens")
    with op.batch_alter_table("user_tokens") as tokens:
        tokens.drop_constraint("fk_user_tokens_parent_id", type_="foreignkey")
        tokens.drop_column("parent_id")
