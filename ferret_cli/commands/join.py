"""``ferret join URL``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options


def join(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the server.")],
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="FILE.jsonl",
            help="Your examples, one JSON object per line: instruction, input, output. They never leave this machine.",
        ),
    ],
    code: Annotated[
        str,
        typer.Option(
            "--code", envvar="FERRET_CODE", help="Your enrolment code; use the same one again after a restart."
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="Your name in the experiment; default: this machine's name.")
    ] = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Take part in an experiment with your own data, until it ends."""
    import socket

    from ferret_cli.setup import require_training

    require_training()

    from ferret_cli.joining import begin, take_part
    from ferret_sdk.participant import Participant, read_examples

    begin()
    # A code works once: it is not spent before the data are known to be readable.
    read_examples(data)
    participant = Participant.enrol(url, code, name or socket.gethostname(), insecure_http=insecure_http)
    take_part(participant, data, json)
