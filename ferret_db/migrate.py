"""Migration of a database to the schema that this code needs, from any folder, without an ``alembic.ini``."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url

from ferret_core.protocol.errors import FerretError
from ferret_db.database import new_engine

MIGRATIONS = next(
    folder
    for folder in (Path(__file__).with_name("migrations"), Path(__file__).parents[1] / "migrations")
    if (folder / "env.py").is_file()
)
"""The migrations' folder: next to this file in the wheel, next to the package in a checkout."""
_LOCK = 0x46455252  # any number, but the same in every process that migrates


def upgrade(url: str) -> None:
    """Migrates to the newest revision, all or nothing. Creates a SQLite file's folder. Concurrent processes take turns.

    Raises ``server.not_ready`` for a database that a later version has migrated.
    """
    with migrating(url) as config:
        found = MigrationContext.configure(config.attributes["connection"]).get_current_revision()
        if found is not None and not knows(found):
            detail = f"{make_url(url).render_as_string()} is at revision {found}, which a later version of Ferret made"
            raise FerretError("server.not_ready", f"{detail}; use that version, or another database")
        command.upgrade(config, "head")


def knows(revision: str) -> bool:
    """Returns True if this code can migrate a database from ``revision``."""
    return revision in {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


@contextmanager
def migrating(url: str) -> Generator[Config]:
    """Opens one write transaction with Alembic's settings. No other migration runs at the same time."""
    engine = new_engine(url, foreign_keys=False)
    if engine.dialect.name == "sqlite":
        Path(str(engine.url.database)).parent.mkdir(parents=True, exist_ok=True)
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield _config(connection)
    finally:
        engine.dispose()


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
