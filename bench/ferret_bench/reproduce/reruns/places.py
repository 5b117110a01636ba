"""The places of a study's runs: a service that the command starts, an existing one, or this process.

At a service cells are submitted under their keys and followed to their ends, optionally several in parallel.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ferret_bench._machine import machine
from ferret_bench.reproduce.reruns.grid import Cell
from ferret_bench.reproduce.reruns.records import Record, RoundRecord, Store
from ferret_cli.demo import own_environment
from ferret_cli.output import say
from ferret_cli.round_progress import HEADER, line_of
from ferret_cli.stack import ports
from ferret_cli.stack.home_lock import locked
from ferret_cli.stack.stack import Plan, running
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.rounds import Round
from ferret_core.protocol.states import RoundState
from ferret_sdk.http.retry import AWAY
from ferret_sdk.service.measured_rounds import measured, metrics_of
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service

Runner = Callable[[Sequence[Cell]], Iterator[tuple[Cell, Record]]]


@contextmanager
def own_service(home: Path, store: Store, together: int) -> Generator[Runner]:
    """Starts a whole service in ``home`` with ``together`` training workers, and stops it at the end."""
    own_environment()
    with running(Plan(home, port=ports.free_port(), workers=together, roots=(Path("/"),)), say) as stack:
        service = Service(stack.plan.url, stack.token)
        place = Place(service, machine(), stack.supervisor.supervise, together)
        yield lambda cells: served(place, cells, lambda cell: store.attempts(cell.key))


@contextmanager
def service_at(url: str, token: str | None, home: Path, store: Store, together: int) -> Generator[Runner]:
    """Uses a running service; ``home`` keeps a second command from running the same cells."""
    with locked(home):
        service = Service(url, token)
        place = Place(service, {"server": service.info().model_dump(mode="json")}, together=together)
        yield lambda cells: served(place, cells, lambda cell: store.attempts(cell.key))


@contextmanager
def this_process(home: Path) -> Generator[Runner]:
    from ferret_bench.reproduce.reruns.in_process import simulated

    with locked(home):
        yield simulated


STEP_SECONDS = 0.3
PATIENCE_SECONDS = 600.0


@dataclass(frozen=True)
class Place:
    """A service to run at, ``together`` runs at a time.

    ``tend`` is called repeatedly meanwhile; ``machine`` is the one that runs them.
    """

    service: Service
    machine: dict[str, Any]
    tend: Callable[[], None] = lambda: None
    together: int = 1


def served(place: Place, cells: Iterable[Cell], attempts: Callable[[Cell], int]) -> Iterator[tuple[Cell, Record]]:
    """Yields each cell with its result, as it ends.

    A cell's key and the number of earlier attempts are its idempotency key: a run in progress continues when the
    command was interrupted. A server that does not answer is waited for, 10 minutes at most.
    """
    waiting, flying = deque(cells), list[_Flight]()
    patience = _Patience()
    while waiting or flying:
        place.tend()
        try:
            while waiting and len(flying) < place.together:
                cell = waiting[0]
                begun = _submit(place, cell, attempts(cell))
                waiting.popleft()
                if isinstance(begun, Record):
                    yield cell, begun
                else:
                    flying.append(begun)
            for flight in list(flying):
                if flight.ended():
                    record = flight.record(place)
                    flying.remove(flight)
                    yield flight.cell, record
        except FerretError as error:
            patience.wait_for(error)
        else:
            patience.reset()
        time.sleep(STEP_SECONDS)


class _Patience:
    """Waits for a server that does not answer, as an embedded one while it restarts, for ten minutes in a row."""

    def __init__(self) -> None:
        self._since: float | None = None

    def reset(self) -> None:
        self._since = None

    def wait_for(self, error: FerretError) -> None:
        now = time.monotonic()
        self._since = self._since or now
        if error.code not in AWAY or now - self._since > PATIENCE_SECONDS:
            raise error


@dataclass
class _Flight:
    """A run in progress, and the number of its events already printed."""

    cell: Cell
    run: Run
    alone: bool
    started: float = field(default_factory=time.monotonic)
    _told: int = 0
    _over: bool = False

    def ended(self) -> bool:
        """Prints the events since the last call. Returns True if the run is over."""
        while not self._over and (events := self.run.past_events(self._told)):
            for event in events:
                number = measured(self.run, event)
                if number is not None and self.alone:
                    say(str(line_of(self.run, number)))
                self._told, self._over = event.seq, event.final
        return self._over

    def record(self, place: Place) -> Record:
        experiment = self.run.refresh().experiment
        error = None
        try:
            self.run.require_completed()
        except FerretError as raised:
            error = raised.to_json()
        rounds = [self._base(), *(_round(done) for done in self.run.rounds() if done.state is RoundState.COMMITTED)]
        seconds = time.monotonic() - self.started
        if experiment.started_at and experiment.finished_at:
            seconds = (experiment.finished_at - experiment.started_at).total_seconds()
        return self.cell.record(
            place.service.url, seconds, place.machine, rounds=rounds, digest=experiment.digest, error=error
        )

    def _base(self) -> RoundRecord:
        return RoundRecord(number=0, metrics=metrics_of(self.run, 0))


def _submit(place: Place, cell: Cell, attempt: int) -> _Flight | Record:
    """Returns the run, or the record with the reason that the service refuses it."""
    try:
        run = place.service.submit(cell.spec, f"{cell.key}-{attempt}")
    except FerretError as error:
        if error.code in AWAY or error.code.startswith("auth."):
            raise
        return cell.record(place.service.url, 0, place.machine, error=error.to_json())
    say(f"{cell.title}: {run.id}")
    if place.together == 1:
        say(HEADER)
    return _Flight(cell, run, place.together == 1)


def _round(done: Round) -> RoundRecord:
    return RoundRecord(
        number=done.number,
        metrics=done.metrics,
        bytes_up=done.bytes_up,
        bytes_down=done.bytes_down,
        participants=done.participants,
        accepted=done.accepted,
    )
