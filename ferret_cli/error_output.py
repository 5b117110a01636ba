"""Output of an error: the fault, its field and value, and the next step. Never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ferret_cli.output import emit, say
from ferret_core.protocol.errors import NEXT_STEPS, Exit, FerretError

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run


def debugging() -> bool:
    return bool(os.environ.get("FERRET_DEBUG"))


def require_completed(run: Run) -> None:
    """Ends the command with the experiment's result. Its document with the error is on stdout already, so the error
    goes to stderr only.
    """
    try:
        run.require_completed()
    except FerretError as error:
        raise typer.Exit(tell(error)) from error


@contextmanager
def advising(steps: Mapping[str, str]) -> Generator[None]:
    """Ends the command with an error of the ``with`` block, and with next steps for the operator of this command."""
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
    """Prints ``error`` on stderr and returns its exit code."""
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
    """Returns an unforeseen exception as an error that advises ``--debug``."""
    return FerretError("internal", f"{type(error).__name__}: {error}")
