"""Experiments know which others differ from them in the seed only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from ferret_core.protocol.digest import digest_json

revision = "0018"
down_revision = "0020"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
INDEX = "ix_experiments_seed_group"
EXPERIMENTS = sa.table(
    "experiments",
    sa.column("id", TEXT),
    sa.column("project", TEXT),
    sa.column("spec", DOCUMENT),
    sa.column("seed_group", TEXT),
)


def upgrade() -> None:
    op.add_column("experiments", sa.Column("seed_group", TEXT, nullable=False, server_default=""))
    _fill()
    with op.batch_alter_table("experiments") as experiments:
        experiments.alter_column("seed_group", server_default=None)
    op.create_index(INDEX, "experiments", ["seed_group"])


def downgrade() -> None:
    op.drop_index(INDEX, "experiments")
    with op.batch_alter_table("experiments") as experiments:
        experiments.drop_column("seed_group")


def _fill() -> None:
    connection = op.get_bind()
    for id, project, spec in connection.execute(
        sa.select(EXPERIMENTS.c.id, EXPERIMENTS.c.project, EXPERIMENTS.c.spec)
    ).all():
        rest = {name: value for name, value in spec.items() if name not in ("name", "seed")}
        key = digest_json([project, rest])[:32]
        connection.execute(EXPERIMENTS.update().where(EXPERIMENTS.c.id == id).values(seed_group=key))
