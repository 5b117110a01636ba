"""Where an enrolment code comes from: not from the command line, which everybody on the machine can read."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

from ferret_cli.secret_input import read
from ferret_core.protocol.errors import FerretError


def code_of(given: str | None, file: Path | None) -> str:
    """The code of ``--code`` or ``FERRET_CODE``, of the file, or typed at the terminal without being shown.

    Raises ``request.invalid``.
    """
    if given is not None and file is not None:
        message = "give it or the code itself (--code, FERRET_CODE), not both"
        raise FerretError.of_field("request.invalid", "--code-file", str(file), message)
    if file is not None:
        return _read(file)
    if given is None and not sys.stdin.isatty():
        detail = "an enrolment code is needed: set FERRET_CODE, or give --code-file FILE"
        raise FerretError("request.invalid", detail)
    code = given if given is not None else getpass.getpass("Enrolment code (not shown): ", stream=sys.stderr)
    if not code.strip():
        raise FerretError("request.invalid", "the enrolment code is empty")
    return code.strip()


def _read(file: Path) -> str:
    words = read("--code-file", file).split()
    if len(words) != 1:
        message = "must hold the enrolment code and nothing else"
        raise FerretError.of_field("request.invalid", "--code-file", str(file), message)
    return words[0]
