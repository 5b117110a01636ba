"""Users of an OpenID Connect provider."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("users", sa.Column("issuer", TEXT))
    op.add_column("users", sa.Column("subject", TEXT))
    op.create_index("ix_users_issuer_subject", "users", ["issuer", "subject"], unique=True)


def downgrade() -> None:
    op.drop_index("ix_users_issuer_subject", "users")
    op.drop_column("users", "subject")
    op.drop_column("users", "issuer")
