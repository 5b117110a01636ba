"""The rounds of an experiment, each yielded when its measurements are complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ferret_core.protocol.resources.events import Event
    from ferret_sdk.service.run import Run


class MeasuredRound(NamedTuple):
    """All measurements of a round (0: the base model), and the time of the last one."""

    round: int
    time: datetime
    metrics: dict[str, float]


def measured(run: Run, event: Event) -> int | None:
    """Returns the round that ``event`` completes, or None."""
    from ferret_core.rounds.sampling import evaluation_due

    if event.type == "round.evaluated":
        return event.round
    if event.type != "round.committed" or event.round is None:
        return None
    return None if evaluation_due(run.specification(), event.round) else event.round


def metrics_of(run: Run, number: int) -> dict[str, float]:
    """Returns the round's metrics by name."""
    if number:
        return run.round(number).metrics
    first = {name: points[0] for name, points in run.metrics().items() if points}
    return {name: point.value for name, point in first.items() if point.round == 0 and point.value is not None}


def measured_rounds(run: Run, events: Iterable[Event], there: frozenset[int] = frozenset()) -> Iterator[MeasuredRound]:
    """Yields each round that is not in ``there``, as soon as it is complete; the order may differ.

    A round without an evaluation is yielded at the end of the events.
    """
    waiting: dict[int, datetime] = {}
    for event in events:
        if event.type == "experiment.extended":
            run.refresh()
        if event.round is None or event.round in there:
            continue
        if event.type == "round.committed":
            waiting[event.round] = event.time
        if (number := measured(run, event)) is not None:
            waiting.pop(number, None)
            yield MeasuredRound(number, event.time, metrics_of(run, number))
    for number, time in waiting.items():
        yield MeasuredRound(number, time, metrics_of(run, number))
