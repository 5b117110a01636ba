"""``ferret site log``"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options

if TYPE_CHECKING:
    from ferret_sdk.participant.receipts import Outcome


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
    """Show and verify the log of everything that this site has sent, and what became of its contributions.

    A contribution is acknowledged until the record of its round is here; then there is a receipt for it, or it was left
    out. It asks no server. Note the head that it prints at a place of your own: with --head it proves that nothing
    before was changed or cut off.
    """
    from ferret_cli.error_output import advising
    from ferret_cli.joining import NEXT_STEPS
    from ferret_cli.output import emit, say, table
    from ferret_core.protocol.audit import Head
    from ferret_core.protocol.formatting import size
    from ferret_sdk.participant.egress_log import SentLog, verify
    from ferret_sdk.participant.receipts import outcomes
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    sent_log = SentLog(home)
    with advising(NEXT_STEPS):
        end = verify(sent_log, None if head is None else Head.parse(head))
        found = outcomes(home)
    shown = [sent for sent in sent_log.read() if all or sent.size]
    outcome = {sent.number: found.get(sent.contribution or "") for sent in shown}
    if json:
        requests = [
            {**sent.model_dump(mode="json"), "outcome": (known := outcome[sent.number]) and known._asdict()}
            for sent in shown
        ]
        emit({"path": str(sent_log.path), "head": str(end), "requests": requests})
    else:
        table(
            ("number", "time", "participant", "request", "bytes", "BLAKE3 of the body", "round", "outcome"),
            (
                (
                    sent.number,
                    f"{sent.time.astimezone():%Y-%m-%d %H:%M:%S}",
                    sent.participant,
                    f"{sent.method} {sent.url}",
                    sent.size,
                    sent.digest,
                    sent.round,
                    _words(outcome[sent.number]),
                )
                for sent in shown
            ),
        )
    total = sum(sent.size for sent in shown)
    say(f"{end.number} requests, {size(total)} in bodies; the chain is unbroken. Its head is {end}")


def _words(outcome: Outcome | None) -> str | None:
    if outcome is None:
        return None
    return outcome.state if outcome.reason is None else f"{outcome.state}: {outcome.reason}"
