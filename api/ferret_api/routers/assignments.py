"""Endpoints that participants call: their assignments and contributions."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import AfterValidator, Field

from ferret_api.access import Participant, ParticipantBearer, ParticipantLater, participant_token
from ferret_api.context import WholeContext
from ferret_api.http.errors import problems
from ferret_api.participants import resumable_upload, streaming_body, upload
from ferret_api.participants.batches import BatchesDep
from ferret_api.participants.last_seen import PresenceDep
from ferret_api.participants.long_poll import LongPoll, PollRequest
from ferret_api.participants.long_poll_group import PollTag, wait_seconds
from ferret_api.participants.long_poll_groups import LongPollGroupsDep
from ferret_api.schemas import BINARY, MAX_INTEGER, OCTETS, PREFIX, Command, IdempotencyKey
from ferret_api.system.prometheus import HELD
from ferret_core.protocol.errors import PROBLEMS, FerretError
from ferret_core.protocol.limits import MAX_BYTES, MAX_SECONDS
from ferret_core.protocol.resources.participants import (
    ContributionReceipt,
    LeaseExtension,
    NextAssignment,
    UploadProgress,
)
from ferret_core.protocol.sanitize import Words
from ferret_db.engine import assignments as leases
from ferret_db.repositories import assignments

router = APIRouter(prefix=PREFIX, tags=["participants"])

AssignmentId = Annotated[str, Path(max_length=64, description="Id of the assignment")]
Fence = Annotated[int, Field(ge=0, le=MAX_INTEGER, description="The lease's `fence`")]


def _known(code: str) -> str:
    if code not in PROBLEMS:
        raise ValueError("is not a known problem code")
    return code


class Heartbeat(Command, json_schema_extra={"examples": [{"fence": 1}]}):
    """Heartbeat of a working participant."""

    fence: Fence


class AssignmentFailure(
    Command,
    json_schema_extra={
        "examples": [{"fence": 1, "code": "dataset.invalid", "detail": "line 7 has no field instruction"}]
    },
):
    """Failure report of a participant that cannot do its assignment."""

    fence: Fence
    code: Annotated[str, AfterValidator(_known)] = Field(description="Code of the problem, e.g. `dataset.invalid`")
    detail: Words = Field(min_length=1, max_length=2000)


IfNoneMatch = Annotated[
    str, Header(alias="If-None-Match", max_length=500, description="`ETag` of the last response without an assignment")
]
Prefer = Annotated[
    str,
    Header(
        max_length=500,
        description="`wait=N`: hold the response until something changes, for at most N seconds (RFC 7240)",
    ),
]


@router.get(
    "/participant/assignment",
    operation_id="next_assignment",
    dependencies=[ParticipantLater],
    response_model=NextAssignment,
    responses={304: {"description": "Nothing has changed since the response with the tag in `If-None-Match`"}},
)
async def next_assignment(
    bearer: ParticipantBearer,
    context: WholeContext,
    groups: LongPollGroupsDep,
    batches: BatchesDep,
    presence: PresenceDep,
    request: Request,
    response: Response,
    if_none_match: IfNoneMatch = "",
    prefer: Prefer = "",
) -> NextAssignment | Response:
    """Leases the participant's assignment in the open round. Without one, returns when to poll again.

    A response without an assignment has an `ETag`. The next request can send it in `If-None-Match` with
    `Prefer: wait=N`: the server then holds the request until something changes for this participant, for at most N
    seconds or the server's limit. `Preference-Applied: wait=N` announces that the next such request will be held.
    Requires a participant's token.
    """
    asked = PollRequest(PollTag.read(if_none_match), wait_seconds(prefer))
    found = await LongPoll(context, groups, batches, presence, bearer, asked).answer()
    request.scope[HELD] = found.held
    if found.body is not None and found.body.assignment is not None:
        return found.body
    headers = {"ETag": str(found.tag), "Retry-After": str(math.ceil(found.pause)), "Cache-Control": "private, no-cache"}
    if found.wait:
        headers["Preference-Applied"] = f"wait={found.wait}"
    if found.body is None:
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return found.body


@router.post(
    "/participant/assignments/{assignment_id}/heartbeat",
    operation_id="heartbeat",
    responses=problems("assignment.not_found", "lease.lost"),
)
def heartbeat(
    assignment_id: AssignmentId, beat: Heartbeat, participant: Participant, context: WholeContext
) -> LeaseExtension:
    """Extends the lease of an assignment. Requires a participant's token.

    After `lease.lost` the participant must stop: its result would be refused."""
    with context.database.begin() as s:
        assignments.require_own(s, assignment_id, participant.id)
        until = leases.heartbeat(s, assignment_id, beat.fence, context.settings.lease_seconds)
        return LeaseExtension(lease_until=until)


async def _lookup_upload(
    assignment_id: AssignmentId, bearer: ParticipantBearer, context: WholeContext, batches: BatchesDep
) -> upload.ExpectedUpload:
    token = await participant_token(context, bearer)
    return await batches.expected.do((token, assignment_id))


ExpectedUpload = Annotated[upload.ExpectedUpload, Depends(_lookup_upload)]


SecondsHeader = Annotated[
    float,
    Header(alias="Ferret-Seconds", ge=0, le=MAX_SECONDS, allow_inf_nan=False, description="Seconds of local training"),
]
DigestHeader = Annotated[
    str,
    Header(
        alias="Ferret-Digest",
        pattern="^[0-9a-f]{64}$",
        description="BLAKE3-256 of the whole contribution, in hexadecimal",
    ),
]
SignatureHeader = Annotated[
    str | None,
    Header(
        alias="Ferret-Signature",
        pattern="^[0-9a-f]{128}$",
        description="Ed25519 signature of the canonical JSON of the contribution's context and digest, by the key "
        "given at enrolment. Required from participants that gave a key",
    ),
]
FenceHeader = Annotated[int, Header(alias="Ferret-Fence", ge=0, le=MAX_INTEGER, description="The lease's fence")]


def _require_octets(request: Request) -> None:
    given = request.headers.get("content-type")
    if given != OCTETS:
        raise FerretError.of_field("request.invalid", "Content-Type", given, f"a contribution is {OCTETS}")


async def _body(
    expected: ExpectedUpload, fence: FenceHeader, request: Request, context: WholeContext
) -> AsyncGenerator[bytes | FilePath]:
    _require_octets(request)
    async with AsyncExitStack() as stack:
        with context.uploads.entered(expected.participant.id):
            try:
                most = upload.upload_size_limit(context, expected, fence)
                what = "a contribution to this assignment"
                whole = await stack.enter_async_context(streaming_body.received(request, context.storage, most, what))
            except FerretError as error:
                await run_in_threadpool(upload.record_rejection, context, expected.assignment.id, error)
                raise
        yield whole


REFUSALS = (
    "assignment.not_found",
    "lease.lost",
    "idempotency.conflict",
    "contribution.duplicate",
    "contribution.wrong_base",
    "round.closed",
    "contribution.malformed",
    "contribution.non_finite",
    "signature.invalid",
    "request.too_many",
    "storage.full",
)
REPEATED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The same contribution had already been accepted", "model": ContributionReceipt}
}


@router.put(
    "/participant/assignments/{assignment_id}/contribution",
    operation_id="upload_contribution",
    status_code=201,
    dependencies=[ParticipantLater],
    openapi_extra={"requestBody": {"required": True, "content": BINARY}},
    responses={**REPEATED, **problems(*REFUSALS)},
)
async def upload_contribution(
    expected: ExpectedUpload,
    whole: Annotated[bytes | FilePath, Depends(_body)],
    fence: FenceHeader,
    seconds: SecondsHeader,
    response: Response,
    batches: BatchesDep,
    idempotency_key: IdempotencyKey = None,
    signature: SignatureHeader = None,
) -> ContributionReceipt:
    """Accepts the contribution of a leased assignment. Requires a participant's token.

    The third unusable contribution rejects the assignment. `/rejections` of the experiment lists every refusal.
    `round.closed` holds the `current_round`. After `contribution.wrong_base` the participant must rebuild its model
    from the ledger.
    """
    with upload.receive_span(expected, whole):
        result = await batches.accept(
            upload.ReceivedUpload(expected, whole, fence, seconds, idempotency_key, signature)
        )
    response.status_code = 200 if result.repeated else 201
    return result.answer


@router.get(
    "/participant/assignments/{assignment_id}/contribution",
    operation_id="get_arrived",
    dependencies=[ParticipantLater],
    responses=problems(
        "assignment.not_found", "lease.lost", "contribution.duplicate", "round.closed", "request.too_large"
    ),
)
def get_arrived(
    expected: ExpectedUpload, fence: FenceHeader, digest: DigestHeader, context: WholeContext
) -> UploadProgress:
    """Returns how many bytes of a contribution sent in parts have arrived: the offset of the next part.

    Requires a participant's token."""
    return UploadProgress(offset=resumable_upload.received_bytes(context, expected, fence, digest))


