"""Follows an experiment in the terminal until it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ferret_cli.output import say
from ferret_cli.progress import round_lines, say_rounds

if TYPE_CHECKING:
    from ferret_core.protocol.resources.events import Event
    from ferret_sdk.service.run import Run


def watch_to_the_end(run: Run) -> None:
    """Shows every round on stderr; ``run`` then has its final state."""
    try:
        say_rounds(round_lines(run, _told(run, run.events())))
    except KeyboardInterrupt:
        say(f"no longer watching; the experiment itself is not stopped: ferret experiment cancel {run.id}")
        raise
    say(f"{run.refresh().id} is {run.state.value}")


def _told(run: Run, events: Iterable[Event]) -> Iterator[Event]:
    """The events, with what they say of pauses on stderr."""
    for event in events:
        if event.type == "experiment.paused":
            say(f"paused; continue: ferret experiment resume {run.id}")
        elif event.type == "experiment.resumed":
            say("resumed")
        yield event
