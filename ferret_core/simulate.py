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
from ferret_core.aggregation.group_sum import GroupSum
from ferret_core.aggregation.loss_guard import LossGuard
from ferret_core.aggregation.masked_sum import sum_in_process
from ferret_core.aggregation.noised_sum import noised_mean, noised_sum, seal_committed
from ferret_core.aggregation.projection_noise import check_base, of_base, participants_of
from ferret_core.aggregation.statistics.schema import UpdateStatistics
from ferret_core.algorithms.base import Client
from ferret_core.client.hooks import Site
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.client.state import ClientState, StateFolder
from ferret_core.distributed.process_group import current
from ferret_core.evaluation.evaluate import evaluate
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.experiment.precision import resolve_precision
from ferret_core.ledger.record import LedgerEntry, LedgerRecord
from ferret_core.privacy.accounting import RecordSpending
from ferret_core.privacy.mechanism import RecordMechanism, RecordPrivacy, calibrated, units_of
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from ferret_core.rounds import early_stopping, sampling
from ferret_core.rounds.cost import numbers_sent, round_cost
from ferret_core.rounds.early_stopping import Decline, EarlyStop
from ferret_core.rounds.sampling import Rejection, SignedGroup
from ferret_core.secure.in_process import Members
from ferret_core.secure.roster import survivors_needed
from ferret_core.server.norm_clipping import out_of_bounds
from ferret_core.system.device import chosen_device, fast_bfloat16, memory_checked, place, require_bfloat16
from ferret_core.training.custom_training import CustomTraining
from ferret_core.training.privacy import ReleasePolicy

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

    ``stopped`` is the reason for ending before the last round, if it did; ``decline`` how the result is worse than it
    need be, if it is.
    """

    rounds: list[RoundResult]
    ledger: list[LedgerRecord]
    digest: str
    stopped: EarlyStop | None = None
    decline: Decline | None = None


def measured(replica: Replica, data: FederatedData) -> dict[str, float]:
    """Evaluates the current model by the specification."""
    spec = replica.spec
    return evaluate(replica.model, replica.tokenizer, data.held_out, spec.evaluation, prompt=spec.prompt)


@memory_checked()
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
    device = chosen_device()
    experiment = resolve_precision(catalog.resolve(spec), fast_bfloat16(device))
    spec = calibrated(experiment.spec, participants_of(experiment.spec))
    experiment = experiment._replace(spec=spec)
    if site is not None:
        site.require(experiment)
        if current() is not None:
            message = "a site's own functions need the whole model in one process: leave it out, or use one process"
            raise FerretError.of_field("request.invalid", "--site", "", message)
    compatibility.require(experiment, compatibility.SIMULATION, "spec.invalid")
    if experiment.traits.first_order is not None:
        require_bfloat16(device, experiment.traits.first_order.precision)
    replica = Replica.load(spec)
    place(replica.model, device)
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
    worse = early_stopping.decline(spec.stopping, _judged(spec, rounds))
    return SimulationResult(rounds, ledger, replica.digest, stopped, worse)


def _stopped(spec: ExperimentSpec, rounds: Sequence[RoundResult]) -> EarlyStop | None:
    """Returns the early end, if a further round would otherwise follow."""
    return early_stopping.stop(spec.stopping, _judged(spec, rounds)) if len(rounds) <= spec.rounds else None


def _judged(spec: ExperimentSpec, rounds: Sequence[RoundResult]) -> dict[int, float]:
    """Returns the values by round of the metric that ranks rounds."""
    judged = spec.stopping.metric
    return {done.number: done.metrics[judged] for done in rounds if judged in done.metrics}


def _units(spec: ExperimentSpec, data: FederatedData) -> dict[str, Sequence[Sequence[int]]]:
    """Returns the positions of each protected unit's examples, by client; raises as :func:`units_of`."""
    return {
        name: units_of([example.unit for example in data.examples(name)], spec)
        for name in sampling.client_names(spec.participants.simulated)
    }