@router.patch(
    "/participant/assignments/{assignment_id}/contribution",
    operation_id="upload_part",
    status_code=201,
    response_model=ContributionReceipt,
    dependencies=[ParticipantLater],
    openapi_extra={"requestBody": {"required": True, "content": BINARY}},
    responses={
        **REPEATED,
        204: {"description": "The part is stored. The next part begins at the response's `Upload-Offset`"},
        **problems(*REFUSALS, "upload.offset", "upload.corrupt"),
    },
)
async def upload_part(
    expected: ExpectedUpload,
    fence: FenceHeader,
    seconds: SecondsHeader,
    digest: DigestHeader,
    offset: Annotated[
        int,
        Header(
            alias="Upload-Offset", ge=0, le=MAX_BYTES, description="Offset of the part in the contribution, in bytes"
        ),
    ],
    length: Annotated[
        int, Header(alias="Upload-Length", ge=1, le=MAX_BYTES, description="Size of the whole contribution, in bytes")
    ],
    request: Request,
    response: Response,
    context: WholeContext,
    idempotency_key: IdempotencyKey = None,
    signature: SignatureHeader = None,
) -> ContributionReceipt | Response:
    """Adds a part to a contribution. The last part completes it, as if it had been sent in one request.

    A part has at most the lease's `part_bytes`, and begins where the previous part ended. An empty part at the end
    repeats the acceptance. Requires a participant's token.
    """
    _require_octets(request)
    part = resumable_upload.UploadPart(offset, length)
    with context.uploads.entered(expected.participant.id):
        try:
            if (accepted := upload.already_accepted(expected, digest)) is not None:
                response.status_code = 200
                return accepted.answer
            most = await run_in_threadpool(resumable_upload.part_size_limit, context, expected, part, fence)
        except FerretError as error:
            await run_in_threadpool(upload.record_rejection, context, expected.assignment.id, error)
            raise
        async with streaming_body.received(request, context.storage, most, "this part") as sent:
            received = upload.ReceivedUpload(expected, sent, fence, seconds, idempotency_key, signature, digest)
            with upload.receive_span(expected, sent):
                result = await run_in_threadpool(resumable_upload.receive_part, context, part, received)
    if isinstance(result, int):
        return Response(status_code=204, headers={"Upload-Offset": str(result)})
    response.status_code = 200 if result.repeated else 201
    return result.answer


@router.post(
    "/participant/assignments/{assignment_id}/failure",
    operation_id="report_failure",
    status_code=204,
    responses=problems("assignment.not_found", "lease.lost", "round.closed"),
)
def report_failure(
    assignment_id: AssignmentId, failure: AssignmentFailure, participant: Participant, context: WholeContext
) -> None:
    """Reports that the participant gives up the assignment, with the reason. Requires a participant's token."""
    with context.database.begin() as s:
        assignments.require_own(s, assignment_id, participant.id)
        leases.reject(s, assignment_id, failure.fence, FerretError(failure.code, failure.detail))
