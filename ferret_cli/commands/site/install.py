"""``ferret site install NAME -- URL --data FILE --code-file FILE``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def install(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A word for the service, such as the experiment's.")],
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="systemd, launchd or windows; default: what this system has.", show_default=False),
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Print the file and write nothing.")] = False,
) -> None:
    """Write a service file that runs `ferret join` with what stands after `--`, from this folder, also after a restart.

    Give the code by --code-file: a service file is no place for it. Nothing is started.
    """
    from ferret_cli.output import say
    from ferret_cli.service_file import KINDS, place, start, usual
    from ferret_cli.services import requested, write

    chosen = _known(kind or usual(), list(KINDS))
    service = requested(name, context.args)
    text = KINDS[chosen](service)
    if show:
        print(text.decode("utf-16" if text.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"), end="")
        return
    file = write(Path.home() / place(chosen, name), text)
    say(f"{file} is written; it starts with:\n  {start(chosen, name)}")


def _known(kind: str, kinds: list[str]) -> str:
    if kind not in kinds:
        raise typer.BadParameter(f"{kind!r} is unknown; choose one of {', '.join(kinds)}", param_hint="--kind")
    return kind
