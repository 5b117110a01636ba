"""What is tuned is kept with its shapes; contributions say what they cost, and name what a simulated client keeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.alter_column("experiments", "sizes", new_column_name="shapes")
    _convert(lambda size: [size])
    op.add_column("contributions", sa.Column("memory_digest", TEXT))
    op.add_column("contributions", sa.Column("cost", DOCUMENT))


def downgrade() -> None:
    op.drop_column("contributions", "cost")
    op.drop_column("contributions", "memory_digest")
    _convert(math.prod)
    op.alter_column("experiments", "shapes", new_column_name="sizes")


def _convert(change: Callable[[Any], Any]) -> None:
    """An experiment from before knows its tensors as vectors, which is all that its algorithms ask."""
    experiments = sa.table("experiments", sa.column("id", TEXT), sa.column("shapes", DOCUMENT))
    connection = op.get_bind()
    for row in connection.execute(sa.select(experiments).where(experiments.c.shapes.is_not(None))).all():
        if row.shapes is not None:  # JSON's null is not SQL's
            changed = {name: change(value) for name, value in row.shapes.items()}
            connection.execute(experiments.update().where(experiments.c.id == row.id).values(shapes=changed))
