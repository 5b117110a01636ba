"""``ferret storage …``: the stored files of the server on this machine, collected and checked."""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, show_line
from ferret_cli.requirements_check import require_server
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size

app = typer.Typer(help="The stored files of the server on this machine.", no_args_is_help=True)

DAY_SECONDS = 24 * 3600.0


@app.command("clean", epilog="Example: ferret storage clean --dry-run")
def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    grace: Annotated[
        float, typer.Option("--grace", min=0, metavar="SECONDS", help="Keep files younger than this.")
    ] = DAY_SECONDS,
    json: options.Json = False,
) -> None:
    """Delete unreferenced stored files, e.g. of deleted experiments and killed processes.

    The aggregation worker does this every day. A --grace shorter than the longest task is safe only without a server.
    """
    require_server()

    from ferret_core.system.permissions import restrict_home
    from ferret_db import schema_version
    from ferret_db.database import Database
    from ferret_db.engine.garbage_collection import collect
    from ferret_runtime.settings import ServiceSettings

    settings = ServiceSettings.read()
    restrict_home(settings.home)
    schema_version.check(settings.database_url)
    swept = collect(Database(settings.database_url), settings.open_storage(), grace, dry_run=dry_run)
    if swept is None:
        raise FerretError(
            "storage.busy", "another process is cleaning up or making a backup; try again when it is done"
        )
    deleted = "would delete" if dry_run else "deleted"
    show_line(f"{deleted} {swept.files} files with {size(swept.bytes)}", as_json=json)
    if json:
        emit({"files": swept.files, "bytes": swept.bytes, "dry_run": dry_run})


@app.command("verify", epilog="Example: ferret storage verify --repair")
def verify(
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild damaged files as far as possible.")] = False,
    json: options.Json = False,
) -> None:
    """Check every stored file against its digest, and every row of a contribution against its file and the ledger.

    Exit code 1 if a file that is needed is missing or damaged, or if a row was altered.
    """
    require_server()

    from ferret_cli.storage_check import check
    from ferret_cli.storage_check import repair as rebuild
    from ferret_core.system.permissions import restrict_home
    from ferret_runtime.settings import ServiceSettings

    settings = ServiceSettings.read()
    restrict_home(settings.home)
    found = check(settings)
    for file in found.damaged:
        show_line(f"missing or damaged: {file.location} (round {file.round} of {file.experiment_id})", as_json=json)
    for row in found.altered:
        where = f"round {row.round} of {row.experiment_id}"
        show_line(
            f"altered: the contribution of {row.participant or 'somebody'} in {where}: {row.reason}", as_json=json
        )
    left = rebuild(settings, found) if repair else found
    rebuilt = len(found.damaged) - len(left.damaged)
    show_line(f"{found.files} files, {len(found.damaged)} missing or damaged, {rebuilt} rebuilt", as_json=json)
    for file in left.damaged:
        if file not in left.missed:
            message = f"{file.location} is no longer needed: it is part of the model of round {file.round}"
            show_line(message, as_json=json)
    if json:
        names = {
            name: [file._asdict() for file in files]
            for name, files in (("damaged", found.damaged), ("left", left.damaged))
        }
        rows = [row._asdict() for row in found.altered]
        emit({"files": found.files, **names, "missed": len(left.missed), "altered": rows})
    if left.missed or found.altered:
        raise typer.Exit(1)
