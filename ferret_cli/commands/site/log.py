"""``ferret site log``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def log(
    all: Annotated[bool, typer.Option("--all", help="Also requests without a body: questions and downloads.")] = False,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="NUMBER:HASH", help="A head that you noted earlier: the log must go on from it."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show and verify the log of everything that this site has sent.

    It asks no server. Note the head that it prints at a place of your own: with --head it proves that nothing before
    was changed or cut off.
    """
    from ferret_cli.failure import advising
    from ferret_cli.joining import NEXT_STEPS
    from ferret_cli.output import emit, say, size, table
    from ferret_core.protocol.audit import Head
    from ferret_sdk.address import ClientSettings
    from ferret_sdk.sent_log import SentLog, verify

    sent_log = SentLog(ClientSettings().home.expanduser())
    with advising(NEXT_STEPS):
        end = verify(sent_log, None if head is None else Head.parse(head))
    shown = [sent for sent in sent_log.read() if all or sent.size]
    if json:
        emit(
            {"path": str(sent_log.path), "head": str(end), "requests": [sent.model_dump(mode="json") for sent in shown]}
        )
    else:
        table(
            ("number", "time", "participant", "request", "bytes", "BLAKE3 of the body", "round"),
            (
                (
                    sent.number,
                    f"{sent.time.astimezone():%Y-%m-%d %H:%M:%S}",
                    sent.participant,
                    f"{sent.method} {sent.url}",
                    sent.size,
                    sent.digest,
                    sent.round,
                )
                for sent in shown
            ),
        )
    total = sum(sent.size for sent in shown)
    say(f"{end.number} requests, {size(total)} in bodies; the chain is unbroken. Its head is {end}")
