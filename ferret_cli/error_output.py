"""Shows an error: what is wrong, which field and value, and what to do next. Never a traceback."""

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
