"""``ferret receipt …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.receipt import verify

receipt = typer.Typer(help="Proof that a round holds a contribution.", no_args_is_help=True)
receipt.command("verify")(verify.verify)
