"""The ``ferret`` command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ferret_cli import output
from ferret_cli.commands import (
    alert,
    audit,
    backup,
    chat,
    code,
    data,
    demo,
    doctor,
    experiment,
    experiment_export,
    join,
    participant,
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
from ferret_core.protocol.errors import Exit, FerretError

RUN, TAKE_PART, ADMINISTER, OPERATE, DEVELOP = "Run", "Take part", "Administer", "Operate", "Develop Ferret"
"""Panels of ``ferret --help``: what people do. They and their commands are shown in this order."""

_UsageError: Any = typer.BadParameter.__base__
"""Typer does not export it."""


class _Root(TyperGroup):
    """With ``--json``, wrong usage of a command is a JSON document too."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            if "--json" in sys.argv:
                output.emit(FerretError("request.invalid", error.format_message()).to_json())
            raise


app = typer.Typer(
    name="ferret",
    cls=_Root,
    help="Tune all parameters of a language model over data that never leaves its owners.",
    epilog="Exit codes: 0 done, 1 failure, 2 wrong usage, 3 not found, 4 not allowed, 5 conflict, "
    "6 server unreachable, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _add(panel: str, name: str, command: Callable[..., None], example: str) -> None:
    app.command(name, rich_help_panel=panel, epilog=f"Example: ferret {name}{example and ' '}{example}")(command)


_add(RUN, "demo", demo.demo, "")
_add(RUN, "serve", serve.serve, "--root /data")
_add(RUN, "dashboard", status.dashboard, "")
_add(RUN, "plan", plan.plan, "experiment.toml --shape llama-3b")
_add(RUN, "submit", submit.submit, "experiment.toml --set rounds=20 --watch")
app.add_typer(experiment.app, name="experiment", rich_help_panel=RUN)
experiment.app.add_typer(experiment_export.app)
_add(RUN, "chat", chat.chat, 'latest "What is the capital of France?"')
_add(RUN, "simulate", simulate.simulate, "experiment.toml --out tuned")
_add(RUN, "tune", tune.tune, "experiment.toml --out study")
app.add_typer(data.app, name="data", rich_help_panel=RUN)

_add(TAKE_PART, "join", join.join, "https://ferret.example.org --data letters.jsonl")
app.add_typer(site.app, name="site", rich_help_panel=TAKE_PART)
app.add_typer(receipt.app, name="receipt", rich_help_panel=TAKE_PART)

app.add_typer(code.app, name="code", rich_help_panel=ADMINISTER)
app.add_typer(participant.app, name="participant", rich_help_panel=ADMINISTER)
app.add_typer(project.app, name="project", rich_help_panel=ADMINISTER)
app.add_typer(user.app, name="user", rich_help_panel=ADMINISTER)
app.add_typer(token.app, name="token", rich_help_panel=ADMINISTER)
app.add_typer(session.app, name="session", rich_help_panel=ADMINISTER)
_add(ADMINISTER, "whoami", status.whoami, "")
app.add_typer(alert.app, name="alert", rich_help_panel=ADMINISTER)
app.add_typer(audit.app, name="audit", rich_help_panel=ADMINISTER)

_add(OPERATE, "doctor", doctor.doctor, "")
_add(OPERATE, "status", status.status, "")
_add(OPERATE, "backup", backup.backup, "ferret.tar.gz")
_add(OPERATE, "restore", backup.restore, "ferret.tar.gz --home /srv/ferret")
app.add_typer(storage.app, name="storage", rich_help_panel=OPERATE)
_add(OPERATE, "migrate", serve.migrate, "")
_add(OPERATE, "api", serve.api, "--host 0.0.0.0 --port 8765")
_add(OPERATE, "worker", serve.worker, "train")

app.add_typer(
    typer.Typer(cls=Extensible, help="Benchmarks, and the paper's tables and figures.", no_args_is_help=True),
    name="dev",
    rich_help_panel=DEVELOP,
)


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
    if sys.stdout is None:
        detail = "stdout is closed, and the result would be lost: leave it open, or send it to a file"
        sys.exit(output.tell_error(FerretError("request.invalid", detail)))
    try:
        status = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
        status = Exit.FAILURE
    except OSError as error:
        if output.debugging():
            raise
        detail = f"stdout takes no more: {error.strerror}; the command was not undone: look before you repeat it"
        status = output.tell_error(FerretError("export.failed", detail))
        _drop_stdout()
    sys.exit(status)


def _drop_stdout() -> None:
    """Keeps Python from writing the rest at its exit."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _run() -> Any:
    """Returns the exit code of the command. Raises ``OSError`` if stdout does not take the result."""
    try:
        app(prog_name="ferret")
    except SystemExit as ended:
        return ended.code
    except Exception as error:
        if output.debugging() or output.is_of_stdout(error):
            raise
        return output.show_error(error if isinstance(error, FerretError) else output.unforeseen(error))
