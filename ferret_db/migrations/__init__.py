"""Alembic's migrations; ``ferret_db.migrate`` runs them.

A new one is drafted from the difference between the tables and a database at head, then checked by hand::

    from alembic import command
    from ferret_db import migrate

    with migrate.migrating("sqlite:////tmp/head.db") as config:
        command.upgrade(config, "head")
        command.revision(config, "what it does", autogenerate=True, rev_id="0002")
"""
