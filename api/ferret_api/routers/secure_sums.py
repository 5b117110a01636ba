"""Endpoints of secure sums: participants' messages, and the transcripts from which anyone can repeat a sum."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy.orm import Session

from ferret_api import blobs, downloads
from ferret_api.access import Identity, Participant, Reader, Reading
from ferret_api.context import Context, WholeContext
from ferret_api.http.errors import problems
from ferret_api.participants.upload import record_rejection, require_acceptable
from ferret_api.routers.assignments import AssignmentId, FenceHeader
from ferret_api.schemas import BINARY, OCTETS, PREFIX, ExperimentId, ParticipantName, RoundNumber
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.rounds import SumTranscripts
from ferret_core.protocol.signatures import is_valid
from ferret_core.protocol.task_names import TaskName
from ferret_core.secure.member import STOCK
from ferret_core.secure.prekeys import PREKEY_BYTES, Prekey, PrekeyStatement, is_weak
from ferret_core.secure.roster import invalid
from ferret_core.storage import FileKind, blob_location
from ferret_db.engine import secure_sums as engine
from ferret_db.repositories import assignments, experiments, ledger, outbox, participants, secure_sums

router = APIRouter(prefix=PREFIX, tags=["secure-sums"])
BODY: dict[str, Any] = {"requestBody": {"required": True, "content": BINARY}}
ASSIGNMENT = "/participant/assignments/{assignment_id}"
WRONG = frozenset({"secure.shares_invalid", "secure.survivors_invalid", "secure.conflict"})
"""Errors of a message that an honest member does not send."""


async def _octets(request: Request) -> bytes:
    given = request.headers.get("content-type")
    if given != OCTETS:
        raise FerretError.of_field("request.invalid", "Content-Type", given, f"the message is {OCTETS}")
    return await request.body()


Octets = Annotated[bytes, Depends(_octets)]


@router.put(
    "/participant/prekeys",
    operation_id="put_prekeys",
    status_code=204,
    openapi_extra=BODY,
    responses=problems("secure.roster_invalid", "secure.closed"),
)
def put_prekeys(participant: Participant, message: Octets, context: WholeContext) -> None:
    """Replaces the participant's unused one-time keys: 128 octets each, at most eight. Requires a participant's token.

    A key that a roster has had is not offered again. A secure sum opens once enough participants have keys.
    """
    with context.database.begin() as s:
        experiment = experiments.lock(s, participant.experiment_id)
        if not experiments.spec_of(experiment).secure.masked:
            raise FerretError.of_field("secure.closed", "experiment", experiment.id, "has no secure sums")
        row = participants.named(s, experiment.id, participant.name)
        secure_sums.restock(s, row, _prekeys(message, experiment.id, row.name, row.public_key or ""))
        outbox.add(s, TaskName.COORDINATE, experiment.id)


def _prekeys(message: bytes, experiment: str, name: str, identity: str) -> list[Prekey]:
    count, rest = divmod(len(message), PREKEY_BYTES)
    if rest or count > STOCK:
        raise invalid("prekeys", len(message), f"are not at most {STOCK} keys of {PREKEY_BYTES} octets")
    keys = [Prekey.decode(message[PREKEY_BYTES * i : PREKEY_BYTES * (i + 1)]) for i in range(count)]
    for key in keys:
        statement = PrekeyStatement(experiment, name, key.mask, key.share)
        if is_weak(key.mask) or is_weak(key.share) or not is_valid(identity, key.signature, statement):
            raise invalid("participant", name, f"has a weak one-time key, or did not sign it: {key.mask}")
    return keys


@router.put(
    f"{ASSIGNMENT}/shares",
    operation_id="put_shares",
    status_code=204,
    openapi_extra=BODY,
    responses=problems(
        "assignment.not_found",
        "lease.lost",
        "round.closed",
        "request.too_large",
        "secure.shares_invalid",
        "secure.conflict",
        "secure.closed",
    ),
)
def put_shares(
    participant: Participant, assignment_id: AssignmentId, message: Octets, fence: FenceHeader, context: WholeContext
) -> None:
    """Accepts the deal of a member of a secure sum, and takes its lease back until all have dealt.

    Requires a participant's token. The same deal may be sent again. A sum of larger vectors than the service takes ends
    here, before anyone trains for it.
    """
    with _receiving(context, participant, assignment_id) as s:
        engine.receive_deal(s, assignment_id, fence, message)
        assignment = assignments.get(s, assignment_id)
        rosters = secure_sums.rosters_of(s, assignment.round_id)
        require_acceptable(context, secure_sums.roster_with(rosters, assignment.participant).layout.size)


@router.get(
    f"{ASSIGNMENT}/shares",
    operation_id="get_shares",
    response_class=Response,
    responses={
        200: {"description": "For each other member that dealt: place ‖ its part of the deal", "content": BINARY},
        **problems("assignment.not_found", "secure.closed"),
    },
)
def get_shares(assignment_id: AssignmentId, participant: Participant, context: WholeContext) -> Response:
    """Returns the shares that the others dealt to this member of a secure sum. Requires a participant's token."""
    with context.database.read() as s:
        assignments.require_own(s, assignment_id, participant.id)
        return Response(engine.delivery(s, assignment_id), media_type=OCTETS)


