"""An installation has a name of its own, by which a storage knows whose it is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "installation",
        sa.Column("id", INTEGER, autoincrement=False, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_installation"),
    )


def downgrade() -> None:
    op.drop_table("installation")
