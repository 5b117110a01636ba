"""``ferret backup`` and ``ferret restore``: the service of this machine in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, show_line
from ferret_cli.requirements_check import require_server
from ferret_core.protocol.formatting import size


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the backup, e.g. ferret.tar.gz.")],
    home: options.Home = options.DEFAULT_HOME,
    json: options.Json = False,
) -> None:
    """Save this machine's service in one file, even while it runs: experiments, base models, contributions, token.

    Later checkpoints are left out: the restored service rebuilds them from the ledger.
    """
    require_server()

    from ferret_cli.backup.write import write
    from ferret_core.system.permissions import restrict_home
    from ferret_runtime.settings import ServiceSettings

    path, settings = file.expanduser().absolute(), ServiceSettings.read(home=home)
    restrict_home(settings.home)
    manifest = write(settings, path)
    packed = path.stat().st_size
    told = f"saved {len(manifest.files)} files, {size(manifest.size)}, in {path}, which has {size(packed)}"
    show_line(told, as_json=json)
    if json:
        counted = {"files": len(manifest.files), "bytes": manifest.size, "packed_bytes": packed}
        emit({"file": str(path), **counted, "revision": manifest.revision})


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup, as `ferret backup` writes it.")],
    home: options.Home = options.DEFAULT_HOME,
    json: options.Json = False,
) -> None:
    """Restore a backup into a new or empty folder, all or nothing; every file is checked against its digest.

    The service rebuilds the checkpoints as soon as it runs; `ferret storage verify --repair` does it without a server.
    """
    require_server()

    from ferret_cli.backup.restore import restore as unpack
    from ferret_core.system.permissions import restrict_home

    path = home.expanduser().absolute()
    restrict_home(path)
    manifest = unpack(file.expanduser(), path)
    show_line(
        f"restored {len(manifest.files)} files, {size(manifest.size)}, in {path}; start: ferret serve --home {path}",
        as_json=json,
    )
    if json:
        emit({"home": str(path), "files": len(manifest.files), "bytes": manifest.size, "revision": manifest.revision})
