"""Output of commands: results on stdout, messages on stderr.

Names, reasons and errors may come from a participant or a server: terminal control characters in them are removed, or
escaped in JSON.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ferret_core.protocol.sanitize import shown, shown_json, shown_lines

if TYPE_CHECKING:
    from rich.console import Console


import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ferret_core.protocol.errors import NEXT_STEPS, Exit, FerretError

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run

_UNWRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def say(*parts: Any) -> None:
    """Prints a message on stderr."""
    safe = (shown_lines(part) if isinstance(part, str) else part for part in parts)
    stderr().print(*safe, soft_wrap=True, highlight=False, markup=False, emoji=False)


def show_line(text: str, *, as_json: bool = False) -> None:
    """Prints a line of a command's result on stdout; on stderr if stdout gets the result as JSON."""
    if as_json:
        say(text)
    else:
        print(shown_lines(text), flush=True)


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def emit(value: Any) -> None:
    """Prints one JSON document on one line of stdout."""
    document = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    print(shown_json(json.dumps(document, ensure_ascii=False, default=str)), flush=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a table on stdout; None is shown as a dash. Cells are not cut if stdout is not a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(Text(shown(column)))
    for row in rows:
        grid.add_row(*(Text("–" if cell is None else shown(str(cell))) for cell in row))
    Console(width=None if sys.stdout.isatty() else 10_000).print(grid)


def show_list(found: Iterable[BaseModel], columns: Sequence[str], rows: Iterable[Sequence[Any]], as_json: bool) -> None:
    """Prints a list: as one JSON document, or as a table."""
    if as_json:
        emit({"items": [each.model_dump(mode="json") for each in found]})
    else:
        table(columns, rows)


def debugging() -> bool:
    return bool(os.environ.get("FERRET_DEBUG"))


def require_completed(run: Run) -> None:
    """Ends the command with the experiment's result; its error goes to stderr only, since stdout has the document."""
    try:
        run.require_completed()
    except FerretError as error:
        raise typer.Exit(tell_error(error)) from error


@contextmanager
def advising(steps: Mapping[str, str]) -> Generator[None]:
    """Ends the command with an error of the ``with`` block, and with next steps for the operator of this command."""
    try:
        yield
    except FerretError as error:
        if debugging():
            raise
        raise typer.Exit(show_error(error, steps)) from error


def show_error(error: FerretError, steps: Mapping[str, str] = NEXT_STEPS) -> Exit:
    """Ends a command that has printed no result: with ``--json`` stdout gets the problem document instead."""
    status = tell_error(error, steps)
    if "--json" in sys.argv:
        emit(error.to_json())
    return status


def tell_error(error: FerretError, steps: Mapping[str, str] = NEXT_STEPS) -> Exit:
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


def is_of_stdout(error: Exception) -> bool:
    """True if stdout did not take a result. Errors of files have a name, or are Ferret's."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITTEN


def unforeseen(error: Exception) -> FerretError:
    """Returns an unforeseen exception as an error that advises ``--debug``."""
    return FerretError("internal", f"{type(error).__name__}: {error}")
