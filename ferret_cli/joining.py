"""What ``ferret join`` shows while it takes part."""

from __future__ import annotations

import logging
from pathlib import Path

from ferret_cli.output import emit, say, size
from ferret_sdk.participant import Participant, RoundReport


def take_part(participant: Participant, data: Path, json: bool) -> None:
    """Trains until the experiment has ended; with ``json`` every round is one line of JSON on stdout."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    say(f"{participant.member.name} takes part in {participant.member.experiment} with {data}")

    def report(done: RoundReport) -> None:
        say(_line(done))
        if json:
            emit({**done._asdict(), "error": done.error and done.error.to_json()})

    say(f"the experiment is {participant.run(data, on_round=report).value}")


def _line(done: RoundReport) -> str:
    if done.error is not None:
        return f"round {done.round}: nothing sent: {done.error.detail}"
    loss = "" if done.loss is None else f", train loss {done.loss:.4f}"
    return f"round {done.round}: sent {size(done.size)} after {done.seconds:.1f} s{loss}"