@router.put(
    f"{ASSIGNMENT}/survivors",
    operation_id="put_survivors",
    status_code=204,
    openapi_extra=BODY,
    responses=problems("assignment.not_found", "secure.survivors_invalid", "secure.closed"),
)
def put_survivors(
    participant: Participant, assignment_id: AssignmentId, message: Octets, context: WholeContext
) -> None:
    """Accepts a survivor's signature of the list of survivors, 64 octets. Requires a participant's token."""
    with _receiving(context, participant, assignment_id) as s:
        engine.receive_signature(s, assignment_id, message)


@router.put(
    f"{ASSIGNMENT}/unmask",
    operation_id="put_unmask",
    status_code=204,
    openapi_extra=BODY,
    responses=problems("assignment.not_found", "secure.shares_invalid", "secure.closed"),
)
def put_unmask(participant: Participant, assignment_id: AssignmentId, message: Octets, context: WholeContext) -> None:
    """Accepts a survivor's shares: of survivors' seeds, and of dropouts' mask secrets. Requires a participant's
    token. A refused message is in `/rejections` of the experiment, under its sender."""
    with _receiving(context, participant, assignment_id) as s:
        engine.receive_shares(s, assignment_id, message)


@router.get(
    "/experiments/{experiment_id}/rounds/{number}/transcripts",
    operation_id="list_transcripts",
    responses=problems("experiment.not_found", "round.not_found", "round.too_small"),
)
def list_transcripts(
    experiment_id: ExperimentId, number: RoundNumber, reader: Reading, context: WholeContext
) -> SumTranscripts:
    """Returns the transcripts of a committed round's secure sums, by group; none for other rounds.

    Each opens the sum of its group's masked vectors, and none of them. The round's record has its digest. Open to users
    and to the experiment's participants.
    """
    with reader.database.read() as s:
        _require_large(s, reader, experiment_id, number, context.settings.min_participants)
        return SumTranscripts(transcripts=secure_sums.transcripts(s, experiment_id, number))


@router.get(
    "/experiments/{experiment_id}/rounds/{number}/masked/{participant}",
    operation_id="get_masked_vector",
    response_class=Response,
    responses={
        200: {"description": "The masked vector; ETag is its digest", "content": BINARY},
        206: {"description": "The requested range", "content": BINARY},
        304: {"description": "The masked vector is the one named in If-None-Match"},
        **problems(
            "experiment.not_found",
            "round.not_found",
            "round.too_small",
            "receipt.not_found",
            "storage.missing",
            "storage.corrupt",
            "range.invalid",
        ),
    },
)
def get_masked_vector(
    experiment_id: ExperimentId,
    number: RoundNumber,
    participant: ParticipantName,
    request: Request,
    reader: Reading,
    context: WholeContext,
) -> Response:
    """Returns the masked vector of a survivor of a committed secure sum. The round's record has its digest.

    Open to users and to the experiment's participants.
    """
    with reader.database.read() as s:
        _require_large(s, reader, experiment_id, number, context.settings.min_participants)
        record = ledger.get(s, experiment_id, number).record
        sent = dict(record["contributions"]) | {name: digest for name, digest, _ in record["refused"]}
        masked = experiments.spec_of(experiments.get(s, experiment_id)).secure.masked
        digest = sent.get(participant) if masked else None
    if digest is None:
        message = f"has no masked vector in the record of round {number}"
        raise FerretError.of_field("receipt.not_found", "participant", participant, message)
    location = blob_location(FileKind.CONTRIBUTION, digest)
    with blobs.repairing(context, experiment_id):
        size = context.storage.size(location)
    blob = blobs.Blob(experiment_id, location, digest, size, f"masked-{number}-{participant}")
    return blobs.respond(context, blob, request)


def _require_large(s: Session, reader: Reader, experiment_id: str, number: int, least: int) -> None:
    experiment = experiments.get(s, experiment_id)
    ledger.get(s, experiment_id, number)
    downloads.require_enough_participants(s, reader, experiment, number, least, change=True)


@contextmanager
def _receiving(context: Context, participant: Identity, assignment_id: str) -> Generator[Session]:
    """Begins a transaction for a message to the participant's assignment, and records wrong messages."""
    try:
        with context.database.begin() as s:
            assignments.require_own(s, assignment_id, participant.id)
            yield s
    except FerretError as error:
        if error.code in WRONG:
            record_rejection(context, assignment_id, error)
        raise
