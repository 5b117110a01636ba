"""A contribution says by what factor its round clipped it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("contributions", sa.Column("factor", sa.Double()))


def downgrade() -> None:
    op.drop_column("contributions", "factor")
