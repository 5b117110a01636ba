"""Real participants. A single-use enrolment code is exchanged for a token; only hashes of both are stored."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from datetime import timedelta

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ferret_core.protocol import display_name as names
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import TaskName
from ferret_core.rounds import sampling
from ferret_db import clock
from ferret_db.pagination import Page, page, seek
from ferret_db.repositories import enrolments, events, experiments, outbox
from ferret_db.tables import Enrolment, Experiment, Participant

_SECRET_BYTES = 32


def create_enrolment(
    s: Session, experiment_id: str, seconds: float, group: str | None = None, *, approval: bool = False
) -> tuple[Enrolment, str]:
    """Creates an enrolment and its code, which is shown once. Raises ``experiment.conflict`` if the experiment is over.

    With ``approval`` the joining participant is pending.
    """
    experiment = experiments.get(s, experiment_id)
    if experiment.state.finished:
        raise _over(experiment_id)
    code = secrets.token_urlsafe(_SECRET_BYTES)
    expires_at = clock.now(s) + timedelta(seconds=seconds)
    enrolment = Enrolment(
        experiment_id=experiment_id, group=group, approval=approval, code_hash=_hash(code), expires_at=expires_at
    )
    s.add(enrolment)
    s.flush()
    return enrolment, code


def enrol(
    s: Session, code: str, display_name: str, public_key: str | None = None, *, idempotency_key: str | None = None
) -> tuple[Participant, str]:
    """Creates a participant and its token, which is shown once, and requests the experiment's coordination.

    The name is derived from ``display_name``. A participant with a ``public_key`` must sign its contributions.
    Repeating the call with the same ``idempotency_key`` returns the participant with a new token, in place of the one
    that may have been lost on the way.

    Raises ``enrolment.invalid`` for an unknown, revoked or expired code, ``enrolment.used`` for a used one,
    ``request.invalid`` for a name that the experiment already has (the code stays valid), and ``experiment.conflict``
    if the experiment is over. For secure sums ``request.invalid`` also means that the key is missing, or another
    participant's. ``idempotency.conflict`` means that the first call had another ``public_key``.
    """
    token = secrets.token_urlsafe(_SECRET_BYTES)
    try:
        enrolment = enrolments.use(s, code, display_name)
    except FerretError:
        if (joined := enrolled(s, code, idempotency_key)) is None:
            raise
        if joined.public_key != public_key:
            message = f"was used to join as {joined.name} with another public key; ask for a new code"
            raise FerretError.of_field("idempotency.conflict", "Idempotency-Key", None, message) from None
        joined.token_hash = _hash(token)
        return joined, token
    experiment = experiments.lock(s, enrolment.experiment_id)
    if experiment.state.finished:
        raise _over(experiment.id)
    if experiments.spec_of(experiment).secure.masked:
        _require_new_key(s, experiment.id, public_key)
    participant = Participant(
        experiment_id=experiment.id,
        name=_free_name(s, experiment, display_name),
        display_name=display_name,
        group=enrolment.group,
        token_hash=_hash(token),
        enrolment_hash=_enrolment_hash(code, idempotency_key),
        public_key=public_key,
        pending=enrolment.approval or experiments.spec_of(experiment).participants.approval,
    )
    try:
        with s.begin_nested():
            s.add(participant)
    except IntegrityError as error:
        raise _taken(display_name) from error
    events.add(s, experiment.id, "participant.joined", data={"participant": participant.name})
    outbox.add(s, TaskName.COORDINATE, experiment.id)
    return participant, token


def enrolled(s: Session, code: str, idempotency_key: str | None) -> Participant | None:
    """Returns the participant that joined with the code and the key, None without a key."""
    if idempotency_key is None:
        return None
    query = select(Participant).where(Participant.enrolment_hash == _enrolment_hash(code, idempotency_key))
    return s.scalars(query).one_or_none()


def _require_new_key(s: Session, experiment_id: str, public_key: str | None) -> None:
    if public_key is None:
        message = "is missing: members of a secure sum sign what they send"
        raise FerretError.of_field("request.invalid", "public_key", None, message)
    query = select(Participant.name).where(
        Participant.experiment_id == experiment_id,
        Participant.public_key == public_key,
        Participant.revoked_at.is_(None),
    )
    if (other := s.scalars(query.limit(1)).one_or_none()) is not None:
        message = f"is the key of {other}: a site counts once in a secure sum"
        raise FerretError.of_field("request.invalid", "public_key", public_key, message)


def by_tokens(s: Session, tokens: Iterable[str]) -> dict[str, Participant]:
    """Returns the participants of the known tokens, by token."""
    hashes = {_hash(token): token for token in tokens}
    found = s.scalars(select(Participant).where(Participant.token_hash.in_(hashes)))
    return {hashes[row.token_hash]: row for row in found}


def named(s: Session, experiment_id: str, name: str) -> Participant:
    """Returns the experiment's participant with that name, revoked or not, or raises ``participant.not_found``."""
    query = select(Participant).where(Participant.experiment_id == experiment_id, Participant.name == name)
    found = s.scalars(query, execution_options={"populate_existing": True}).one_or_none()
    if found is None:
        message = f"is no participant of {experiment_id}; ferret participant list lists them"
        raise FerretError.of_field("participant.not_found", "name", name, message)
    return found


