"""``ferret alert …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.alert import add, list, remove, send_test, switch

alert = typer.Typer(
    help="Who is told, by webhook or e-mail, what happens to a project's experiments.", no_args_is_help=True
)
alert.command("add")(add.add)
alert.command("list")(list.list_alerts)
alert.command("test")(send_test.send_test)
alert.command("disable")(switch.disable)
alert.command("enable")(switch.enable)
alert.command("remove")(remove.remove)
