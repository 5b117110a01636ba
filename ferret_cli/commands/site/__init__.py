"""``ferret site …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.site import check, clean, init, install, log, status

site = typer.Typer(help="A site that takes part: its own data and machine.", no_args_is_help=True)
site.command("init")(init.init)
site.command("check")(check.check)
site.command("install", context_settings={"allow_extra_args": True})(install.install)
site.command("log")(log.log)
site.command("status")(status.status)
site.command("clean")(clean.clean)
