"""Endpoints for enrolment codes. A code works once: a participant exchanges it for a token."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from ferret_api.access import Anyone, Researcher
from ferret_api.context import ContextDep, WholeContext
from ferret_api.enrolments import service
from ferret_api.enrolments.schemas import CodeGroup, NewEnrolment, NewParticipant
from ferret_api.http import trusted_hosts
from ferret_api.http.pagination import PAGE, Cursor, Limit
from ferret_api.http.problems import problems
from ferret_api.schemas import PREFIX, ExperimentId, OfGroup
from ferret_core.protocol.resources.base import RevocationCount
from ferret_core.protocol.resources.participants import Enrolled, Enrolment, EnrolmentInfo, EnrolmentPage

router = APIRouter(prefix=PREFIX, tags=["participants"])

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
    address = trusted_hosts.address(context.settings, request)
    return service.create(caller.database, experiment_id, wanted, address, context.admin.fingerprint, caller.id)


@router.get(
    "/experiments/{experiment_id}/enrolments",
    operation_id="list_enrolments",
    responses=problems("experiment.not_found"),
)
def list_enrolments(
    experiment_id: ExperimentId,
    caller: Researcher,
    group: OfGroup = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> EnrolmentPage:
    """Lists the experiment's codes, newest first. Requires the role researcher.

    Each entry names the participant that used the code, and counts later attempts to use it again."""
    return service.list_codes(caller.database, experiment_id, limit, cursor, group)


@router.post(
    "/experiments/{experiment_id}/enrolments/{enrolment_id}:revoke",
    operation_id="revoke_enrolment",
    responses=problems("experiment.not_found", "enrolment.not_found"),
)
def revoke_enrolment(experiment_id: ExperimentId, enrolment_id: EnrolmentId, caller: Researcher) -> EnrolmentInfo:
    """Revokes an unused code. A used code does not change: revoke its participant instead.

    Requires the role researcher."""
    return service.revoke(caller.database, experiment_id, enrolment_id, caller.id)


@router.post(
    "/experiments/{experiment_id}/enrolments:revoke",
    operation_id="revoke_group_of_enrolments",
    responses=problems("experiment.not_found", "enrolment.not_found"),
)
def revoke_group_of_enrolments(experiment_id: ExperimentId, wanted: CodeGroup, caller: Researcher) -> RevocationCount:
    """Revokes the group's unused codes. Participants that have joined stay: revoke the group's participants too.

    Requires the role researcher."""
    return service.revoke_group(caller.database, experiment_id, wanted.group, caller.id)


@router.post(
    "/participants",
    operation_id="enrol",
    status_code=201,
    dependencies=[Anyone],
    responses=problems("enrolment.invalid", "enrolment.used", "enrolment.other_server", "experiment.conflict"),
)
def enrol(wanted: NewParticipant, context: WholeContext) -> Enrolled:
    """Exchanges an enrolment code for a participant's token. Needs no other credential. A code works once.

    `enrolment.used` names the participant that used the code; the repeated use is counted in the list of codes.
    `enrolment.other_server` if the code is unknown here and names another server. `experiment.conflict` if the
    experiment already has as many participants as its specification allows."""
    return service.enrol(context.database, wanted, context.admin.fingerprint)
