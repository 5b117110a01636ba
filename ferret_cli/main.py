"""The ``ferret`` command."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ferret_cli import output
from ferret_cli.commands import (
    alert,
    audit,
    backup,
    chat,
    data,
    demo,
    doctor,
    experiment,
    experiment_export,
    experiment_participants,
    join,
    plan,
    project,
    receipt,
    serve,
    session,
    simulate,
    site,
    status,
    storage,
    submit,
    token,
    tune,
    user,
)
from ferret_cli.extensions import Extensible
from ferret_core import __version__
from ferret_core.protocol.errors import FerretError

app = typer.Typer(
    name="ferret",
    cls=Extensible,
    help="Tune all parameters of a language model over data that never leaves its owners.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("dashboard")(status.dashboard)
app.command("whoami")(status.whoami)
app.command("status")(status.status)
app.command("plan")(plan.plan)
app.command("submit")(submit.submit)
app.add_typer(experiment.app, name="experiment")
experiment.app.add_typer(experiment_export.app)
experiment.app.add_typer(experiment_participants.app)
app.command("chat")(chat.chat)
app.command("simulate")(simulate.simulate)
app.command("tune")(tune.tune)
app.add_typer(data.app, name="data")
app.command("join")(join.join)
app.add_typer(site.app, name="site")
app.add_typer(receipt.app, name="receipt")
app.command("doctor")(doctor.doctor)
app.command("api")(serve.api)
app.command("worker")(serve.worker)
app.command("migrate")(serve.migrate)
app.add_typer(storage.app, name="storage")
app.add_typer(audit.app, name="audit")
app.add_typer(project.app, name="project")
app.add_typer(alert.app, name="alert")
app.add_typer(user.app, name="user")
app.add_typer(token.app, name="token")
app.add_typer(session.app, name="session")
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ferret {__version__}")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="FERRET_DEBUG", help="Show tracebacks instead of short messages.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if debug:
        os.environ["FERRET_DEBUG"] = "1"


def main() -> None:
    """Runs the command line; exits with the error's exit code."""
    # Set before torch is imported, here or in a child: threads that wait in a loop starve each other on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        app()
    except FerretError as error:
        if output.debugging():
            raise
        sys.exit(output.show_error(error))
    except Exception as error:
        if output.debugging():
            raise
        sys.exit(output.show_error(output.unforeseen(error)))
