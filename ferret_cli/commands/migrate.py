"""``ferret migrate``"""

from __future__ import annotations

from ferret_cli import options


def migrate(json: options.Json = False) -> None:
    """Update the database (FERRET_DATABASE_URL) to this version's schema."""
    from ferret_cli.output import emit, say
    from ferret_cli.requirements_check import require_server

    require_server()

    from ferret_db import integrity, migrate
    from ferret_runtime.settings import ServiceSettings

    settings = ServiceSettings.read()
    integrity.require(settings)
    migrate.upgrade(settings.database_url)
    say(f"the database is at revision {migrate.head()}")
    if json:
        emit({"revision": migrate.head()})
