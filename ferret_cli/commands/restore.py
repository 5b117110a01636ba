"""``ferret restore FILE``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup, as `ferret backup` writes it.")],
    home: options.Home = options.DEFAULT_HOME,
    json: options.Json = False,
) -> None:
    """Restore a backup into a new or empty folder, all or nothing; every file is checked against its digest."""
    from ferret_cli.output import emit, say
    from ferret_cli.requirements_check import require_server
    from ferret_core.protocol.formatting import size

    require_server()

    from ferret_cli.backup.restore import restore as unpack

    path = home.expanduser().absolute()
    manifest = unpack(file.expanduser(), path)
    say(f"restored {len(manifest.files)} files, {size(manifest.size)}, in {path}; start: ferret serve --home {path}")
    if json:
        emit({"home": str(path), "files": len(manifest.files), "bytes": manifest.size, "revision": manifest.revision})
