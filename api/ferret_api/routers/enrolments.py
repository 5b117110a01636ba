"""Endpoints for enrolment codes. A code works once: a participant exchanges it for a token."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request
from pydantic import AfterValidator, Field
from sqlalchemy.orm import Session

from ferret_api.access import Anyone, Researcher
from ferret_api.context import ContextDep, WholeContext
from ferret_api.http import trusted_hosts
from ferret_api.http.errors import problems
from ferret_api.schemas import PAGE, PREFIX, Command, Cursor, ExperimentId, GroupName, Limit, OfGroup
from ferret_core import catalog
from ferret_core.protocol.display_name import DisplayName
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import PublicKey
from ferret_core.protocol.resources.base import RevocationCount
from ferret_core.protocol.resources.participants import (
    Enrolled,
    Enrolment,
    EnrolmentCode,
    EnrolmentInfo,
    EnrolmentPage,
    Invitation,
)
from ferret_core.protocol.signatures import require_public_key
from ferret_db.database import Database
from ferret_db.repositories import audit, enrolments, experiments, participants

DAY = 24 * 3600


class NewEnrolment(
    Command, json_schema_extra={"examples": [{"expires_seconds": 604800, "group": "north", "approval": True}]}
):
    """Request for a code that admits one participant."""

    expires_seconds: int = Field(default=DAY, ge=1, le=30 * DAY, description="Seconds until the code expires")
    group: GroupName | None = None
    approval: bool = Field(default=False, description="true: a participant that joins with it waits for approval")


class CodeGroup(Command, json_schema_extra={"examples": [{"group": "north"}]}):
    """Request about all codes of a group."""

    group: GroupName


class NewParticipant(
    Command, json_schema_extra={"examples": [{"code": "4711.k3J9dQ2mXv8r", "display_name": "clinic 7"}]}
):
    """Request to exchange a code for a participant."""

    code: str = Field(min_length=1, max_length=200)
    display_name: DisplayName
    public_key: Annotated[PublicKey, AfterValidator(require_public_key)] | None = Field(
        default=None,
        description=("Ed25519 key that must sign every contribution; without a key, contributions are not signed"),
    )


class UnusedCode(Command, json_schema_extra={"examples": [{"code": "4711.k3J9dQ2mXv8r"}]}):
    """Request about the experiment of a code."""

    code: str = Field(min_length=1, max_length=200)


router = APIRouter(prefix=PREFIX, tags=["participants"])

EnrolmentKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=32,
        max_length=200,
        description="Secret of the participant. Repeating the request with it replaces a token that was lost",
    ),
]
EnrolmentId = Annotated[str, Path(max_length=64, description="Id of the code, e.g. `enr_0123456789abcdef`")]


@router.post(
    "/experiments/{experiment_id}/enrolments",
    operation_id="create_enrolment",
    status_code=201,
    responses=problems("experiment.not_found", "experiment.conflict"),
)
def create_enrolment(
    experiment_id: ExperimentId, wanted: NewEnrolment, caller: Researcher, request: Request, context: ContextDep
) -> Enrolment:
    """Creates a code with which one participant joins the experiment. Requires the role researcher.

    `experiment.conflict` if the experiment takes no real participants, or has finished."""
    with caller.database.begin() as s:
        if not experiments.get(s, experiment_id).edge_participants:
            raise FerretError(
                "experiment.conflict",
                f"{experiment_id} takes no real participants (participants.edge = 0); clone it with "
                f"--set participants.edge=1",
            )
        seconds = wanted.expires_seconds
        row, secret = participants.create_enrolment(s, experiment_id, seconds, wanted.group, approval=wanted.approval)
        about = {"experiment": experiment_id, "group": row.group, "approval": row.approval}
        audit.record(s, caller.id, "enrolment.created", row.id, **about)
    return Enrolment(
        id=row.id,
        group=row.group,
        approval=row.approval,
        code=str(EnrolmentCode.of(context.admin.fingerprint, secret)),
        expires_at=row.expires_at,
        command=f"ferret join {trusted_hosts.address(context.settings, request)} --data FILE.jsonl",
    )


@router.get(
    "/experiments/{experiment_id}/enrolments",
    operation_id="list_enrolments",
    responses=problems("experiment.not_found"),
)
def list_enrolments(
    experiment_id: ExperimentId, caller: Researcher, group: OfGroup = None, limit: Limit = PAGE, cursor: Cursor = None
) -> EnrolmentPage:
    """Lists the experiment's codes, newest first. Requires the role researcher.

    Each entry names the participant that used the code, and counts later attempts to use it again."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        page = enrolments.list_page(s, experiment_id, limit, cursor, group=group)
        items = [EnrolmentInfo.model_validate(row) for row in page.items]
        return EnrolmentPage(items=items, next_cursor=page.next_cursor)


@router.post(
    "/experiments/{experiment_id}/enrolments/{enrolment_id}:revoke",
    operation_id="revoke_enrolment",
    responses=problems("experiment.not_found", "enrolment.not_found"),
)
def revoke_enrolment(experiment_id: ExperimentId, enrolment_id: EnrolmentId, caller: Researcher) -> EnrolmentInfo:
    """Revokes an unused code. A used code does not change: revoke its participant instead.

    Requires the role researcher."""
    with caller.database.begin() as s:
        experiments.get(s, experiment_id)
        row, revoked = enrolments.revoke(s, experiment_id, enrolment_id)
        if revoked:
            audit.record(s, caller.id, "enrolment.revoked", row.id, experiment=experiment_id)
        return EnrolmentInfo.model_validate(row)


