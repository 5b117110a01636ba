"""``ferret token …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.token import create, list, revoke

token = typer.Typer(help="Tokens for programs: your own, or with --user those of somebody else.", no_args_is_help=True)
token.command("create")(create.create)
token.command("list")(list.list_tokens)
token.command("revoke")(revoke.revoke)
