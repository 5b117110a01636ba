"""``ferret project …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.project import add, allow, list, member, show

project = typer.Typer(
    help="Whose experiments they are, who sees them, and what they may use. Members look; administrators change.",
    no_args_is_help=True,
)
project.command("list")(list.list_projects)
project.command("show")(show.show)
project.command("add")(add.add)
project.command("delete")(add.delete)
project.command("add-member")(member.add)
project.command("remove-member")(member.remove)
project.command("allow")(allow.allow)
project.command("disallow")(allow.disallow)
