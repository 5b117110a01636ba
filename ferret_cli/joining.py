"""What ``ferret join`` shows while it takes part."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ferret_cli.output import emit, say, size
from ferret_core.heartbeat import Heartbeat
from ferret_core.private import keep_private
from ferret_core.protocol.words import shown_lines
from ferret_sdk.address import ClientSettings
from ferret_sdk.participant import Participant, RoundReport


def begin() -> None:
    """Shows from now on that this process works, where somebody watches it, and writes for its owner alone."""
    keep_private(ClientSettings().home.expanduser())
    if path := os.environ.get("FERRET_HEARTBEAT"):
        Heartbeat(Path(path)).start()


def take_part(participant: Participant, data: Path, json: bool) -> None:
    """Trains until the experiment has ended; with ``json`` every round is one line of JSON on stdout."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Shown("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    say(f"{participant.member.name} takes part in {participant.member.experiment} with {data}")

    def report(done: RoundReport) -> None:
        say(_line(done))
        if json:
            emit({**done._asdict(), "error": done.error and done.error.to_json()})

    say(f"the experiment is {participant.run(data, on_round=report).value}")


class _Shown(logging.Formatter):
    """Messages that may quote the server."""

    def format(self, record: logging.LogRecord) -> str:
        return shown_lines(super().format(record))


def _line(done: RoundReport) -> str:
    if done.error is not None:
        return f"round {done.round}: nothing sent: {done.error.detail}"
    loss = "" if done.loss is None else f", train loss {done.loss:.4f}"
    return f"round {done.round}: sent {size(done.size)} after {done.seconds:.1f} s{loss}"
