"""Endpoints for the ledger, its updates and receipts, from which anyone can rebuild and check the global model."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ferret_api import blobs, downloads
from ferret_api.access import Readable, Reading
from ferret_api.context import WholeContext
from ferret_api.http.errors import problems
from ferret_api.schemas import BINARY, PAGE, PREFIX, After, ExperimentId, Limit, ParticipantName, RoundNumber
from ferret_core.ledger.receipt import Receipt
from ferret_core.protocol.resources.rounds import LedgerEntry, LedgerPage
from ferret_core.storage import FileKind, blob_location
from ferret_db.engine import receipts
from ferret_db.repositories import experiments, ledger

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}", tags=["ledger"])

_PROBLEMS = problems("experiment.not_found", "round.not_found", "round.too_small", "storage.missing", "storage.corrupt")


@router.get("/ledger", operation_id="list_ledger", responses=problems("experiment.not_found"))
def list_ledger(experiment_id: ExperimentId, database: Readable, after: After = 0, limit: Limit = PAGE) -> LedgerPage:
    """Lists the ledger entries of the rounds after `after`, in order.

    Open to users and to the experiment's participants."""
    with database.read() as s:
        experiments.get(s, experiment_id)
        found = ledger.after(s, experiment_id, after, limit)
        return LedgerPage(items=[LedgerEntry.model_validate(entry) for entry in found])


@router.head(
    "/updates/{round}",
    operation_id="head_update",
    summary="Head Update",
    description="Returns the update's length as `Content-Length` and its digest as `ETag`, without the bytes.",
    response_class=Response,
    responses={304: {"description": "The update is the one named in If-None-Match"}, **_PROBLEMS},
)
@router.get(
    "/updates/{round}",
    operation_id="get_update",
    response_class=Response,
    responses={
        200: {"description": "The update blob; ETag is its digest", "content": BINARY},
        206: {"description": "The requested range", "content": BINARY},
        304: {"description": "The update is the one named in If-None-Match"},
        **_PROBLEMS,
        **problems("range.invalid"),
    },
)
def get_update(
    experiment_id: ExperimentId, round: RoundNumber, request: Request, reader: Reading, context: WholeContext
) -> Response:
    """Returns the update that a committed round applied. A single `Range` resumes a download.

    Open to users and to the experiment's participants. Users get `round.too_small` if too few real participants
    contributed to the round, or to the one before."""
    with reader.database.read() as s:
        experiment = experiments.get(s, experiment_id)
        entry = ledger.get(s, experiment_id, round)
        least = context.settings.min_participants
        downloads.require_enough_participants(s, reader, experiment, round, least, change=True)
    if request.method != "HEAD":
        downloads.record_update(context, reader, experiment_id, round)
    location = blob_location(FileKind.UPDATE, entry.update_digest)
    blob = blobs.Blob(experiment_id, location, entry.update_digest, entry.update_size, f"update-{round}")
    return blobs.respond(context, blob, request)


@router.get(
    "/rounds/{number}/receipts/{participant}",
    operation_id="get_receipt",
    responses=problems(
        "experiment.not_found", "participant.not_found", "round.not_found", "round.uncommitted", "receipt.not_found"
    ),
)
def get_receipt(
    experiment_id: ExperimentId, number: RoundNumber, participant: ParticipantName, database: Readable
) -> Receipt:
    """Returns a proof that the round's record holds the participant's contribution. It is checked against the record's
    hash.

    Open to users and to the experiment's participants. `round.uncommitted` until the round has a record.
    `receipt.not_found` if the record does not hold the contribution; the detail gives the reason.
    """
    with database.read() as s:
        return receipts.receipt(s, experiment_id, number, participant)