@router.post(
    "/experiments/{experiment_id}/enrolments:revoke",
    operation_id="revoke_group_of_enrolments",
    responses=problems("experiment.not_found", "enrolment.not_found"),
)
def revoke_group_of_enrolments(experiment_id: ExperimentId, wanted: CodeGroup, caller: Researcher) -> RevocationCount:
    """Revokes the group's unused codes. Participants that have joined stay: revoke the group's participants too.

    Requires the role researcher."""
    with caller.database.begin() as s:
        experiments.get(s, experiment_id)
        revoked = enrolments.revoke_group(s, experiment_id, wanted.group)
        for row in revoked:
            audit.record(s, caller.id, "enrolment.revoked", row.id, experiment=experiment_id, group=wanted.group)
        return RevocationCount(revoked=len(revoked))


@router.post(
    "/enrolments:inspect",
    operation_id="inspect_enrolment",
    dependencies=[Anyone],
    responses=problems("enrolment.invalid", "enrolment.used", "enrolment.other_server"),
)
def inspect_enrolment(wanted: UnusedCode, context: WholeContext) -> Invitation:
    """Returns the experiment that the code admits to. Needs no other credential. The code stays unused.

    An enrolment has the same errors, and wrong codes count towards the same limit. The audit log records the
    request."""
    code = EnrolmentCode.read(wanted.code)
    with _noting_refusals(context.database, code), context.database.begin() as s:
        _require_of_here(s, code, context.admin.fingerprint)
        row = enrolments.unused(s, code.secret)
        audit.record(s, audit.NOBODY, "enrolment.inspected", row.id, experiment=row.experiment_id)
        experiment = experiments.get(s, row.experiment_id)
        spec = experiments.spec_of(experiment)
        return Invitation(
            experiment=experiment.id,
            name=experiment.name,
            state=experiment.state,
            spec=catalog.without_places(spec).model_dump(mode="json"),
            base_digest=experiment.base_digest,
            shapes=experiment.shapes,
            approval=row.approval or spec.participants.approval,
            expires_at=row.expires_at,
        )


@router.post(
    "/participants",
    operation_id="enrol",
    status_code=201,
    dependencies=[Anyone],
    responses=problems(
        "enrolment.invalid",
        "enrolment.used",
        "enrolment.other_server",
        "experiment.conflict",
        "idempotency.conflict",
    ),
)
def enrol(wanted: NewParticipant, context: WholeContext, idempotency_key: EnrolmentKey = None) -> Enrolled:
    """Exchanges an enrolment code for a participant's token. Needs no other credential. A code works once.

    A response can be lost on the way. Repeating the request with the same `Idempotency-Key` returns the same
    participant, under its first name, with a new token; the former token stops working.

    `enrolment.used` names the participant that used the code; the repeated use is counted in the list of codes.
    `enrolment.other_server` if the code is unknown here and names another server. `experiment.conflict` if the
    experiment already has as many participants as its specification allows."""
    code = EnrolmentCode.read(wanted.code)
    with _noting_refusals(context.database, code, display_name=wanted.display_name):
        return _exchange(context.database, wanted, code, context.admin.fingerprint, idempotency_key)


def _exchange(
    database: Database, wanted: NewParticipant, code: EnrolmentCode, instance: str, key: str | None
) -> Enrolled:
    with database.read() as s:  # a wrong code needs no write lock
        _require_of_here(s, code, instance)
        if participants.enrolled(s, code.secret, key) is None:
            enrolments.unused(s, code.secret)
    with database.begin() as s:
        row, token = participants.enrol(s, code.secret, wanted.display_name, wanted.public_key, idempotency_key=key)
        _require_place(s, row.experiment_id)
        about = {"name": row.name, "display_name": row.display_name, "public_key": row.public_key}
        audit.record(s, row.id, "participant.enrolled", row.id, experiment=row.experiment_id, **about)
        return Enrolled(
            participant=row.id, name=row.name, display_name=row.display_name, experiment=row.experiment_id, token=token
        )


def _require_of_here(s: Session, code: EnrolmentCode, instance: str) -> None:
    """A known code is accepted in any case, since the instance changes with the admin token."""
    if code.names_another(instance) and not enrolments.is_known(s, code.secret):
        raise FerretError(
            "enrolment.other_server",
            f"this code was made by another server (instance {code.issuer}…); ask the person who gave it to you for "
            "that server's address",
        )


def _require_place(s: Session, experiment_id: str) -> None:
    """Raises ``experiment.conflict``; the code stays valid, since the transaction is rolled back."""
    places = experiments.get(s, experiment_id).edge_participants
    if participants.count(s, experiment_id) + participants.count_pending(s, experiment_id) > places:
        raise FerretError(
            "experiment.conflict",
            f"{experiment_id} takes {places} real participants (participants.edge), and all have joined; refusing "
            "or revoking one frees a place",
        )


@contextmanager
def _noting_refusals(database: Database, code: EnrolmentCode, **about: str) -> Generator[None]:
    """Counts and audits that the ``with`` block refused a used code: somebody else has it too."""
    try:
        yield
    except FerretError as error:
        if error.code == "enrolment.used":
            with database.begin() as s:
                if (row := enrolments.refuse(s, code.secret)) is not None:
                    told = {"experiment": row.experiment_id, "used_by": row.used_by, **about}
                    audit.record(s, audit.NOBODY, "enrolment.refused", row.id, **told)
        raise
