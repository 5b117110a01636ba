"""Shows an error: what is wrong, which field and value, and what to do next. Never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ferret_cli.output import emit, say
from ferret_core.protocol.errors import Exit, FerretError

if TYPE_CHECKING:
    from ferret_sdk.run import Run

NEXT_STEPS: dict[str, str] = {
    "auth.missing": "set FERRET_HOME to the server's folder, or FERRET_TOKEN to the token in its admin.token",
    "auth.invalid": "set FERRET_TOKEN to the token in the server's FERRET_HOME/admin.token",
    "enrolment.invalid": "ask the person who runs the experiment for a new code",
    "experiment.not_found": "list the experiments: ferret experiment list",
    "enrolment.not_found": "list them: ferret experiment codes ID",
    "participant.not_found": "list them: ferret experiment participants ID",
    "participant.conflict": "see its state: ferret experiment participants ID",
    "user.not_found": "list them: ferret user list",
    "token.not_found": "list them: ferret token list",
    "experiment.conflict": "see its state: ferret experiment show ID",
    "extension.refused": "run a copy with more rounds: ferret experiment clone ID --set rounds=N",
    "artifact.not_found": "see what was written: ferret experiment show ID",
    "home.in_use": "use that server, stop it, or choose another folder with --home",
    "server.unreachable": "check the address (FERRET_URL or --url); to run a server on this machine: ferret serve",
    "server.not_ready": "see what is missing: ferret doctor",
    "setup.missing": "see what else is missing: ferret doctor",
    "tune.changed": "begin a study of its own in another folder with --out, or set the values back",
    "tune.in_use": "wait for it, stop it, or choose another folder with --out",
    "tune.no_result": "choose other ranges, and another folder with --out",
    "internal": "run the command again as ferret --debug … to see the traceback",
}


def debugging() -> bool:
    return bool(os.environ.get("FERRET_DEBUG"))


def require_completed(run: Run) -> None:
    """Ends the command as the experiment ended. Its document has been printed and holds the error, so only stderr
    says it again."""
    try:
        run.require_completed()
    except FerretError as error:
        raise typer.Exit(tell(error)) from error


@contextmanager
def advising(steps: Mapping[str, str]) -> Generator[None]:
    """Ends the command with an error of the ``with`` block, and with next steps for those who run this command."""
    try:
        yield
    except FerretError as error:
        if debugging():
            raise
        raise typer.Exit(show(error, steps)) from error


def show(error: FerretError, steps: Mapping[str, str] = NEXT_STEPS) -> Exit:
    """Ends a command that has printed no result: with ``--json`` stdout gets the problem document instead."""
    if "--json" in sys.argv:
        emit(error.to_json())
    return tell(error, steps)


def tell(error: FerretError, steps: Mapping[str, str] = NEXT_STEPS) -> Exit:
    """Prints ``error`` on stderr and returns the exit code that it stands for."""
    from rich.text import Text

    say(Text.assemble(("error: ", "bold red"), (error.problem.title, "bold")))
    say(Text(f"  {error.detail}"))
    for field in error.errors:
        if str(field) not in error.detail:
            say(Text(f"  {field}"))
    if error.omitted:
        say(Text(f"  and {error.omitted} more"))
    if step := steps.get(error.code):
        say(Text.assemble(("  next: ", "bold"), step))
    return error.problem.exit


def of_exception(error: Exception) -> FerretError:
    """What was not foreseen, as an error that asks for ``--debug``."""
    return FerretError("internal", f"{type(error).__name__}: {error}")
