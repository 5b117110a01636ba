"""Follows an experiment in the terminal until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferret_cli.output import say
from ferret_cli.progress import round_lines, say_rounds

if TYPE_CHECKING:
    from ferret_sdk.run import Run


def watch_to_the_end(run: Run) -> None:
    """Shows every round on stderr; leaves ``run`` at its final state, whatever that is."""
    try:
        say_rounds(round_lines(run, run.events()))
    except KeyboardInterrupt:
        say(f"the experiment runs on; stop it with: ferret experiment cancel {run.id}")
        raise
    say(f"{run.refresh().id} is {run.state.value}")
