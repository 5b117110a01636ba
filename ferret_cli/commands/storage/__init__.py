"""``ferret storage …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.storage import gc, verify

storage = typer.Typer(help="The stored files of the server on this machine.", no_args_is_help=True)
storage.command("gc")(gc.gc)
storage.command("verify")(verify.verify)
