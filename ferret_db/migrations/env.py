"""Alembic's entry point: one transaction per upgrade, on the connection that ``ferret_db.migrate`` hands over."""

from __future__ import annotations

from alembic import context

from ferret_db.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
