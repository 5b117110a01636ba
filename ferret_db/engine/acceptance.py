"""Contributions are accepted: many in one transaction, each for itself, and their rounds close when they are due."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_core.contribution import SealedContribution
from ferret_core.ledger.record import Signature
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, SumStage, may_move
from ferret_core.rounds.cost import LocalCost
from ferret_db.engine.assignments import check_held, check_open
from ferret_db.engine.rounds import close_if_due
from ferret_db.repositories import assignments, contributions, events, experiments, rounds, service_clock
from ferret_db.repositories.contributions import Key
from ferret_db.repositories.events import NewEvent
from ferret_db.tables import Assignment, Contribution, Experiment, Round


class ContributionOffer(NamedTuple):
    """A contribution for an assignment that ``fence`` holds; its bytes are stored.

    ``memory_digest`` names what a simulated client keeps, which counts from the round's commit on. ``signature`` is a
    real participant's, verified.
    """

    assignment_id: str
    fence: int
    sealed: SealedContribution
    cost: LocalCost
    memory_digest: str | None = None
    idempotency_key: str | None = None
    signature: Signature | None = None


class ContributionTarget(NamedTuple):
    """An assignment with all that decides whether a contribution to it can be accepted, as it stood at ``now``.

    ``recorded`` is what has been accepted for it.
    """

    experiment: Experiment
    assignment: Assignment
    round: Round
    recorded: Contribution | None
    now: datetime

    def check_held(self, fence: int) -> None:
        """Raises ``round.closed`` or ``lease.lost`` unless the round is open and ``fence`` holds the assignment, and
        ``secure.closed`` while a secure sum waits for deals."""
        check_open(self.experiment, self.round)
        if self.round.stage == SumStage.DEAL:
            name = self.assignment.participant
            message = "cannot send a masked vector yet: poll until all have dealt"
            raise FerretError.of_field("secure.closed", "participant", name, message)
        check_held(self.assignment, fence, self.now)

    def check_first(self, digest: str) -> None:
        """Raises ``contribution.duplicate`` where another contribution than that with the digest has been accepted."""
        if (recorded := self.recorded) is not None and recorded.digest != digest:
            message = f"{recorded.participant} already delivered {recorded.digest} for round {recorded.round}"
            raise FerretError.of_field("contribution.duplicate", "digest", digest, message)

    def check(self, offer: ContributionOffer, used: Contribution | None = None) -> None:
        """Raises what :func:`accept_all` answers to the offer, where that does not depend on other contributions to the
        round. ``used`` is another contribution that was accepted under the same key."""
        key, digest, recorded = offer.idempotency_key, offer.sealed.digest, self.recorded
        used = recorded if recorded is not None and key is not None and recorded.idempotency_key == key else used
        if used is not None:
            message = (
                f"was used with {used.digest} for round {used.round} and now with {digest}; use a new key for each"
            )
            raise FerretError.of_field("idempotency.conflict", "Idempotency-Key", key, f"{message} upload")
        self.check_first(digest)
        self.check_held(offer.fence)
        if (given := offer.sealed.meta.base_digest) != (base := self.round.base_digest):
            message = f"round {self.round.number} starts from {base}: resync, rebuild the model from the ledger"
            raise FerretError.of_field("contribution.wrong_base", "base_digest", given, message)


def find_targets(s: Session, assignment_ids: Iterable[str], *, lock: bool = False) -> dict[str, ContributionTarget]:
    """Returns the existing assignments by id; ``lock`` blocks changes to them until the transaction ends."""
    ids = sorted(set(assignment_ids))
    of = {experiment.id: experiment for experiment in experiments.of_assignments(s, ids, lock=lock)}
    found = assignments.with_results(s, ids, lock=lock)
    return {row.assignment.id: ContributionTarget(of[row.assignment.experiment_id], *row) for row in found}


def accept(s: Session, offer: ContributionOffer) -> Contribution:
    """The one contribution, as :func:`accept_all` accepts it; raises the error if it does not."""
    (accepted,) = accept_all(s, [offer])
    if isinstance(accepted, FerretError):
        raise accepted
    return accepted


def accept_all(s: Session, offers: Sequence[ContributionOffer]) -> list[Contribution | FerretError]:
    """Records the contributions as if one came after the other, and freezes a round with the last one that it needs.

    The same contribution again gives what is recorded. The errors are ``assignment.not_found``,
    ``idempotency.conflict`` where the participant used the key for another one, ``contribution.duplicate`` for another
    one, ``round.closed``, ``lease.lost``, and ``contribution.wrong_base``.
    """
    answers, left = dict[int, Contribution | FerretError](), dict(enumerate(offers))
    while left:
        answers |= _accept_some(s, left)
        left = {place: offer for place, offer in left.items() if place not in answers}
    return [answers[place] for place in range(len(offers))]


def _accept_some(s: Session, offers: Mapping[int, ContributionOffer]) -> dict[int, Contribution | FerretError]:
    """Answers one at least, and leaves out those whose answer depends on another one's being recorded."""
    found, keyed = _looked_up(s, offers.values())
    counts = assignments.count_of_rounds(s, {target.round.id for target in found.values()})
    room = {target.round.id: _room(target.round, counts[target.round.id]) for target in found.values()}
    answers, rows = dict[int, Contribution | FerretError](), dict[int, Contribution]()
    senders = set[tuple[str, str]]()
    for place, offer in offers.items():
        target = found.get(offer.assignment_id)
        if target is not None and target.recorded is not None and target.recorded.digest == offer.sealed.digest:
            answers[place] = target.recorded
        elif (problem := _problem(target, offer, keyed)) is not None:
            answers[place] = problem
        elif target is not None and _sender(target) not in senders and room[target.round.id] > 0:
            senders.add(_sender(target))
            room[target.round.id] -= 1
            rows[place] = _row(target, offer, counts[target.round.id])
    if rows:
        _record(s, found, list(rows.values()), counts)
    return answers | rows


