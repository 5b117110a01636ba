"""``ferret backup`` and ``ferret restore``: the service of this machine in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say
from ferret_cli.requirements_check import require_server
from ferret_core.protocol.formatting import size


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the backup, e.g. ferret.tar.")],
    home: options.Home = options.DEFAULT_HOME,
    json: options.Json = False,
) -> None:
    """Save this machine's service in one file, even while it runs: experiments, models, contributions, token."""
    require_server()

    from ferret_cli.backup.write import write
    from ferret_runtime.settings import ServiceSettings

    path = file.expanduser().absolute()
    manifest = write(ServiceSettings.read(home=home), path)
    say(f"saved {len(manifest.files)} files, {size(manifest.size)}, in {path}")
    if json:
        emit({"file": str(path), "files": len(manifest.files), "bytes": manifest.size, "revision": manifest.revision})


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup, as `ferret backup` writes it.")],
    home: options.Home = options.DEFAULT_HOME,
    json: options.Json = False,
) -> None:
    """Restore a backup into a new or empty folder, all or nothing; every file is checked against its digest."""
    require_server()

    from ferret_cli.backup.restore import restore as unpack

    path = home.expanduser().absolute()
    manifest = unpack(file.expanduser(), path)
    say(f"restored {len(manifest.files)} files, {size(manifest.size)}, in {path}; start: ferret serve --home {path}")
    if json:
        emit({"home": str(path), "files": len(manifest.files), "bytes": manifest.size, "revision": manifest.revision})