class _Collected(NamedTuple):
    """Results of an attempt at a round, by participant, the tasks of all participants, and the groups of a secure
    sum."""

    groups: list[list[str]]
    tasks: list[RoundTask]
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
        self._spent: dict[str, RecordSpending] = {}
        self._units = _units(replica.spec, data) if replica.spec.privacy.of_records else {}
        self.last: LedgerEntry | None = None
        self._statistics: UpdateStatistics | None = None
        self._guard = LossGuard.of(replica, data)
        secure = replica.spec.secure
        self._members = Members(secure.least, secure.colluders) if secure.masked else None

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
        signed = list[list[SignedGroup]]()
        for attempt in range(1, attempts + 1):
            collected = self._attempt(number, attempt, set(rejected), signed)
            groups, tasks, parts, rejected = collected
            try:
                self._check_quorum(number, attempt, collected)
                signed.append([SignedGroup(tuple(group), {*group} & {*parts}) for group in groups])
                sums = self._sums(attempt, collected)
                cost, measured = self._aggregate([parts[name] for name in sorted(parts)], sums)
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
        for name, part in parts.items():
            self._state(name).commit(part.sealed.digest)
        reported = {name: part.sealed.meta.metrics for name, part in parts.items()}
        if sums:
            counted = {group.name for group in record.groups if group.refused is None}
            reported = {one.name: one.sealed.meta.metrics for one in sums if one.name in counted}
            up = sum(one.bytes_up for one in sums)
        metrics = measured | sampling.mean_metrics(reported) | self._privacy_metrics()
        if sampling.evaluation_due(self.replica.spec, number):
            metrics |= self._measure(self.replica, self.data)
        return RoundResult(
            number,
            self.replica.digest,
            metrics,
            up,
            down * len(tasks),
            sorted(parts),
            rejected,
            cost,
            record.factors,
            self._statistics,
        )

    def _check_quorum(self, number: int, attempt: int, collected: _Collected) -> None:
        parts, reasons = collected.parts, [Rejection(each.code, each.detail) for each in collected.rejected.values()]
        if len(parts) < self._quorum:
            raise sampling.quorum_missed(number, attempt, len(parts), self._quorum, reasons)
        secure = self.replica.spec.secure
        for group in collected.groups:
            there, needed = len({*group} & {*parts}), survivors_needed(len(group), secure.least, secure.colluders)
            if there < needed:
                raise sampling.quorum_missed(number, attempt, there, needed, reasons)

    def _sums(self, attempt: int, collected: _Collected) -> list[GroupSum]:
        """Returns the sum of each group under masks, or that with central noise; none if the server uses each
        contribution."""
        groups, tasks, parts, _ = collected
        if self.replica.spec.privacy.central:
            return [self._noised(attempt, tasks[0], parts)]
        sums, members = list[GroupSum](), self._members
        for group, names in enumerate(groups, start=1):
            assert members is not None
            sealed = {name: parts[name].sealed for name in names if name in parts}
            sums.append(sum_in_process(self.replica, members, tasks[0], attempt, names, sealed, group))
        return sums

    def _noised(self, attempt: int, task: RoundTask, parts: Mapping[str, LocalRound]) -> GroupSum:
        """Returns the sum of the contributions with central noise; ``task`` is that of any participant."""
        sent = {name: seal_committed(self.replica, task, part.sealed) for name, part in sorted(parts.items())}
        noised = noised_sum(self.replica, task, [each.blob for each in sent.values()])
        digests = {name: each.digest for name, each in sent.items()}
        up = sum(each.size for each in sent.values())
        return noised_mean(self.replica, task, attempt, noised, digests)._replace(bytes_up=up)

    def _attempt(
        self, number: int, attempt: int, sitting_out: Collection[str], signed: Sequence[Sequence[SignedGroup]]
    ) -> _Collected:
        """Runs the sampled clients in turn until the needed number has contributed."""
        spec, needed, groups = self.replica.spec, self._needed, list[list[str]]()
        population = sampling.client_names(spec.participants.simulated)
        if spec.secure.masked:
            groups = sampling.sum_groups(spec, number, population, attempt, sitting_out, signed)
            names = [name for group in groups for name in group]
        else:
            names = sampling.sample(spec, number, population, attempt, sitting_out)
        tasks = sampling.round_tasks(spec, SIMULATION, number, names, self.replica.digest, attempt=attempt)
        collected = _Collected(groups, tasks, {}, {})
        for task in tasks:
            if len(collected.parts) == needed:
                break
            try:
                collected.parts[task.participant] = self._contribute(task, len(tasks))
            except FerretError as error:
                if error.code == "memory.exhausted":
                    raise  # the clients share this machine
                collected.rejected[task.participant] = error
        return collected

    def _contribute(self, task: RoundTask, members: int) -> LocalRound:
        name = task.participant
        client = Client(task, self.data.shard(name), self._state(name).load(), own=self._own(name))
        if self.replica.spec.privacy.of_records:
            client = self._protected(client, members)
        part = self._participate(self.replica, client)
        self._state(name).stage(part.sealed.digest, part.memory)
        return part._replace(memory={})

    def _protected(self, client: Client, members: int) -> Client:
        """Returns the client with noise for its records; its ε counts before it draws a unit, as at a real site."""
        spec, name = self.replica.spec, client.task.participant
        privacy, mechanism = spec.privacy, RecordMechanism.of(spec, members)
        spent = self._spent.get(name, RecordSpending()).and_one(mechanism.rate, mechanism.noise_multiplier)
        assert privacy.epsilon is not None
        spent.require(privacy.epsilon, privacy.delta)
        self._spent[name] = spent
        only_noised = ReleasePolicy(metrics=frozenset(), examples=False)
        return client._replace(record=RecordPrivacy(mechanism, self._units[name]), discretion=only_noised)

    def _privacy_metrics(self) -> dict[str, float]:
        """Returns the largest ε that a client has spent, if records are protected."""
        delta = self.replica.spec.privacy.delta
        return {"epsilon": max(each.epsilon(delta) for each in self._spent.values())} if self._spent else {}

    def _state(self, participant: str) -> ClientState:
        if participant not in self._states:
            self._states[participant] = ClientState(StateFolder(self._scratch / participant, durable=False))
        return self._states[participant]

    def _own(self, participant: str) -> CustomTraining | None:
        return (
            CustomTraining(self._site, self.data.examples(participant), self.replica.tokenizer) if self._site else None
        )

    def _aggregate(
        self, parts: Sequence[LocalRound], sums: Sequence[GroupSum]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Moves the model by the round; returns the round's costs, and measurements of its update."""
        up, down = [numbers_sent(part.sealed.contribution) for part in parts], self.replica.numbers
        begin = time.perf_counter()
        sealed = [one.sealed for one in sums] or [part.sealed for part in parts]
        self.last, noise, self._statistics, guarded = aggregate_round(
            self.replica, SIMULATION, sealed, self._guard, sums=sums
        )
        seconds = time.perf_counter() - begin
        cost = round_cost([part.cost for part in parts], seconds, up, down)
        return cost, guarded | (noise.metrics(by_block=self.replica.round == 1) if noise else {})

    @property
    def _needed(self) -> int:
        return self.replica.spec.participants.sample_size(self.replica.spec.participants.simulated)

    @property
    def _quorum(self) -> int:
        return sampling.quorum(self.replica.spec, self._needed)

    def _last_record(self) -> LedgerRecord:
        assert self.last is not None
        return self.last.record
