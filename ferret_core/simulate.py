"""Simulation of a whole experiment in one process, without a server: the service must match it, bit for bit on CPU.

The model is on the device of ``FERRET_DEVICE`` (:mod:`ferret_core.system.device`).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ferret_core import catalog, compatibility
from ferret_core.aggregation.aggregate import aggregate_round
from ferret_core.aggregation.loss_guard import LossGuard
from ferret_core.aggregation.projection_noise import check_base, of_base
from ferret_core.aggregation.statistics.schema import UpdateStatistics
from ferret_core.algorithms.base import Client
from ferret_core.client.hooks import Site
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.client.state import ClientState, StateFolder
from ferret_core.distributed.process_group import current
from ferret_core.evaluation.evaluate import evaluate
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.ledger.record import LedgerEntry, LedgerRecord
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica import checkpoint, tail_averaging
from ferret_core.replica.replica import Replica
from ferret_core.replica.tail_averaging import TailMean
from ferret_core.rounds import early_stopping, sampling
from ferret_core.rounds.cost import numbers_sent, round_cost
from ferret_core.rounds.early_stopping import EarlyStop
from ferret_core.server.norm_clipping import out_of_bounds
from ferret_core.system.device import chosen_device, place
from ferret_core.training.custom_training import CustomTraining

RETRIED = frozenset({"quorum.missed", "round.diverged"})
"""Errors of an attempt at a round that leave the model unchanged, so that another may follow."""


class RoundResult(NamedTuple):
    """One finished round: ``metrics`` hold train_loss, eval_loss and rouge_l (percent) if they were measured.

    ``bytes_up`` and ``bytes_down`` are sums over the round's participants. ``rejected`` has the error of each
    participant that failed or whose contribution was rejected, ``clipped`` the factor of each shortened update.
    ``cost`` is from :func:`ferret_core.rounds.cost.round_cost`; nothing else differs if a simulation is repeated.
    ``statistics`` are those of the round's update; None for the base model.
    """

    number: int
    digest: str
    metrics: dict[str, float]
    bytes_up: int
    bytes_down: int
    accepted: list[str]
    rejected: dict[str, FerretError]
    cost: dict[str, float]
    clipped: dict[str, float]
    statistics: UpdateStatistics | None = None


class SimulationResult(NamedTuple):
    """A finished simulation: its rounds (0 is the base model), its ledger, the final model's digest.

    ``stopped`` is the reason for ending before the last round, if it did.
    """

    rounds: list[RoundResult]
    ledger: list[LedgerRecord]
    digest: str
    stopped: EarlyStop | None = None


def measured(replica: Replica, data: FederatedData) -> dict[str, float]:
    """Evaluates the current model by the specification."""
    spec = replica.spec
    return evaluate(replica.model, replica.tokenizer, data.held_out, spec.evaluation, prompt=spec.prompt)


def simulate(
    spec: ExperimentSpec,
    out: Path | None = None,
    on_round: Callable[[RoundResult], None] | None = None,
    on_update: Callable[[LedgerEntry], None] | None = None,
    participate: Callable[[Replica, Client], LocalRound] = contribute,
    load: Callable[[ExperimentSpec, Any, int], FederatedData] = FederatedData,
    measure: Callable[[Replica, FederatedData], dict[str, float]] = measured,
    site: Site | None = None,
) -> SimulationResult:
    """Runs ``spec`` and writes the final checkpoint to the folder ``out``; raises the error that made it fail.

    ``on_update`` receives each round's update with its record: updates may be as large as the model and are not kept.
    ``participate`` is a client's part in a round; a test can pass a hostile one. ``load`` returns the specification's
    data for a tokenizer and a context, ``measure`` the metrics of the replica's model on them; a caller can cache both
    between simulations. Every client trains and evaluates by the functions of ``site``, if given; raises
    ``training.unsupported`` if the algorithm does not support them. In a team every process calls it, and gets the
    result; raises ``request.invalid`` for a specification that a team cannot train.
    """
    experiment = catalog.resolve(spec)
    spec = experiment.spec
    if site is not None:
        site.require(experiment)
        if current() is not None:
            message = "a site's own functions need the whole model in one process: leave it out, or use one process"
            raise FerretError.of_field("request.invalid", "--site", "", message)
    compatibility.require(experiment, compatibility.SIMULATION, "spec.invalid")
    replica = Replica.load(spec)
    place(replica.model, chosen_device())
    data = load(spec, replica.tokenizer, replica.context)
    rounds: list[RoundResult] = []
    ledger: list[LedgerRecord] = []
    stopped: EarlyStop | None = None
    with tempfile.TemporaryDirectory(prefix="ferret-simulation-") as scratch:
        simulation = _Simulation(replica, data, Path(scratch), participate, measure, site)
        for number in range(spec.rounds + 1):
            rounds.append(simulation.round(number) if number else simulation.base())
            if simulation.last is not None:
                ledger.append(simulation.last.record)
                if on_update is not None:
                    on_update(simulation.last)
            if on_round is not None:
                on_round(rounds[-1])
            if stopped := _stopped(spec, rounds):
                break
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        checkpoint.write(replica, SIMULATION, out)
    return SimulationResult(rounds, ledger, replica.digest, stopped)


def _stopped(spec: ExperimentSpec, rounds: Sequence[RoundResult]) -> EarlyStop | None:
    """Returns the early end, if a further round would otherwise follow."""
    judged = spec.stopping.metric
    values = {done.number: done.metrics[judged] for done in rounds if judged in done.metrics}
    return early_stopping.stop(spec.stopping, values) if len(rounds) <= spec.rounds else None


class _Collected(NamedTuple):
    """Results of an attempt at a round, by participant; ``asked`` is the number of participants with a task."""

    asked: int
    parts: dict[str, LocalRound]
    rejected: dict[str, FerretError]


class _Simulation:
    """The run between two rounds; ``last`` is the last committed round's ledger entry.

    What the clients keep between their rounds lies in the folder ``scratch``: for many clients it is many times the
    model.
    """

    def __init__(
        self,
        replica: Replica,
        data: FederatedData,
        scratch: Path,
        participate: Callable[[Replica, Client], LocalRound],
        measure: Callable[[Replica, FederatedData], dict[str, float]],
        site: Site | None,
    ) -> None:
        self._participate = participate
        self._site = site
        self._measure = measure
        self.replica = replica
        self.data = data
        self._scratch = scratch
        self._states: dict[str, ClientState] = {}
        self.last: LedgerEntry | None = None
        self._statistics: UpdateStatistics | None = None
        self._guard = LossGuard.of(replica, data)
        self._average = TailMean.of(replica.spec)

    def base(self) -> RoundResult:
        check_base(self.replica, self.data)
        noise = of_base(self.replica, self.data)
        expected = noise.metrics(by_block=True) if noise else {}
        metrics = expected | self._measure(self.replica, self.data)
        early_stopping.require_measured(self.replica.spec, metrics)
        return RoundResult(0, self.replica.digest, metrics, 0, 0, [], {}, {}, {})

    def round(self, number: int) -> RoundResult:
        """Returns the first attempt that reaches its quorum and leaves the model intact; raises the last one's error if
        none does."""
        down = len(self.last.update) if self.last else 0
        attempts, rejected = self.replica.spec.round.attempts, dict[str, FerretError]()
        for attempt in range(1, attempts + 1):
            asked, parts, rejected = self._attempt(number, attempt, set(rejected))
            try:
                self._check_quorum(number, attempt, parts, rejected)
                cost, measured = self._aggregate([parts[name] for name in sorted(parts)])
                break
            except FerretError as error:
                if error.code not in RETRIED or attempt == attempts:
                    raise
                rejected |= {name: out_of_bounds(why) for name, why in error.members.get("refused", {}).items()}
        else:
            raise AssertionError("a specification has at least one attempt")
        record = self._last_record()
        rejected |= {name: out_of_bounds(why) for name, _, why in record.refused}
        up = sum(part.sealed.size for part in parts.values())
        parts = {name: part for name, part in parts.items() if name not in rejected}
        for name, digest in record.contributions:
            self._state(name).commit(digest)
        metrics = measured | sampling.mean_metrics({name: part.sealed.meta.metrics for name, part in parts.items()})
        if sampling.evaluation_due(self.replica.spec, number):
            metrics |= self._measure(self.replica, self.data)
            metrics |= tail_averaging.eval_loss(self._average, self.replica, self.data.held_out)
        return RoundResult(
            number,
            self.replica.digest,
            metrics,
            up,
            down * asked,
            sorted(parts),
            rejected,
            cost,
            dict(record.clipped),
            self._statistics,
        )

    def _check_quorum(
        self, number: int, attempt: int, parts: Mapping[str, LocalRound], rejected: Mapping[str, FerretError]
    ) -> None:
        if len(parts) < self._quorum:
            reason = next((error.detail for error in rejected.values()), None)
            raise sampling.quorum_missed(number, attempt, len(parts), self._quorum, reason)

    def _attempt(self, number: int, attempt: int, sitting_out: Collection[str]) -> _Collected:
        """Runs the sampled clients in turn until the needed number has contributed."""
        spec, needed = self.replica.spec, self._needed
        population = sampling.client_names(spec.participants.simulated)
        names = sampling.sample(spec, number, population, attempt, sitting_out)
        tasks = sampling.round_tasks(spec, SIMULATION, number, names, self.replica.digest, attempt=attempt)
        collected = _Collected(len(tasks), {}, {})
        for task in tasks:
            if len(collected.parts) == needed:
                break
            try:
                collected.parts[task.participant] = self._contribute(task)
            except FerretError as error:
                collected.rejected[task.participant] = error
        return collected

    def _contribute(self, task: RoundTask) -> LocalRound:
        name = task.participant
        client = Client(task, self.data.shard(name), self._state(name).load(), own=self._own(name))
        part = self._participate(self.replica, client)
        self._state(name).stage(part.sealed.digest, part.memory)
        return part._replace(memory={})

    def _state(self, participant: str) -> ClientState:
        if participant not in self._states:
            self._states[participant] = ClientState(StateFolder(self._scratch / participant, durable=False))
        return self._states[participant]

    def _own(self, participant: str) -> CustomTraining | None:
        return (
            CustomTraining(self._site, self.data.examples(participant), self.replica.tokenizer) if self._site else None
        )

    def _aggregate(self, parts: Sequence[LocalRound]) -> tuple[dict[str, float], dict[str, float]]:
        """Moves the model by the round; returns the round's costs, and measurements of its update."""
        up, down = [numbers_sent(part.sealed.contribution) for part in parts], self.replica.numbers
        begin = time.perf_counter()
        sealed = [part.sealed for part in parts]
        self.last, noise, self._statistics, guarded = aggregate_round(self.replica, SIMULATION, sealed, self._guard)
        seconds = time.perf_counter() - begin
        cost = round_cost([part.cost for part in parts], seconds, up, down)
        if self._average is not None:
            self._average.update(self.replica)
        guarded |= tail_averaging.development_loss(self._average, self.replica, self._guard.loss)
        return cost, guarded | (noise.metrics(by_block=self.replica.round == 1) if noise else {})

    @property
    def _needed(self) -> int:
        return sampling.sample_size(self.replica.spec, self.replica.spec.participants.simulated)

    @property
    def _quorum(self) -> int:
        return sampling.quorum(self.replica.spec, self._needed)

    def _last_record(self) -> LedgerRecord:
        assert self.last is not None
        return self.last.record
