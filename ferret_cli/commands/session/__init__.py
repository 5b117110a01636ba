"""``ferret session …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.session import end, list

session = typer.Typer(
    help="Browsers that are signed in: your own, or with --user those of somebody else.", no_args_is_help=True
)
session.command("list")(list.list_sessions)
session.command("end")(end.end)
