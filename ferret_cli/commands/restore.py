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
    """Restore a backup into a new or empty home, every file checked by its digest, all or nothing."""
    from ferret_cli.output import emit, say, size
    from ferret_cli.setup import require_server

    require_server()

    from ferret_cli.backup.restore import restore as unpack

    path = home.expanduser().absolute()
    manifest = unpack(file.expanduser(), path)
    say(f"{len(manifest.files)} files with {size(manifest.size)} are in {path}; start it: ferret serve --home {path}")
    if json:
        emit({"home": str(path), "files": len(manifest.files), "bytes": manifest.size, "revision": manifest.revision})
