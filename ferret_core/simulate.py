"""A whole experiment in one process, with no server: the oracle that the service must equal, bit for bit on CPU."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ferret_core import catalog, checkpoint, federation
from ferret_core.algorithms._base import Client
from ferret_core.cost import numbers_sent, round_cost
from ferret_core.evaluation.evaluate import evaluate
from ferret_core.federated_data import FederatedData
from ferret_core.ledger import LedgerEntry, LedgerRecord
from ferret_core.participant import Part, contribute
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import Arrays, decode, encode
from ferret_core.replica import Replica

EXPERIMENT = "simulation"


class RoundResult(NamedTuple):
    """One round as it ended: ``metrics`` hold train_loss, eval_loss and rouge_l (percent) as far as they were taken.

    ``bytes_up`` and ``bytes_down`` are sums over the round's participants; ``rejected`` says why, by participant.
    ``cost`` is :func:`ferret_core.cost.round_cost`'s, and all that differs when a simulation is repeated.
    """

    number: int
    digest: str
    metrics: dict[str, float]
    bytes_up: int
    bytes_down: int
    accepted: list[str]
    rejected: dict[str, FerretError]
    cost: dict[str, float]


class SimulationResult(NamedTuple):
    """A finished simulation: its rounds (0 is the base model), its ledger, the final model's digest."""

    rounds: list[RoundResult]
    ledger: list[LedgerRecord]
    digest: str


def simulate(
    spec: ExperimentSpec,
    out: Path | None = None,
    on_round: Callable[[RoundResult], None] | None = None,
    on_update: Callable[[LedgerEntry], None] | None = None,
) -> SimulationResult:
    """Runs ``spec`` and writes the final checkpoint to the folder ``out``; raises what made it fail.

    ``on_update`` is given each round's update with its record: updates may be as large as the model and are not kept.
    """
    spec = catalog.resolve(spec)
    if spec.participants.edge:
        raise FerretError.of_field(
            "spec.invalid", "participants.edge", spec.participants.edge, "a simulation has no real participants; use 0"
        )
    replica = Replica.load(spec)
    data = FederatedData(spec, replica.tokenizer, replica.context)
    rounds: list[RoundResult] = []
    ledger: list[LedgerRecord] = []
    with tempfile.TemporaryDirectory(prefix="ferret-simulation-") as scratch:
        simulation = _Simulation(replica, data, _Memories(Path(scratch)))
        for number in range(spec.rounds + 1):
            rounds.append(simulation.round(number) if number else simulation.base())
            if simulation.last is not None:
                ledger.append(simulation.last.record)
                if on_update is not None:
                    on_update(simulation.last)
            if on_round is not None:
                on_round(rounds[-1])
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        checkpoint.write(replica, EXPERIMENT, out)
    return SimulationResult(rounds, ledger, replica.digest)


class _Memories:
    """What the clients keep between their rounds, in files: for many clients it is many times the model."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def recall(self, participant: str) -> Arrays:
        path = self._folder / participant
        return decode(path.read_bytes())[0] if path.exists() else {}

    def keep(self, participant: str, memory: Arrays) -> None:
        """Stages the memory, which takes effect when the round commits; another attempt at the round replaces it."""
        (self._folder / f"{participant}.new").write_bytes(encode(memory, {}))

    def commit(self, participants: Iterable[str]) -> None:
        """The round is committed: what these have staged takes effect."""
        for participant in participants:
            (self._folder / f"{participant}.new").replace(self._folder / participant)


class _Collected(NamedTuple):
    """What an attempt at a round brought in, by participant; ``asked`` is the number of those that had a task."""

    asked: int
    parts: dict[str, Part]
    rejected: dict[str, FerretError]


class _Simulation:
    """The run between two rounds; ``last`` is the last committed round's ledger entry."""

    def __init__(self, replica: Replica, data: FederatedData, memories: _Memories) -> None:
        self.replica = replica
        self.data = data
        self.memories = memories
        self.last: LedgerEntry | None = None

    def base(self) -> RoundResult:
        return RoundResult(0, self.replica.digest, self._evaluated(), 0, 0, [], {}, {})

    def round(self, number: int) -> RoundResult:
        asked, parts, rejected = self._collect(number)
        down = len(self.last.update) if self.last else 0
        cost = self._fold([parts[name] for name in sorted(parts)])
        self.memories.commit(parts)
        metrics = federation.mean_metrics({name: part.sealed.meta.metrics for name, part in parts.items()})
        if federation.evaluation_due(self.replica.spec, number):
            metrics |= self._evaluated()
        return RoundResult(
            number,
            self.replica.digest,
            metrics,
            sum(len(part.sealed.blob) for part in parts.values()),
            down * asked,
            sorted(parts),
            rejected,
            cost,
        )

    def _collect(self, number: int) -> _Collected:
        """The first attempt at the round that reaches its quorum; ``quorum.missed`` if none does."""
        spec = self.replica.spec
        needed = federation.sample_size(spec, spec.participants.simulated)
        quorum = federation.quorum_size(spec.round.quorum, needed)
        attempt = 1
        while len((collected := self._attempt(number, attempt, needed)).parts) < quorum:
            if attempt == spec.round.attempts:
                reason = next((error.detail for error in collected.rejected.values()), None)
                raise federation.quorum_missed(number, attempt, len(collected.parts), quorum, reason)
            attempt += 1
        return collected

    def _attempt(self, number: int, attempt: int, needed: int) -> _Collected:
        """Asks the drawn clients in turn until as many as needed have contributed."""
        spec = self.replica.spec
        names = federation.sample(spec, number, federation.client_names(spec.participants.simulated), attempt)
        tasks = federation.round_tasks(spec, EXPERIMENT, number, names, self.replica.digest, attempt=attempt)
        collected = _Collected(len(tasks), {}, {})
        for task in tasks:
            if len(collected.parts) == needed:
                break
            try:
                collected.parts[task.participant] = self._contribute(task)
            except FerretError as error:
                collected.rejected[task.participant] = error
        return collected

    def _contribute(self, task: RoundTask) -> Part:
        name = task.participant
        part = contribute(self.replica, Client(task, self.data.shard(name), self.memories.recall(name)))
        self.memories.keep(name, part.memory)
        return part._replace(memory={})

    def _fold(self, parts: Sequence[Part]) -> dict[str, float]:
        """Moves the model on by the round; returns what the round cost."""
        up, down = [numbers_sent(part.sealed.contribution) for part in parts], self.replica.numbers
        begin = time.perf_counter()
        self.last = self.replica.fold(EXPERIMENT, (part.sealed for part in parts))
        seconds = time.perf_counter() - begin
        return round_cost([part.cost for part in parts], seconds, up, down)

    def _evaluated(self) -> dict[str, float]:
        return evaluate(self.replica.model, self.replica.tokenizer, self.data.test, self.replica.spec.evaluation)
