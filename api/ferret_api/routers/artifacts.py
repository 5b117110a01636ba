"""Endpoints for the files that an experiment has written."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from ferret_api import blobs, downloads
from ferret_api.access import Readable, Reading
from ferret_api.context import WholeContext
from ferret_api.http.errors import problems
from ferret_api.schemas import BINARY, PAGE, PREFIX, Cursor, ExperimentId, Limit
from ferret_core.protocol.resources.experiments import Artifact, ArtifactPage
from ferret_db import tables
from ferret_db.engine import checkpoints
from ferret_db.repositories import artifacts, experiments

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/artifacts", tags=["artifacts"])

_PROBLEMS = problems(
    "experiment.not_found", "artifact.not_found", "round.too_small", "storage.missing", "storage.corrupt"
)

ArtifactId = Annotated[str, Path(max_length=64, description="Id of the artifact")]


@router.get("", operation_id="list_artifacts", responses=problems("experiment.not_found"))
def list_artifacts(
    experiment_id: ExperimentId, database: Readable, limit: Limit = PAGE, cursor: Cursor = None
) -> ArtifactPage:
    """Lists the experiment's files by round and name. Open to users and to the experiment's participants."""
    with database.read() as s:
        experiment, kept = experiments.get(s, experiment_id), artifacts.rounds_of(s, experiment_id)
        best = next(iter(checkpoints.best(s, experiment, kept)), None)
        page = artifacts.list_page(s, experiment_id, limit, cursor)
        return ArtifactPage(items=[_shown(row, best) for row in page.items], next_cursor=page.next_cursor)


@router.head(
    "/{artifact_id}",
    operation_id="head_artifact",
    summary="Head Artifact",
    description="Returns the headers of a download without the bytes: `Content-Length`, and the digest as `ETag`.",
    response_class=Response,
    responses={304: {"description": "The file is the one named in If-None-Match"}, **_PROBLEMS},
)
@router.get(
    "/{artifact_id}",
    operation_id="download_artifact",
    response_class=Response,
    responses={
        200: {"description": "The whole file; ETag is its digest", "content": BINARY},
        206: {"description": "The requested range", "content": BINARY},
        304: {"description": "The file is the one named in If-None-Match"},
        **_PROBLEMS,
        **problems("range.invalid"),
    },
)
def download_artifact(
    experiment_id: ExperimentId, artifact_id: ArtifactId, request: Request, reader: Reading, context: WholeContext
) -> Response:
    """Returns the bytes of one file. A single `Range` resumes a download.

    Open to users and to the experiment's participants. Users get `round.too_small` if too few real participants
    contributed to the checkpoint's round and those before it that were too small."""
    with reader.database.read() as s:
        experiment = experiments.get(s, experiment_id)
        artifact = artifacts.get(s, experiment_id, artifact_id)
        downloads.require_enough_participants(s, reader, experiment, artifact.round, context.settings.min_participants)
    if request.method != "HEAD":
        downloads.record_checkpoint(context, reader, experiment_id, artifact.round)
    blob = blobs.Blob(experiment_id, artifact.location, artifact.digest, artifact.size, artifact.name)
    return blobs.respond(context, blob, request)


def _shown(row: tables.Artifact, best: int | None) -> Artifact:
    """``best`` is the best round with a kept checkpoint."""
    columns = {name: getattr(row, name) for name in Artifact.model_fields.keys() - {"href", "best"}}
    href = f"{PREFIX}/experiments/{row.experiment_id}/artifacts/{row.id}"
    return Artifact(href=href, best=row.round == best, **columns)
