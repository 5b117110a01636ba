"""``ferret experiment …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.experiment import cancel, enrol, export, list, show, verify, watch

experiment = typer.Typer(help="Experiments on the server: what they do and what they gave.", no_args_is_help=True)
experiment.command("list")(list.list_experiments)
experiment.command("show")(show.show)
experiment.command("watch")(watch.watch)
experiment.command("cancel")(cancel.cancel)
experiment.command("export")(export.export)
experiment.command("verify")(verify.verify)
experiment.command("enrol")(enrol.enrol)
