"""A whole experiment in one process, with no server: the oracle that the service must equal, bit for bit on CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ferret_core import catalog, checkpoint, federation
from ferret_core.evaluation.evaluate import evaluate
from ferret_core.federated_data import FederatedData
from ferret_core.ledger import LedgerEntry
from ferret_core.participant import contribute
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Contribution
from ferret_core.replica import Replica

EXPERIMENT = "simulation"


class RoundResult(NamedTuple):
    """One round as it ended: ``metrics`` hold train_loss, eval_loss and rouge_l (percent) as far as they were taken.

    ``bytes_up`` and ``bytes_down`` are sums over the round's participants; ``rejected`` says why, by participant.
    """

    number: int
    digest: str
    metrics: dict[str, float]
    bytes_up: int
    bytes_down: int
    accepted: list[str]
    rejected: dict[str, FerretError]


class SimulationResult(NamedTuple):
    """A finished simulation: its rounds (0 is the base model), its ledger, the final model's digest."""

    rounds: list[RoundResult]
    ledger: list[LedgerEntry]
    digest: str


def simulate(
    spec: ExperimentSpec, out: Path | None = None, on_round: Callable[[RoundResult], None] | None = None
) -> SimulationResult:
    """Runs ``spec`` and writes the final checkpoint to the folder ``out``; raises what made it fail."""
    spec = catalog.resolve(spec)
    if spec.participants.edge:
        raise FerretError.of_field(
            "spec.invalid", "participants.edge", spec.participants.edge, "a simulation has no real participants; use 0"
        )
    replica = Replica.load(spec)
    data = FederatedData(spec, replica.tokenizer, replica.context)
    rounds: list[RoundResult] = []
    ledger: list[LedgerEntry] = []
    for number in range(spec.rounds + 1):
        rounds.append(_round(replica, data, number, ledger) if number else _base(replica, data))
        if on_round is not None:
            on_round(rounds[-1])
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        checkpoint.write(replica, EXPERIMENT, out)
    return SimulationResult(rounds, ledger, replica.digest)


def _base(replica: Replica, data: FederatedData) -> RoundResult:
    return RoundResult(0, replica.digest, _evaluated(replica, data), 0, 0, [], {})


def _round(replica: Replica, data: FederatedData, number: int, ledger: list[LedgerEntry]) -> RoundResult:
    spec = replica.spec
    participants = federation.sample(spec, number, federation.client_names(spec.participants.simulated))
    blobs: dict[str, bytes] = {}
    rejected: dict[str, FerretError] = {}
    for task in federation.round_tasks(spec, EXPERIMENT, number, participants, replica.digest):
        try:
            blobs[task.participant] = contribute(replica, data.shard(task.participant), task).encode()
        except FerretError as error:
            rejected[task.participant] = error
    if len(blobs) < federation.quorum_size(spec.round.quorum, len(participants)):
        raise federation.quorum_missed(number, len(blobs), len(participants), list(rejected.values()))
    received = {name: Contribution.decode(blob) for name, blob in blobs.items()}
    down = len(ledger[-1].update) if ledger else 0
    folding = ((digest_bytes(blobs[name]), received[name]) for name in sorted(blobs))
    record, update = replica.fold(EXPERIMENT, folding, ledger[-1].hash if ledger else "")
    ledger.append(LedgerEntry(record, record.hash, update))
    metrics = federation.mean_metrics({name: one.meta.metrics for name, one in received.items()})
    if federation.evaluation_due(spec, number):
        metrics |= _evaluated(replica, data)
    return RoundResult(
        number, record.digest, metrics, sum(map(len, blobs.values())), down * len(participants), sorted(blobs), rejected
    )


def _evaluated(replica: Replica, data: FederatedData) -> dict[str, float]:
    return evaluate(replica.model, replica.tokenizer, data.test, replica.spec.evaluation)
