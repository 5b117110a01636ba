"""Alembic's entry point: one transaction per upgrade, on the connection that ``ferret_db.migrate`` hands over.

A new migration is drafted from the difference between the tables and a database at head, then checked by hand::

    from alembic import command
    from ferret_db import migrate

    with migrate.migrating("sqlite:////tmp/head.db") as config:
        command.upgrade(config, "head")
        command.revision(config, "what it does", autogenerate=True, rev_id="0002")
"""

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
