"""Progress lines, one per round, for a watched experiment, the demo and a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from ferret_cli.experiment_tables import decline_line
from ferret_cli.output import say
from ferret_core.protocol.formatting import quantity, size
from ferret_sdk.service.measured_rounds import measured, metrics_of

if TYPE_CHECKING:
    from ferret_core.protocol.resources.events import Event
    from ferret_sdk.service.run import Run


HEADER = f"{'round':>9}  {'train loss':>10}  {'eval loss':>9}  {'Rouge-L':>8}  {'sent each':>9}  {'received':>9}"

QUIET_SECONDS = 30.0
"""Time without a line after which the contributions of a slow round are counted."""


class RoundLine(NamedTuple):
    """One round: ``bytes_up`` and ``bytes_down`` are means over its participants."""

    number: int
    rounds: int
    metrics: Mapping[str, float]
    bytes_up: float
    bytes_down: float

    def __str__(self) -> str:
        loss, held_out, rouge = (
            quantity(name, self.metrics.get(name)) for name in ("train_loss", "eval_loss", "rouge_l")
        )
        return "  ".join(
            [
                f"{self.number:>4}/{self.rounds:<4}",
                f"{loss or '–':>10}",
                f"{held_out or '–':>9}",
                f"{rouge or '–':>8}",
                f"{size(self.bytes_up) if self.number else '–':>9}",
                f"{size(self.bytes_down) if self.number else '–':>9}",
                *([f"ε = {self.metrics['epsilon']:.2f}"] if "epsilon" in self.metrics else []),
            ]
        )


def round_lines(run: Run, events: Iterable[Event]) -> Iterator[RoundLine]:
    """Yields a line for the base model and for each round, once all its measurements are available."""
    for event in events:
        if event.type == "experiment.extended":
            run.refresh()
        if (number := measured(run, event)) is not None:
            yield line_of(run, number)


def line_of(run: Run, number: int) -> RoundLine:
    rounds = run.experiment.rounds
    if number == 0:
        return RoundLine(0, rounds, metrics_of(run, 0), 0, 0)
    found = run.round(number)
    share = max(found.accepted, 1)
    return RoundLine(
        number, rounds, found.metrics, found.bytes_up / share, found.bytes_down / max(found.participants, 1)
    )


def say_rounds(lines: Iterable[RoundLine]) -> None:
    """Prints the lines on stderr as they come, under one header."""
    for index, line in enumerate(lines):
        if index == 0:
            say(HEADER)
        say(str(line))


def watch_to_the_end(run: Run) -> None:
    """Shows every round on stderr; ``run`` then has its final state."""
    try:
        say_rounds(round_lines(run, say_between_rounds(run.id, run.events())))
    except KeyboardInterrupt:
        say(f"no longer watching; the experiment itself is not stopped: ferret experiment cancel {run.id}")
        raise
    say(f"{run.refresh().id} is {run.state.value}")
    if decline := run.experiment.decline:
        say(decline_line(run.id, decline))


def say_between_rounds(id: str, events: Iterable[Event]) -> Iterator[Event]:
    """Passes on the events of experiment ``id``. Prints pauses, and in a slow round the number of contributions."""
    arrived, participants, spoke = 0, 0, monotonic()
    for event in events:
        match event.type:
            case "experiment.paused":
                say(f"paused; continue: ferret experiment resume {id}")
            case "experiment.resumed":
                say("resumed")
            case "round.opened":
                arrived, participants = 0, event.data["participants"]
            case "contribution.accepted":
                arrived += 1
                if monotonic() - spoke >= QUIET_SECONDS:
                    say(f"round {event.round}: {arrived} of {participants} contributions have arrived")
                    spoke = monotonic()
            case "round.evaluated":
                spoke = monotonic()
            case _:
                pass
        yield event
