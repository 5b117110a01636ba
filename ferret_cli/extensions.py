"""The commands of ``ferret dev``: entry points of the group ``ferret.commands``, each a ``typer.Typer``.

Other distributions have them, such as ``ferret-bench``: they are searched only for ``ferret dev``.
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
INSTALL = dict.fromkeys(("bench", "paper"), "pip install ferret-bench")
"""Installation commands of Ferret's own extensions."""


class Extensible(TyperGroup):
    """A group with the commands of other distributions."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(_installed())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name)


def _command(name: str) -> Any:
    """Returns the command of this name, None if unknown; raises ``dependency.missing`` for one of Ferret's."""
    if entry := _installed().get(name):
        command = typer.main.get_command(entry.load())
        command.name = name
        return command
    if name in INSTALL:
        raise FerretError("dependency.missing", f"ferret dev {name} is not installed; install it with: {INSTALL[name]}")
    return None


@cache
def _installed() -> dict[str, EntryPoint]:
    """Returns the entries by name. An entry without its package, as after moving a checkout, is skipped."""
    found = entry_points(group=GROUP)
    return {entry.name: entry for entry in found if not missing([entry.module.partition(".")[0]])}
