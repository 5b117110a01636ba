"""What ``ferret site install`` is asked for, checked, and its file, written."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ferret_cli.enrolment_code_input import code_of
from ferret_cli.service_file import Service
from ferret_core.protocol.errors import FerretError
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.service.server_address import ClientSettings

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def requested(name: str, arguments: Sequence[str]) -> Service:
    """The service ``name`` of ``ferret join`` with ``arguments``; ``request.invalid`` says what is wrong with them.

    The enrolment code must come from a file, which is read once to see that it holds one.
    """
    if not NAME.fullmatch(name):
        message = "is no name for a service: use at most 63 small letters, digits and hyphens"
        raise FerretError.of_field("request.invalid", "NAME", name, message)
    if any(argument == "--code" or argument.startswith("--code=") for argument in arguments):
        detail = "a service file is no place for an enrolment code: write it to a file, and give --code-file FILE"
        raise FerretError("request.invalid", detail)
    file = _value("--code-file", arguments)
    if file is None:
        raise FerretError("request.invalid", "give what `ferret join` needs after --, with --code-file FILE")
    code_of(None, Path(file))
    command = [sys.executable, "-m", "ferret_cli", "join", *arguments]
    return Service(name, command, Path.cwd(), ClientSettings().home.expanduser().absolute())


def write(place: Path, text: bytes) -> Path:
    """For its owner alone, as a whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    write_durably(place, text)
    return place


def _value(option: str, arguments: Sequence[str]) -> str | None:
    for position, argument in enumerate(arguments):
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
        if argument == option and position + 1 < len(arguments):
            return arguments[position + 1]
    return None
