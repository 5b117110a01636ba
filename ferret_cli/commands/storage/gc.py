"""``ferret storage gc``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options

DAY = 24 * 3600.0


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    grace: Annotated[
        float, typer.Option("--grace", min=0, metavar="SECONDS", help="Keep files younger than this.")
    ] = DAY,
    json: options.Json = False,
) -> None:
    """Delete stored files that nothing refers to, e.g. those of deleted experiments and killed processes.

    The aggregation worker does this every day. A --grace shorter than the longest task is safe only without a server.
    """
    from ferret_cli.output import emit, say
    from ferret_cli.requirements_check import require_server
    from ferret_core.protocol.errors import FerretError
    from ferret_core.protocol.formatting import size

    require_server()

    from ferret_db import migrate
    from ferret_db.database import Database
    from ferret_db.engine.garbage_collection import collect
    from ferret_runtime.settings import ServiceSettings

    settings = ServiceSettings.read()
    migrate.check(settings.database_url)
    swept = collect(Database(settings.database_url), settings.open_storage(), grace, dry_run=dry_run)
    if swept is None:
        raise FerretError(
            "storage.busy", "another process is cleaning up or making a backup; try again when it is done"
        )
    say(f"{'would delete' if dry_run else 'deleted'} {swept.files} files with {size(swept.bytes)}")
    if json:
        emit({"files": swept.files, "bytes": swept.bytes, "dry_run": dry_run})
