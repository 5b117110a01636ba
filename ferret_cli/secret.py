"""Passwords come from a prompt or a file, never from the command line, which others on the machine can read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ferret_core.protocol.errors import FerretError

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="The password, on the first line of this file; - for stdin. Without it you are asked.",
        show_default=False,
    ),
]


def password(file: Path | None) -> str:
    """What the file says, or the person at the terminal, twice; ``request.invalid`` where there is neither."""
    if file is None:
        if not sys.stdin.isatty():
            detail = "there is nobody to ask for a password: give --password-file FILE, - for stdin"
            raise FerretError("request.invalid", detail)
        return typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    try:
        text = sys.stdin.readline() if file == Path("-") else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise FerretError.of_field(
            "request.invalid", "--password-file", str(file), f"cannot be read: {error}"
        ) from error
    return (text.splitlines() or [""])[0]
