"""``coordinate``: takes the next step of an experiment that is due, or does nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy.orm import Session

from ferret_core import catalog
from ferret_core.aggregation.group_sum import summation_of
from ferret_core.aggregation.masked_sum import spec_digest
from ferret_core.aggregation.projection_noise import check_base
from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.experiment.precision import resolve_precision
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import ExperimentState, ParticipantKind, RoundState
from ferret_core.protocol.task_names import Queue
from ferret_core.rounds import deadline, sampling
from ferret_core.secure.roster import Origin, Roster, RosterMember
from ferret_core.system.device import fast_bfloat16, memory_checked
from ferret_core.system.failpoints import failpoint
from ferret_db.database import Database
from ferret_db.engine import early_stopping, lifecycle, secure_sums
from ferret_db.engine import rounds as round_engine
from ferret_db.engine.round_span import trace_of
from ferret_db.engine.task_attempts import TRANSIENT
from ferret_db.engine.wait_reason import required
from ferret_db.repositories import assignments, experiments, ledger, metrics, participants, rounds, workers
from ferret_db.repositories import secure_sums as stock
from ferret_db.tables import Experiment, Round
from ferret_runtime import tracing
from ferret_runtime.tracing import RoundTrace
from ferret_worker.storage import store_base
from ferret_worker.worker_state import WorkerState

OPENED_AT_ONCE = 250
"""Assignments per transaction: a round with more participants is opened in several."""
BASE_REMEDY = "use a smaller model or less data, or a machine with more memory"


def coordinate(context: WorkerState, experiment_id: str) -> None:
    """Starts a queued experiment from its base model; opens a running one's next round, or completes it."""
    with context.database.read() as s:
        experiment = experiments.get(s, experiment_id)
    failpoint("coordinate.begun")
    if experiment.state == ExperimentState.QUEUED:
        _start(context, experiment)
    with context.database.begin() as s:
        advance(s, experiment_id)
    open_announced(context.database, experiment_id)


def open_announced(database: Database, experiment_id: str) -> None:
    """Fills the experiment's opening round, if it has one, with a few assignments per transaction, and opens it.

    A process that finds it half filled continues: the participants follow from the round alone.
    """
    with database.read() as s:
        experiment = experiments.get(s, experiment_id)
        opening = rounds.in_states(s, experiment_id, RoundState.OPENING)
        if not opening or experiment.state != ExperimentState.RUNNING:
            return
        (round_,) = opening
        joined = {site.name: site.id for site in participants.ever_of_experiment(s, experiment_id)}
        there = assignments.participants(s, round_.id)
        sitting_out = assignments.sitting_out(s, experiment_id, round_.number, round_.attempt)
    failpoint("coordinate.announced")
    population = {name: joined[name] for name in round_.population or []}
    spec = experiments.spec_of(experiment)
    tasks = _tasks(spec, experiment, round_.number, round_.attempt, population, sitting_out)
    with tracing.span("fill", trace_of(round_), asked=len(tasks)):
        _fill(database, spec, round_, tasks, there)


def _fill(
    database: Database, spec: ExperimentSpec, round_: Round, tasks: list[round_engine.Task], there: Collection[str]
) -> None:
    rows = round_engine.assignment_rows(round_, tasks)
    missing = [row for row in rows if row["participant"] not in there]
    for begin in range(0, len(missing), OPENED_AT_ONCE):
        with database.begin(flush=False) as s:
            if not round_engine.fill_round(s, round_, missing[begin : begin + OPENED_AT_ONCE]):
                return
        failpoint("coordinate.filled")
    with database.begin() as s:
        needed = round_.required_contributions or len(tasks)
        seconds = _deadline(s, spec, round_.attempt, needed, len(tasks), round_.experiment_id)
        round_engine.open_announced(s, round_.id, len(tasks), seconds)
    failpoint("coordinate.opened")


def _start(context: WorkerState, experiment: Experiment) -> None:
    """Loads model and data once, so that errors in them fail the experiment now and not halfway."""
    try:
        spec = _with_precision(context, experiments.spec_of(experiment))
        with memory_checked(BASE_REMEDY):
            replica, files = store_base(context.storage, spec, experiment.id)
            check_base(replica, FederatedData(spec, replica.tokenizer, replica.context))
    except FerretError as error:
        if error.code in TRANSIENT:
            raise
        with context.database.begin() as s:
            lifecycle.fail(s, experiment.id, error)
        return
    context.keep_base(experiment.id, replica, sum(file.size for file in files))
    failpoint("coordinate.prepared")
    with context.database.begin() as s:
        lifecycle.start(s, experiment.id, replica.digest, replica.shapes, files, replica.spec)
    failpoint("coordinate.started")


def _with_precision(context: WorkerState, spec: ExperimentSpec) -> ExperimentSpec:
    """Returns ``spec`` with a precision that suits the workers that train, or this one while no worker trains."""
    with context.database.read() as s:
        found = workers.quick_at_bfloat16(s, Queue.TRAIN)
    quick = fast_bfloat16(context.device) if found is None else found
    return resolve_precision(ResolvedExperiment.of(spec), quick).spec


