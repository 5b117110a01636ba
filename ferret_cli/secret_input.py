"""Input of secrets: from a prompt or a file, never from the command line, which others on the machine can read."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from ferret_core.protocol.errors import FerretError

LONGEST = 1000
"""Maximum number of characters read from a file."""
STDIN = Path("-")

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="The password, on the first line of this file; - for stdin. Without it the command prompts you.",
        show_default=False,
    ),
]


CurrentFile = Annotated[
    Path | None,
    typer.Option(
        "--current-file",
        metavar="FILE",
        help="Your current password, on the first line of this file; - for stdin. Without it the command prompts you.",
        show_default=False,
    ),
]


def password(file: Path | None) -> str:
    """Returns the password from the file, or typed twice at the terminal; raises ``request.invalid`` without either."""
    return _password("--password-file", file, "Password", twice=True)


def current(file: Path | None) -> str:
    """Returns the current password from the file or the terminal; raises ``request.invalid`` without either."""
    return _password("--current-file", file, "Current password", twice=False)


def enrolment_code(given: str | None, file: Path | None) -> str:
    """Returns the code of option, environment, file or terminal, without an echo; raises ``request.invalid``."""
    if given is not None and file is not None:
        message = "give it or the code itself (--code, FERRET_CODE), not both"
        raise FerretError.of_field("request.invalid", "--code-file", str(file), message)
    if file is not None:
        return _one_word(file)
    if given is None and not sys.stdin.isatty():
        detail = "an enrolment code is needed: set FERRET_CODE, or give --code-file FILE"
        raise FerretError("request.invalid", detail)
    code = given if given is not None else getpass.getpass("Enrolment code (not shown): ", stream=sys.stderr)
    if not code.strip():
        raise FerretError("request.invalid", "the enrolment code is empty")
    return code.strip()


def _password(option: str, file: Path | None, prompt: str, twice: bool) -> str:
    if file is not None:
        return (_read(option, file).splitlines() or [""])[0]
    if not sys.stdin.isatty():
        detail = f"no terminal to prompt for a password: give {option} FILE, - for stdin"
        raise FerretError("request.invalid", detail)
    return typer.prompt(prompt, hide_input=True, confirmation_prompt=twice, err=True)


def _read(option: str, file: Path) -> str:
    """Returns the beginning of ``file`` or the first line of stdin; raises ``request.invalid``."""
    try:
        if file == STDIN:
            return sys.stdin.readline(LONGEST + 1)
        with file.open(encoding="utf-8") as opened:
            return opened.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise FerretError.of_field("request.invalid", option, str(file), f"cannot be read: {reason}") from error


def _one_word(file: Path) -> str:
    words = _read("--code-file", file).split()
    if len(words) != 1:
        message = "must hold the enrolment code and nothing else"
        raise FerretError.of_field("request.invalid", "--code-file", str(file), message)
    return words[0]
