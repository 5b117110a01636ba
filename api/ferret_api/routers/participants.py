"""Endpoints for the real participants of an experiment, as its researchers manage them."""

from __future__ import annotations

from anyio import from_thread
from fastapi import APIRouter
from pydantic import Field

from ferret_api.access import Researcher, Viewer
from ferret_api.context import ContextDep
from ferret_api.http.errors import problems
from ferret_api.participants import resumable_upload
from ferret_api.participants.long_poll_groups import LongPollGroupsDep
from ferret_api.schemas import PAGE, PREFIX, Command, Cursor, ExperimentId, GroupName, Limit, OfGroup, ParticipantName
from ferret_core.protocol.resources.base import RevocationCount
from ferret_core.protocol.resources.participants import Participant, ParticipantPage
from ferret_core.protocol.sanitize import Words
from ferret_db.engine import membership
from ferret_db.repositories import experiments, participants

router = APIRouter(prefix=PREFIX, tags=["participants"])


class Revocation(Command, json_schema_extra={"examples": [{"reason": "the contract has ended"}]}):
    """Reason for removing a participant. The participant receives it."""

    reason: Words | None = Field(default=None, min_length=1, max_length=500)


class Refusal(Command, json_schema_extra={"examples": [{"reason": "not the site that was invited"}]}):
    """Reason for refusing a participant. The participant receives it."""

    reason: Words | None = Field(default=None, min_length=1, max_length=500)


class GroupRevocation(Revocation, json_schema_extra={"examples": [{"group": "north", "reason": "the pilot is over"}]}):
    """Group to remove, and the reason. Its participants receive the reason."""

    group: GroupName


@router.get(
    "/experiments/{experiment_id}/participants",
    operation_id="list_participants",
    responses=problems("experiment.not_found"),
)
def list_participants(
    experiment_id: ExperimentId, caller: Viewer, group: OfGroup = None, limit: Limit = PAGE, cursor: Cursor = None
) -> ParticipantPage:
    """Lists the real participants by name, including revoked ones. Requires the role viewer."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        page = participants.list_page(s, experiment_id, limit, cursor, group=group)
        items = [Participant.model_validate(row) for row in page.items]
        return ParticipantPage(items=items, next_cursor=page.next_cursor)


@router.post(
    "/experiments/{experiment_id}/participants/{name}:revoke",
    operation_id="revoke_participant",
    responses=problems("experiment.not_found", "participant.not_found"),
)
def revoke_participant(
    experiment_id: ExperimentId,
    name: ParticipantName,
    wanted: Revocation,
    caller: Researcher,
    groups: LongPollGroupsDep,
    context: ContextDep,
) -> Participant:
    """Removes a participant. Its next request fails with `participant.revoked`, and rounds continue without it.

    Its accepted contributions stay in the ledger, and its name stays taken. Repeating the action succeeds. Requires
    the role researcher."""
    with caller.database.begin() as s:
        revoked = Participant.model_validate(membership.revoke(s, caller.id, experiment_id, name, wanted.reason))
    resumable_upload.forget(context.storage, [revoked.id])
    from_thread.run_sync(groups.members_changed, experiment_id)
    return revoked


@router.post(
    "/experiments/{experiment_id}/participants/{name}:approve",
    operation_id="approve_participant",
    responses=problems("experiment.not_found", "participant.not_found", "participant.conflict"),
)
def approve_participant(
    experiment_id: ExperimentId, name: ParticipantName, caller: Researcher, groups: LongPollGroupsDep
) -> Participant:
    """Approves a pending participant, which can then take part. Repeating the action succeeds.

    Requires the role researcher. `participant.conflict` if it was refused or revoked."""
    with caller.database.begin() as s:
        approved = Participant.model_validate(membership.approve(s, caller.id, experiment_id, name))
    from_thread.run_sync(groups.members_changed, experiment_id)
    return approved


@router.post(
    "/experiments/{experiment_id}/participants/{name}:refuse",
    operation_id="refuse_participant",
    responses=problems("experiment.not_found", "participant.not_found", "participant.conflict"),
)
def refuse_participant(
    experiment_id: ExperimentId, name: ParticipantName, wanted: Refusal, caller: Researcher, groups: LongPollGroupsDep
) -> Participant:
    """Refuses a pending participant permanently. Its next request fails with `participant.refused`.

    Its place becomes free, and its name stays taken. Repeating the action succeeds. Requires the role researcher.
    """
    with caller.database.begin() as s:
        refused = Participant.model_validate(membership.refuse(s, caller.id, experiment_id, name, wanted.reason))
    from_thread.run_sync(groups.members_changed, experiment_id)
    return refused


@router.post(
    "/experiments/{experiment_id}/participants:revoke",
    operation_id="revoke_group_of_participants",
    responses=problems("experiment.not_found", "participant.not_found"),
)
def revoke_group_of_participants(
    experiment_id: ExperimentId,
    wanted: GroupRevocation,
    caller: Researcher,
    groups: LongPollGroupsDep,
    context: ContextDep,
) -> RevocationCount:
    """Revokes all participants that joined with a code of the group. Requires the role researcher.

    The group's unused codes stay valid: revoke them too."""
    with caller.database.begin() as s:
        revoked = membership.revoke_group(s, caller.id, experiment_id, wanted.group, wanted.reason)
        members = [row.id for row in participants.in_group(s, experiment_id, wanted.group)]
    resumable_upload.forget(context.storage, members)
    from_thread.run_sync(groups.members_changed, experiment_id)
    return RevocationCount(revoked=revoked)