def advance(s: Session, experiment_id: str) -> None:
    """Takes the step that is due for a running experiment: closes its round, opens the next one, or completes it.

    With early stopping it first waits for the last round's evaluation.
    """
    experiment = experiments.lock(s, experiment_id)
    if experiment.state != ExperimentState.RUNNING:
        return
    if under_way := rounds.in_states(s, experiment.id, RoundState.OPEN, RoundState.FROZEN):
        for round_ in under_way:
            round_engine.freeze_if_due(s, round_.id)
            secure_sums.end_if_overdue(s, round_.id)
    elif early_stopping.judged(experiment) and not _evaluated(s, experiment):
        return
    elif stop := early_stopping.stop(s, experiment):
        lifecycle.complete(s, experiment.id, stop)
    elif experiment.round < experiment.rounds:
        _open_round(s, experiment, experiment.round + 1)
    elif _evaluated(s, experiment):
        lifecycle.complete(s, experiment.id)


def _open_round(s: Session, experiment: Experiment, number: int) -> None:
    """The first round waits until all have joined; later rounds do without revoked ones, not without any."""
    spec = experiments.spec_of(experiment)
    joined = {site.name: site.id for site in participants.of_experiment(s, experiment.id)}
    keys = stock.stocked(s, experiment.id) if spec.secure.masked else {}
    if spec.secure.masked:  # a site without a one-time key is away, or has not begun
        joined = {name: joined[name] for name in joined.keys() & keys.keys()}
    population = spec.participants.simulated + len(joined)
    if len(joined) < required(s, experiment):
        return
    bytes_down = ledger.get(s, experiment.id, number - 1).update_size if number > 1 else 0
    needed, asked = spec.participants.sample_size(population), sampling.invited_count(spec, population)
    attempt = rounds.next_attempt(s, experiment.id, number)
    with tracing.span("open", RoundTrace(experiment.id, number, attempt), asked=asked):
        seconds = _deadline(s, spec, attempt, needed, asked, experiment.id)
        if population > OPENED_AT_ONCE and not spec.secure.masked:
            round_engine.announce_round(s, experiment.id, number, list(joined), seconds, bytes_down * asked, needed)
            return
        if not spec.secure.masked:
            sitting_out = assignments.sitting_out(s, experiment.id, number, attempt)
            tasks = _tasks(spec, experiment, number, attempt, joined, sitting_out)
            round_engine.open_round(s, experiment.id, number, tasks, seconds, bytes_down, needed)
            return
        groups = secure_sums.next_groups(s, experiment, joined)
        if not groups:
            return  # until more sites have one-time keys
        tasks = _tasks(spec, experiment, number, attempt, joined, (), [name for group in groups for name in group])
        rosters = [
            _roster(s, spec, experiment, attempt, tasks[0][0], place, [keys[name] for name in group])
            for place, group in enumerate(groups, start=1)
        ]
        round_engine.open_round(s, experiment.id, number, tasks, seconds, bytes_down, needed, rosters)


def _roster(
    s: Session,
    spec: ExperimentSpec,
    experiment: Experiment,
    attempt: int,
    task: RoundTask,
    group: int,
    members: Collection[RosterMember],
) -> Roster:
    """Returns the roster of the members of a ``group``; ``task`` is that of any member of the round."""
    resolved = ResolvedExperiment.of(spec)
    sums = summation_of(resolved, catalog.algorithm(resolved), len(members), task.round)
    shapes = {name: tuple(shape) for name, shape in sorted((experiment.shapes or {}).items())}
    return Roster(
        origin=Origin(
            experiment=experiment.id,
            round=task.round,
            attempt=attempt,
            spec=spec_digest(spec),
            base_digest=task.base_digest,
            previous=ledger.get(s, experiment.id, task.round - 1).hash if task.round > 1 else "",
            round_seed=task.round_seed,
        ),
        group=group,
        members=tuple(sorted(members, key=lambda member: member.name)),
        least=spec.secure.least,
        colluders=spec.secure.colluders,
        segments=tuple(sums.segments(shapes)),
    )


def _deadline(s: Session, spec: ExperimentSpec, attempt: int, needed: int, asked: int, experiment_id: str) -> float:
    """Only real participants' past arrivals count: simulated clients depend on this service's pace alone."""
    if spec.round.deadline_seconds is not None:
        return spec.round.deadline_seconds
    arrivals = rounds.arrivals(s, experiment_id, deadline.RECENT_ROUNDS) if spec.participants.edge else []
    return deadline.adaptive(arrivals, sampling.quorum(spec, needed) / asked, attempt)


def _tasks(
    spec: ExperimentSpec,
    experiment: Experiment,
    number: int,
    attempt: int,
    joined: Mapping[str, str],
    sitting_out: Collection[str],
    names: Sequence[str] | None = None,
) -> list[round_engine.Task]:
    """``joined`` has real participants' ids by name, ``names`` are the participants; default: a sample."""
    population = [*sampling.client_names(spec.participants.simulated), *joined]
    if names is None:
        names = sampling.sample(spec, number, population, attempt, sitting_out)
    base = experiment.digest or ""
    return [
        (
            task,
            ParticipantKind.EDGE if task.participant in joined else ParticipantKind.SIMULATED,
            joined.get(task.participant),
        )
        for task in sampling.round_tasks(spec, experiment.id, number, names, base, len(population), attempt)
    ]


def _evaluated(s: Session, experiment: Experiment) -> bool:
    return bool(metrics.by_round(s, experiment.id, [0])) and not rounds.unevaluated(s, experiment)
