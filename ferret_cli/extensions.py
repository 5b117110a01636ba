"""Commands that other distributions bring: entry points of the group ``ferret.commands``, each a ``typer.Typer``.

They are looked for only when a command is not one of the command line's own, and for ``ferret --help``, which lists
those that are installed.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from ferret_cli.requirements_check import missing
from ferret_core.protocol.errors import FerretError

GROUP = "ferret.commands"
INSTALL = dict.fromkeys(("bench", "paper"), "pip install . ./bench (in a checkout of Ferret)")
"""How to install what brings a command of Ferret's own."""


class Extensible(TyperGroup):
    """A group whose commands may come from other distributions."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *sorted(_installed())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, cmd_name) or _command(cmd_name)


def _command(name: str) -> Any:
    """The command of this name, None if nobody knows it; ``dependency.missing`` if it is Ferret's and not installed."""
    if entry := _installed().get(name):
        command = typer.main.get_command(entry.load())
        command.name = name
        return command
    if name in INSTALL:
        raise FerretError("dependency.missing", f"ferret {name} is not installed; install it with: {INSTALL[name]}")
    return None


@cache
def _installed() -> dict[str, EntryPoint]:
    """By name. An entry whose package is gone, as after a checkout was moved, does not count."""
    found = entry_points(group=GROUP)
    return {entry.name: entry for entry in found if not missing([entry.module.partition(".")[0]])}
