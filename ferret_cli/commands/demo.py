"""``ferret demo``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import say
from ferret_cli.requirements_check import require_server
from ferret_core import __version__


def demo(
    once: Annotated[bool, typer.Option("--once", help="Stop when the experiment has ended.")] = False,
    json: options.Json = False,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home", file_okay=False, help="Folder of the demo; default: ./.ferret/demo, emptied at every start."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Port; default: 8765, or a free one if it is taken.")
    ] = None,
) -> None:
    """Run the whole service with a small experiment on generated data, and watch it learn.

    Prints one address for the browser and keeps serving until Ctrl-C.
    """
    require_server()
    say(f"starting Ferret {__version__}")

    from ferret_cli import demo
    from ferret_cli.demo import show

    try:
        show(demo.plan_of_demo(home, port), once=once, json=json)
    except KeyboardInterrupt:
        say("stopped")
        if once:
            raise
