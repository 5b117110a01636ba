"""Operations on enrolment codes: creation, revocation, and enrolment with a code, which works once."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ferret_api.enrolments.schemas import NewEnrolment, NewParticipant
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.base import RevocationCount
from ferret_core.protocol.resources.participants import Enrolled, Enrolment, EnrolmentCode, EnrolmentInfo, EnrolmentPage
from ferret_db.database import Database
from ferret_db.repositories import audit, enrolments, experiments, participants


def create(
    database: Database, experiment_id: str, wanted: NewEnrolment, address: str, instance: str, actor: str
) -> Enrolment:
    """Creates a code for the server ``instance``.

    Raises ``experiment.conflict`` if the experiment has finished or takes no real participants."""
    with database.begin() as s:
        if not experiments.get(s, experiment_id).real_participants:
            raise FerretError(
                "experiment.conflict",
                f"{experiment_id} takes no real participants (participants.edge = 0); clone it with "
                f"--set participants.edge=1",
            )
        seconds = wanted.expires_seconds
        row, secret = participants.create_enrolment(s, experiment_id, seconds, wanted.group, approval=wanted.approval)
        about = {"experiment": experiment_id, "group": row.group, "approval": row.approval}
        audit.record(s, actor, "enrolment.created", row.id, **about)
    command = f"ferret join {address} --data FILE.jsonl"
    return Enrolment(
        id=row.id,
        group=row.group,
        approval=row.approval,
        code=str(EnrolmentCode.of(instance, secret)),
        expires_at=row.expires_at,
        command=command,
    )


def list_codes(
    database: Database, experiment_id: str, limit: int, cursor: str | None, group: str | None
) -> EnrolmentPage:
    with database.read() as s:
        experiments.get(s, experiment_id)
        page = enrolments.list_page(s, experiment_id, limit, cursor, group=group)
        items = [EnrolmentInfo.model_validate(row) for row in page.items]
        return EnrolmentPage(items=items, next_cursor=page.next_cursor)


def revoke(database: Database, experiment_id: str, enrolment_id: str, actor: str) -> EnrolmentInfo:
    with database.begin() as s:
        experiments.get(s, experiment_id)
        row, revoked = enrolments.revoke(s, experiment_id, enrolment_id)
        if revoked:
            audit.record(s, actor, "enrolment.revoked", row.id, experiment=experiment_id)
        return EnrolmentInfo.model_validate(row)


def revoke_group(database: Database, experiment_id: str, group: str, actor: str) -> RevocationCount:
    with database.begin() as s:
        experiments.get(s, experiment_id)
        revoked = enrolments.revoke_group(s, experiment_id, group)
        for row in revoked:
            audit.record(s, actor, "enrolment.revoked", row.id, experiment=experiment_id, group=group)
        return RevocationCount(revoked=len(revoked))


def enrol(database: Database, wanted: NewParticipant, instance: str) -> Enrolled:
    """Enrols a participant with a code at the server ``instance``. Counts attempts to use a code again."""
    code = EnrolmentCode.read(wanted.code)
    try:
        return _enrol(database, wanted, code, instance)
    except FerretError as error:
        if error.code == "enrolment.used":
            with database.begin() as s:
                _note_refused(s, wanted, code)
        raise


def _enrol(database: Database, wanted: NewParticipant, code: EnrolmentCode, instance: str) -> Enrolled:
    with database.read() as s:  # a wrong code needs no write lock
        _require_of_here(s, code, instance)
        enrolments.check(s, code.secret)
    with database.begin() as s:
        row, token = participants.enrol(s, code.secret, wanted.display_name, wanted.public_key)
        _require_place(s, row.experiment_id)
        about = {"name": row.name, "display_name": row.display_name, "public_key": row.public_key}
        audit.record(s, row.id, "participant.enrolled", row.id, experiment=row.experiment_id, **about)
        return Enrolled(
            participant=row.id,
            name=row.name,
            display_name=row.display_name,
            experiment=row.experiment_id,
            token=token,
        )


def _require_of_here(s: Session, code: EnrolmentCode, instance: str) -> None:
    """Raises ``enrolment.other_server`` for an unknown code of another instance.

    A known code is accepted in any case, since the instance changes with the admin token."""
    if code.names_another(instance) and not enrolments.is_known(s, code.secret):
        raise FerretError(
            "enrolment.other_server",
            f"this code was made by another server (instance {code.issuer}…); ask the person who gave it to you for "
            "that server's address",
        )


def _require_place(s: Session, experiment_id: str) -> None:
    """Raises ``experiment.conflict`` if the experiment has more participants than its specification allows.

    The code stays valid, since the transaction is rolled back."""
    places = experiments.get(s, experiment_id).real_participants
    if participants.count(s, experiment_id) + participants.count_pending(s, experiment_id) > places:
        raise FerretError(
            "experiment.conflict",
            f"{experiment_id} takes {places} real participants (participants.edge), and all have joined; refusing "
            "or revoking one frees a place",
        )


def _note_refused(s: Session, wanted: NewParticipant, code: EnrolmentCode) -> None:
    if (row := enrolments.refuse(s, code.secret)) is not None:
        audit.record(
            s,
            audit.NOBODY,
            "enrolment.refused",
            row.id,
            experiment=row.experiment_id,
            used_by=row.used_by,
            display_name=wanted.display_name,
        )
