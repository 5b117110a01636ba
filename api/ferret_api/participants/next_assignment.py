"""The next step of participants that poll for work: their leases, or what they wait for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_api.access import Identity, identity
from ferret_api.batching import attempt
from ferret_api.context import Context
from ferret_api.participants import contribution_requirements
from ferret_api.participants.long_poll_group import PollTag
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Lease, NextAssignment, SumStep, SumTask, Waiting
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import ExperimentState, SumStage, WaitReason
from ferret_core.secure.roster import Roster
from ferret_db import tables
from ferret_db.engine import assignments as leases
from ferret_db.engine import secure_sums
from ferret_db.engine.secure_sums import Step
from ferret_db.engine.wait_reason import WaitStatus as Waited
from ferret_db.engine.wait_reason import gives_work, mark, sums_up, waiting
from ferret_db.repositories import assignments, experiments, participants, rounds
from ferret_db.repositories import secure_sums as stock

REMEMBERED = 4096
_known: dict[str, bool] = {}
LOOK_AGAIN_SECONDS = 1.0
"""Retry interval if another poll with the same token took the lease at the same moment."""


class Found(NamedTuple):
    """The next step of a ``participant``, read from the database.

    ``rest`` is the remaining time of the lease in seconds, earlier or new; None without work. ``step`` is its next
    message in a secure sum, ``prekeys`` the number of its unused keys for them."""

    participant: Identity
    tag: PollTag
    state: ExperimentState
    lease: Lease | None
    waiting: Waited | None
    rest: float | None
    step: Step | None = None
    prekeys: int | None = None

    def body(self, pause: float) -> NextAssignment:
        """Returns the response body, with the next poll after ``pause`` seconds."""
        return NextAssignment(
            experiment_state=self.state,
            retry_after_seconds=pause,
            assignment=self.lease,
            waiting=self.waiting and Waiting.model_validate(self.waiting._asdict()),
            step=self.step and _shown(self.step),
            prekeys=self.prekeys,
        )


def ask_all(context: Context, tokens: Sequence[str]) -> list[Found | FerretError]:
    """Returns the next step, or the error, for each token. Only polls that find work write to the database."""
    with context.database.read() as s:
        askers = _askers(context, participants.by_tokens(s, tokens), tokens)
        who = {asker.id: asker for asker in askers if isinstance(asker, Identity)}
        stands = rounds.with_latest(s, {asker.experiment_id for asker in who.values()})
        working = {round_.id for experiment, round_ in stands.values() if round_ and gives_work(experiment, round_)}
        due = assignments.next_for(s, who) if working else {}
        idle = who.keys() - due.keys()
        leased = assignments.seconds_leased(s, working, idle) if working and idle else {}
        masked = {id_ for id_, (experiment, _) in stands.items() if _is_masked(experiment)}
        members = {id_ for id_, asker in who.items() if asker.experiment_id in masked and not asker.pending}
        unused = stock.unused(s, members)
        next_messages = dict[str, Step]()
        for experiment, round_ in stands.values():
            if round_ is not None and sums_up(experiment, round_):
                next_messages |= secure_sums.steps(s, round_, set(idle))
        awaited = {id_: waiting(s, *stands[id_]) for id_ in {who[asker].experiment_id for asker in idle}}
        context.pace.count(s)
    given = _lease_all(context, due) if due else {}

    def found(asker: Identity) -> Found:
        experiment, round_ = stands[asker.experiment_id]
        return Found(
            participant=asker,
            tag=PollTag(experiment.last_event_seq, mark(experiment, round_)),
            state=experiment.state,
            lease=given.pop(asker.id, None),  # if a participant sent two polls, the first gets the lease
            waiting=None if asker.id in due else approved(asker, awaited[experiment.id]),
            rest=LOOK_AGAIN_SECONDS if asker.id in due else leased.get(asker.id),
            step=next_messages.get(asker.id),
            prekeys=unused.get(asker.id),
        )

    return [found(asker) if isinstance(asker, Identity) else asker for asker in askers]


def recognise_all(context: Context, tokens: Sequence[str]) -> list[Identity | FerretError]:
    """Returns the participant, approved or pending, or the error, for each token."""
    with context.database.read() as s:
        return _askers(context, participants.by_tokens(s, tokens), tokens)


def _askers(
    context: Context, known: Mapping[str, tables.Participant], tokens: Sequence[str]
) -> list[Identity | FerretError]:
    return [attempt(lambda token: identity(context, token, known.get(token)), token) for token in tokens]


def approved(participant: Identity, awaited: Waited | None) -> Waited | None:
    """Returns ``awaited``, or approval for a pending participant of an unfinished experiment."""
    return Waited(WaitReason.APPROVAL) if participant.pending and awaited is not None else awaited


def _lease_all(context: Context, due: Mapping[str, str]) -> dict[str, Lease]:
    seconds = context.settings.lease_seconds
    with context.database.begin() as s:
        participants.seen(s, due)
        leased = leases.lease_all(s, due.values(), seconds)
        sizes = {
            row.id: contribution_requirements.of(row).size.total for row in experiments.of_assignments(s, [*leased])
        }
        sums = _sums(s, leased.values())
    return {
        row.participant_id: Lease(
            id=row.id,
            fence=row.fence,
            lease_seconds=seconds,
            lease_until=row.lease_until,
            task=RoundTask.model_validate(row.task),
            part_bytes=context.settings.part_bytes if sizes[row.experiment_id] > context.settings.part_bytes else None,
            sum=sums.get(row.id),
        )
        for row in leased.values()
        if row.participant_id and row.lease_until
    }


def _sums(s: Session, leased: Collection[tables.Assignment]) -> dict[str, SumTask]:
    """Returns, by assignment, what the rounds that are secure sums need now of a participant with a lease."""
    found = {round_id: rounds.get(s, round_id) for round_id in {row.round_id for row in leased}}
    stages = {id_: round_.stage for id_, round_ in found.items() if round_.stage is not None}
    rosters = stock.rosters(s, stages) if stages else {}

    def task(round_id: str, roster: Roster) -> SumTask:
        stage = SumStage.DEAL if stages[round_id] == SumStage.DEAL else SumStage.MASK
        shown = roster.model_dump(mode="json") if stage == SumStage.DEAL else None
        return SumTask(stage=stage, context=roster.context, roster=shown)

    return {
        row.id: task(row.round_id, stock.roster_with(rosters[row.round_id], row.participant))
        for row in leased
        if row.round_id in rosters
    }


def _is_masked(experiment: tables.Experiment) -> bool:
    """Returns True if the experiment's rounds are secure sums, which never changes. Loads the specification once."""
    if experiment.id not in _known:
        if len(_known) >= REMEMBERED:
            _known.clear()
        _known[experiment.id] = experiments.spec_of(experiment).secure.masked
    return _known[experiment.id]


def _shown(step: Step) -> SumStep:
    signatures = None if step.signatures is None else step.signatures.hex()
    return SumStep(
        assignment=step.assignment_id,
        round=step.round,
        stage=SumStage.AGREE if step.stage == SumStage.AGREE else SumStage.RELEASE,
        context=step.context,
        survivors=step.survivors,
        signatures=signatures,
    )
