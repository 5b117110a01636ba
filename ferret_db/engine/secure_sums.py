"""Secure sums: the members' messages of a round, and what each member has to do next.

The deals are collected while the round is open; masked vectors are contributions. Once the round is frozen, the
survivors sign their list, then release their shares. A sum that does not get enough messages in time is abandoned, and
the next attempt has fresh keys.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, RoundState, SumStage
from ferret_core.protocol.task_names import TaskName
from ferret_core.rounds import sampling
from ferret_core.secure.group import Group
from ferret_core.secure.member import encode_signatures
from ferret_core.secure.roster import Roster, in_order
from ferret_core.secure.shares import Deal
from ferret_db import clock
from ferret_db.engine import rounds as round_engine
from ferret_db.engine.assignments import check_held, check_open
from ferret_db.engine.wait_reason import required
from ferret_db.repositories import (
    assignments,
    contributions,
    events,
    experiments,
    outbox,
    rounds,
    secure_sums,
    service_clock,
)
from ferret_db.statements import swap
from ferret_db.tables import Assignment, Experiment, Round

SIGNING = frozenset({SumStage.AGREE, SumStage.RELEASE})


class Step(NamedTuple):
    """A survivor's next message: its signature of the list of ``survivors``, or its shares.

    ``signatures`` has its signatures, place ‖ signature for each, once there are enough.
    """

    assignment_id: str
    round: int
    stage: SumStage
    context: str
    survivors: tuple[str, ...]
    signatures: bytes | None


class _Member(NamedTuple):
    """A member's assignment, with its round and the locked experiment."""

    experiment: Experiment
    assignment: Assignment
    round: Round


class _Short(NamedTuple):
    """A group with ``found`` messages where it needs more."""

    group: int
    found: int
    needed: int


def next_groups(s: Session, experiment: Experiment, names: Collection[str]) -> list[list[str]]:
    """Returns the groups of the next attempt at a secure sum among ``names``, which have one-time keys; none if they
    are too few."""
    if len(names) < required(s, experiment):
        return []
    spec, number = experiments.spec_of(experiment), experiment.round + 1
    attempt = rounds.next_attempt(s, experiment.id, number)
    sitting_out = assignments.sitting_out(s, experiment.id, number, attempt)
    signed = secure_sums.signed_groups(s, experiment.id, number)
    groups = sampling.sum_groups(spec, number, names, attempt, sitting_out, signed)
    return groups if sum(map(len, groups)) >= spec.secure.least else []


def receive_deal(s: Session, assignment_id: str, fence: int, message: bytes) -> None:
    """Records a deal, and gives the lease back until the masked vector is due. The same deal again changes nothing.

    Raises ``secure.shares_invalid`` for a deal that is not signed for the round's roster, ``secure.conflict`` for
    another one than before, ``secure.closed`` after the stage, ``round.closed`` and ``lease.lost``.
    """
    experiment, assignment, round_ = _member(s, assignment_id)
    check_open(experiment, round_)
    name = assignment.participant
    known = secure_sums.messages(s, round_.id, SumStage.DEAL).get(name)
    if known is not None and known != message:
        raise FerretError.of_field("secure.conflict", "participant", name, "has sent another deal before")
    if known is None:
        _require_stage(round_, SumStage.DEAL, name)
        check_held(assignment, fence, clock.now(s))
        Deal.decode(message, secure_sums.roster_with(secure_sums.rosters_of(s, round_.id), name), name)
        _put(s, round_, name, SumStage.DEAL, message)
    if (assignment.state, assignment.fence) == (AssignmentState.LEASED, fence):
        swap(s, assignment, AssignmentState.PENDING, lease_until=None)
    counts = assignments.count_of_round(s, round_.id)
    round_engine.close_if_due(s, experiment, round_, counts, service_clock.time(s))


def delivery(s: Session, assignment_id: str) -> bytes:
    """Returns the shares that the other members dealt to this one; raises ``secure.closed`` before they are
    complete."""
    assignment = assignments.get(s, assignment_id)
    round_ = rounds.get(s, assignment.round_id)
    if round_.stage in {None, SumStage.DEAL}:
        raise _closed(assignment.participant, "shares are not complete yet: poll for the assignment")
    return group_of(s, round_, assignment.participant).delivery(assignment.participant)


def receive_signature(s: Session, assignment_id: str, message: bytes) -> None:
    """Records a survivor's signature. With enough of them the shares are due.

    Raises ``secure.survivors_invalid`` for a signature of another list, and ``secure.closed``.
    """
    experiment, assignment, round_ = _member(s, assignment_id)
    if round_.state != RoundState.FROZEN or round_.stage not in SIGNING:
        raise _closed(assignment.participant, "signature does not belong to this stage")
    name = assignment.participant
    group_of(s, round_, name).add_signature(name, message)
    if name in secure_sums.senders(s, round_.id, SumStage.AGREE):
        return
    _put(s, round_, name, SumStage.AGREE, message)
    if round_.stage == SumStage.AGREE and _short(s, round_) is None:
        signed = len(secure_sums.senders(s, round_.id, SumStage.AGREE))
        rounds.enter(s, round_, SumStage.RELEASE)
        events.add(s, experiment.id, "round.agreed", round=round_.number, data={"signatures": signed})