def display_names(s: Session, experiment_id: str, names: Collection[str] | None = None) -> dict[str, str]:
    """Returns the display names of real participants among ``names``; without ``names``, of all."""
    query = select(Participant.name, Participant.display_name).where(Participant.experiment_id == experiment_id)
    return dict(s.execute(query if names is None else query.where(Participant.name.in_(names))).all())


def of_experiment(s: Session, experiment_id: str) -> list[Participant]:
    """Returns the enrolled participants, neither pending nor revoked, by name."""
    query = select(Participant).where(*_taking_part(experiment_id)).order_by(Participant.name)
    return list(s.scalars(query))


def ever_of_experiment(s: Session, experiment_id: str) -> list[Participant]:
    """Returns all that ever enrolled, revoked ones too, by name."""
    query = select(Participant).where(Participant.experiment_id == experiment_id).order_by(Participant.name)
    return list(s.scalars(query))


def count(s: Session, experiment_id: str) -> int:
    """Counts the participants that may take part."""
    return s.scalars(select(func.count()).select_from(Participant).where(*_taking_part(experiment_id))).one()


def count_pending(s: Session, experiment_id: str) -> int:
    """Counts the participants that wait for approval."""
    pending = *_enrolled(experiment_id), Participant.pending.is_(True)
    return s.scalars(select(func.count()).select_from(Participant).where(*pending)).one()


def in_group(s: Session, experiment_id: str, group: str) -> list[Participant]:
    """Returns all that ever enrolled by a code of the group, by name. Raises ``participant.not_found`` if empty."""
    query = select(Participant).where(Participant.experiment_id == experiment_id, Participant.group == group)
    found = list(s.scalars(query.order_by(Participant.name)))
    if not found:
        message = f"is no group of participants of {experiment_id}; ferret participant list lists them"
        raise FerretError.of_field("participant.not_found", "group", group, message)
    return found


def list_page(
    s: Session, experiment_id: str, limit: int, cursor: str | None = None, *, group: str | None = None
) -> Page[Participant]:
    """Lists all that ever enrolled, or only those in the ``group``, by name."""
    query = select(Participant).where(Participant.experiment_id == experiment_id)
    if group is not None:
        query = query.where(Participant.group == group)
    rows = list(s.scalars(seek(query, [Participant.name], cursor, limit)))
    return page(rows, limit, lambda row: (row.name,))


def approve(s: Session, participant: Participant) -> None:
    """Lets the participant take part."""
    s.execute(update(Participant).where(Participant.id == participant.id).values(pending=False))


def revoke(s: Session, participant: Participant, reason: str | None) -> bool:
    """Revokes the participant and invalidates its token. Returns True if this call did."""
    revoked = s.execute(
        update(Participant)
        .where(Participant.id == participant.id, Participant.revoked_at.is_(None))
        .values(revoked_at=clock.utcnow(), revocation_reason=reason)
        .returning(Participant.id)
    )
    return revoked.one_or_none() is not None


def count_active(s: Session) -> int:
    """Counts the participants in unfinished experiments."""
    unfinished = [state for state in ExperimentState if not state.finished]
    query = select(func.count()).select_from(Participant).join(Experiment)
    active = Experiment.state.in_(unfinished), Participant.revoked_at.is_(None)
    return s.scalars(query.where(*active)).one()


def present(s: Session, participant_ids: Collection[str]) -> None:
    """Updates the participants' last-seen times, except in rows that another transaction has locked: it never waits."""
    wanted = select(Participant.id).where(Participant.id.in_(participant_ids))
    seen(s, s.scalars(wanted.with_for_update(skip_locked=True)).all())


def seen(s: Session, participant_ids: Collection[str]) -> None:
    """Updates the participants' last-seen times."""
    s.execute(update(Participant).where(Participant.id.in_(participant_ids)).values(seen_at=clock.utcnow()))


def _enrolled(experiment_id: str) -> tuple[ColumnElement[bool], ...]:
    return Participant.experiment_id == experiment_id, Participant.revoked_at.is_(None)


def _taking_part(experiment_id: str) -> tuple[ColumnElement[bool], ...]:
    return *_enrolled(experiment_id), Participant.pending.is_(False)


def _hash(secret: str) -> str:
    return digest_bytes(secret.encode())


def _enrolment_hash(code: str, idempotency_key: str | None) -> str | None:
    return None if idempotency_key is None else _hash(f"{code} {idempotency_key}")


def _free_name(s: Session, experiment: Experiment, display_name: str) -> str:
    """Returns the best name derived from ``display_name`` that no participant or simulated client has."""
    wanted = names.ids(display_name)
    query = select(Participant.name).where(Participant.experiment_id == experiment.id, Participant.name.in_(wanted))
    taken = {*s.scalars(query), *sampling.client_names(experiments.spec_of(experiment).participants.simulated)}
    free = next((name for name in wanted if name not in taken), None)
    if free is None:
        raise _taken(display_name)
    return free


def _taken(display_name: str) -> FerretError:
    return FerretError.of_field("request.invalid", "display_name", display_name, "is taken; choose another name")


def _over(experiment_id: str) -> FerretError:
    return FerretError("experiment.conflict", f"{experiment_id} has ended and accepts no more participants")
