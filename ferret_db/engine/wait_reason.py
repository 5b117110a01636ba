"""The reason that a real participant has no assignment: computed on every request, never stored."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState, SumStage, WaitReason
from ferret_db.repositories import assignments, participants, rounds
from ferret_db.repositories.experiments import spec_of
from ferret_db.tables import Experiment, Round


class WaitStatus(NamedTuple):
    """``done`` of ``total`` have joined or contributed; 0 where nothing is counted, as ``round`` before round 1."""

    awaited: WaitReason
    round: int = 0
    done: int = 0
    total: int = 0


def mark(experiment: Experiment, round_: Round | None) -> str:
    """Returns the version of the experiment and its latest round.

    A participant's next action changes only when this changes or a lease expires. Every transition of either increments
    its version.
    """
    versions = [experiment.version, *([round_.number, round_.attempt, round_.version] if round_ else [])]
    return ".".join(map(str, versions))


def gives_work(experiment: Experiment, round_: Round | None) -> bool:
    """Returns True if the experiment's latest round can be worked on."""
    return round_ is not None and (experiment.state, round_.state) == (ExperimentState.RUNNING, RoundState.OPEN)


def sums_up(experiment: Experiment, round_: Round | None) -> bool:
    """Returns True if the latest round is a secure sum in which the survivors exchange their last messages."""
    if round_ is None or (experiment.state, round_.state) != (ExperimentState.RUNNING, RoundState.FROZEN):
        return False
    return round_.stage in {SumStage.AGREE, SumStage.RELEASE}


def waiting(s: Session, experiment: Experiment, round_: Round | None) -> WaitStatus | None:
    """Returns the wait reason; ``round_`` is the experiment's latest round. None once the experiment is over."""
    if experiment.state.finished:
        return None
    number = experiment.round if round_ is None else round_.number
    if experiment.state == ExperimentState.PAUSED:
        return WaitStatus(WaitReason.RESUMPTION, number)
    if round_ is None:
        joined = participants.count(s, experiment.id)
        missing = joined < experiment.edge_participants
        return (
            WaitStatus(WaitReason.PARTICIPANTS, 0, joined, experiment.edge_participants)
            if missing
            else _next(experiment)
        )
    match round_.state:
        case RoundState.OPEN:
            counts = assignments.count_of_round(s, round_.id)
            return WaitStatus(
                WaitReason.CONTRIBUTIONS,
                number,
                counts.get(AssignmentState.ACCEPTED, 0),
                round_.required_contributions or sum(counts.values()),
            )
        case RoundState.FROZEN:
            return WaitStatus(WaitReason.MODEL, number)
        case _:
            return _next(experiment)


def required(s: Session, experiment: Experiment) -> int:
    """Returns the number of real participants that must have joined for a round to open.

    Before the first round this is all of them. Some may be revoked later: then it is the least number of a secure sum,
    and otherwise one, or none if clients are simulated.
    """
    spec = spec_of(experiment)
    if rounds.latest(s, experiment.id) is None:
        return spec.participants.edge
    return spec.secure.least_summed or (0 if spec.participants.simulated else 1)


def _next(experiment: Experiment) -> WaitStatus:
    if experiment.round == experiment.rounds:
        return WaitStatus(WaitReason.END, experiment.round)
    return WaitStatus(WaitReason.ROUND, experiment.round + 1)
