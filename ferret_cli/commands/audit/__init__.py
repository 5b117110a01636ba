"""``ferret audit …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.audit import head, list, verify

audit = typer.Typer(help="Who did what at the server: a log that shows what was changed in it.", no_args_is_help=True)
audit.command("list")(list.list_audit)
audit.command("verify")(verify.verify)
audit.command("head")(head.head)