def receive_shares(s: Session, assignment_id: str, message: bytes) -> None:
    """Records a survivor's shares. With enough of them the masks can be removed, and the aggregation is requested.

    Raises ``secure.shares_invalid``, naming the survivor, for other shares than those dealt to it, and
    ``secure.closed``.
    """
    experiment, assignment, round_ = _member(s, assignment_id)
    name = assignment.participant
    sent = secure_sums.messages(s, round_.id, SumStage.RELEASE).get(name)
    if sent == message:
        return
    if round_.state != RoundState.FROZEN:
        raise _closed(name, "shares do not belong to this stage")
    _require_stage(round_, SumStage.RELEASE, name)
    group_of(s, round_, name).add_shares(name, message)
    _put(s, round_, name, SumStage.RELEASE, message)
    if _short(s, round_) is None:
        released = len(secure_sums.senders(s, round_.id, SumStage.RELEASE))
        rounds.enter(s, round_, SumStage.SUM)
        events.add(s, experiment.id, "round.released", round=round_.number, data={"members": released})
        outbox.add(s, TaskName.AGGREGATE, round_.id, experiment.id)


def group_of(s: Session, round_: Round, name: str) -> Group:
    """Returns the group of the participant with its stored messages, without the masked vectors."""
    return _group(s, round_, secure_sums.roster_with(secure_sums.rosters_of(s, round_.id), name))


def groups_of(s: Session, round_: Round) -> list[Group]:
    """Returns the round's groups as :func:`group_of`."""
    return [_group(s, round_, roster) for roster in secure_sums.rosters_of(s, round_.id)]


def _group(s: Session, round_: Round, roster: Roster) -> Group:
    group = Group(roster)
    for name, message in _messages(s, round_, roster, SumStage.DEAL).items():
        group.add_deal(name, message)
    group.close_dealing()
    group.survivors = in_order(roster, [name for name, _ in contributions.digests_of_round(s, round_.id)])
    for name, message in _messages(s, round_, roster, SumStage.AGREE).items():
        group.add_signature(name, message)
    for name, message in _messages(s, round_, roster, SumStage.RELEASE).items():
        group.add_shares(name, message)
    return group


def _messages(s: Session, round_: Round, roster: Roster, kind: SumStage) -> dict[str, bytes]:
    found = secure_sums.messages(s, round_.id, kind)
    return {name: message for name, message in found.items() if name in roster.names}


def _short(s: Session, round_: Round) -> _Short | None:
    """Returns the first group with too few messages of the round's stage; None if all have enough."""
    assert round_.stage is not None
    sent = secure_sums.senders(s, round_.id, round_.stage)
    for roster in secure_sums.rosters_of(s, round_.id):
        found = len(sent & {*roster.names})
        if found < roster.threshold:
            return _Short(roster.group, found, roster.threshold)
    return None


def pending(s: Session, round_: Round) -> dict[str, Assignment]:
    """Returns the assignments of the survivors that have a message to send in the round's stage, by participant id."""
    if round_.state != RoundState.FROZEN or round_.stage not in SIGNING:
        return {}
    sent = secure_sums.senders(s, round_.id, round_.stage)
    return {
        row.participant_id: row
        for row in assignments.of_round(s, round_.id)
        if row.state == AssignmentState.ACCEPTED and row.participant_id and row.participant not in sent
    }


def steps(s: Session, round_: Round, participant_ids: set[str]) -> dict[str, Step]:
    """Returns the participants' next messages, by their ids."""
    due = {id_: row for id_, row in pending(s, round_).items() if id_ in participant_ids}
    if not due or round_.stage is None:
        return {}
    found = dict[str, Step]()
    arrived = [name for name, _ in contributions.digests_of_round(s, round_.id)]
    for roster in secure_sums.rosters_of(s, round_.id):
        signatures = None
        if round_.stage == SumStage.RELEASE:
            signed = _messages(s, round_, roster, SumStage.AGREE)
            signatures = encode_signatures(roster, {name: message.hex() for name, message in signed.items()})
        found |= {
            id_: Step(row.id, round_.number, round_.stage, roster.context, in_order(roster, arrived), signatures)
            for id_, row in due.items()
            if row.participant in roster.names
        }
    return found


def end_if_overdue(s: Session, round_id: str) -> None:
    """Abandons a frozen secure sum with too few signatures or shares at the end of its stage."""
    experiment = experiments.lock(s, rounds.get(s, round_id).experiment_id)
    round_ = rounds.get(s, round_id)
    if round_.state != RoundState.FROZEN or round_.stage not in SIGNING or round_.stage_until is None:
        return
    if service_clock.time(s) < round_.stage_until:
        return
    if (short := _short(s, round_)) is not None:
        where = f"group {short.group} in attempt {round_.attempt} at round {round_.number}"
        message = f"arrived from {where}, and its sum needs {short.needed}"
        field = _FIELDS[round_.stage]
        round_engine.miss(s, experiment, round_, FerretError.of_field("secure.too_few", field, short.found, message))


_FIELDS = {SumStage.AGREE: "signatures", SumStage.RELEASE: "releases"}


def _member(s: Session, assignment_id: str) -> _Member:
    experiment = experiments.lock(s, assignments.get(s, assignment_id).experiment_id)
    assignment = assignments.get(s, assignment_id, lock=True)
    round_ = rounds.get(s, assignment.round_id)
    if round_.stage is None:
        raise _closed(assignment.participant, "round has no secure sum")
    return _Member(experiment, assignment, round_)


def _put(s: Session, round_: Round, name: str, kind: SumStage, message: bytes) -> None:
    secure_sums.put(s, round_, name, kind, message)
    rounds.add_bytes_up(s, round_, len(message))


def _require_stage(round_: Round, stage: SumStage, name: str) -> None:
    if round_.stage != stage:
        raise _closed(name, f"message does not belong to the stage {round_.stage}")


def _closed(name: str, message: str) -> FerretError:
    return FerretError.of_field("secure.closed", "participant", name, f"its {message}")
