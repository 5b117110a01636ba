"""``ferret user …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.user import add, change, list, password

user = typer.Typer(
    help="Who may use the server, and as what. For administrators, but for your own password.", no_args_is_help=True
)
user.command("add")(add.add)
user.command("list")(list.list_users)
user.command("role")(change.role)
user.command("password")(password.password)
user.command("disable")(change.disable)
user.command("enable")(change.enable)