def _record(
    s: Session,
    found: Mapping[str, ContributionTarget],
    rows: Sequence[Contribution],
    counts: Mapping[str, Mapping[AssignmentState, int]],
) -> None:
    assignments.accepted(s, rows)
    contributions.add_all(s, rows)
    rounds.count_bytes_up(s, rows)
    events.add_all(s, [_event(row, found[row.assignment_id].assignment) for row in rows])
    time = service_clock.time(s)
    arrived = Counter(row.round_id for row in rows)
    for target in {row.round_id: found[row.assignment_id] for row in rows}.values():
        moved = Counter({AssignmentState.LEASED: -arrived[target.round.id]})
        moved[AssignmentState.ACCEPTED] = arrived[target.round.id]
        moved.update(counts[target.round.id])
        close_if_due(s, target.experiment, target.round, moved, time)


def _looked_up(
    s: Session, offers: Iterable[ContributionOffer]
) -> tuple[dict[str, ContributionTarget], dict[Key, Contribution]]:
    """The offers' targets, and what was accepted under their idempotency keys."""
    offers = list(offers)
    found = find_targets(s, [offer.assignment_id for offer in offers], lock=True)
    keys = [_key(found[offer.assignment_id], offer) for offer in offers if offer.assignment_id in found]
    return found, contributions.by_idempotency_keys(s, [key for key in keys if key is not None])


def _problem(
    target: ContributionTarget | None, offer: ContributionOffer, keyed: Mapping[Key, Contribution]
) -> FerretError | None:
    """What is wrong with a contribution that is not the one recorded for the assignment, if anything is."""
    if target is None:
        return assignments.unknown(offer.assignment_id)
    try:
        key = _key(target, offer)
        target.check(offer, None if key is None else keyed.get(key))
    except FerretError as error:
        return error
    return None


def _row(target: ContributionTarget, offer: ContributionOffer, counts: Mapping[AssignmentState, int]) -> Contribution:
    assignment, round_, sealed = target.assignment, target.round, offer.sealed
    assert may_move(assignment.state, AssignmentState.ACCEPTED), assignment.id
    return Contribution(
        experiment_id=assignment.experiment_id,
        round_id=round_.id,
        round=round_.number,
        participant=assignment.participant,
        assignment_id=assignment.id,
        digest=sealed.digest,
        size=sealed.size,
        examples=sealed.meta.examples,
        metrics=dict(sealed.meta.metrics),
        cost=offer.cost._asdict(),
        bytes_down=round_.bytes_down // sum(counts.values()),
        memory_digest=offer.memory_digest,
        idempotency_key=offer.idempotency_key,
        public_key=offer.signature.public_key if offer.signature else None,
        signature=offer.signature.signature if offer.signature else None,
    )


def _event(row: Contribution, assignment: Assignment) -> NewEvent:
    data = {"participant": row.participant, "kind": assignment.kind, "digest": row.digest, "size": row.size}
    return NewEvent(row.experiment_id, "contribution.accepted", row.round, data)


def _room(round_: Round, counts: Mapping[AssignmentState, int]) -> float:
    """How many more the round takes before it is looked at again."""
    required, accepted = round_.required_contributions, counts.get(AssignmentState.ACCEPTED, 0)
    missing = math.inf if required is None else required - accepted
    return max(1, missing)


def _sender(target: ContributionTarget) -> tuple[str, str]:
    """Its key, and its place in the round, are good for one contribution."""
    return target.assignment.experiment_id, target.assignment.participant


def _key(target: ContributionTarget, offer: ContributionOffer) -> Key | None:
    if offer.idempotency_key is None:
        return None
    return Key(target.assignment.experiment_id, target.assignment.participant, offer.idempotency_key)
