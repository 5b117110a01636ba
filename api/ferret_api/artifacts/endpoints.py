"""The files that an experiment has written."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from ferret_api.artifacts import download
from ferret_api.artifacts.schemas import Artifact, ArtifactList
from ferret_api.auth import Readable
from ferret_api.context import WholeContext
from ferret_api.problems import problems
from ferret_api.schemas import BINARY, PREFIX, ExperimentId
from ferret_db.engine import checkpoints
from ferret_db.repositories import artifacts, experiments

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/artifacts", tags=["artifacts"])

ArtifactId = Annotated[str, Path(max_length=64, description="Id of the artifact")]


@router.get("", operation_id="list_artifacts", responses=problems("experiment.not_found"))
def list_artifacts(experiment_id: ExperimentId, database: Readable) -> ArtifactList:
    """All files, by round and name."""
    with database.read() as s:
        experiment, found = experiments.get(s, experiment_id), artifacts.of_experiment(s, experiment_id)
        best = next(iter(checkpoints.best(s, experiment, [artifact.round for artifact in found])), None)
        return ArtifactList(items=[Artifact.of(artifact, best) for artifact in found])


@router.get(
    "/{artifact_id}",
    operation_id="download_artifact",
    response_class=Response,
    responses={
        200: {"description": "The whole file; ETag is its digest", "content": BINARY},
        206: {"description": "The range asked for", "content": BINARY},
        304: {"description": "The file is the one named in If-None-Match"},
        **problems("experiment.not_found", "artifact.not_found", "range.invalid", "storage.missing", "storage.corrupt"),
    },
)
def download_artifact(
    experiment_id: ExperimentId, artifact_id: ArtifactId, request: Request, database: Readable, context: WholeContext
) -> Response:
    """The bytes of one file; a single `Range` resumes a download."""
    with database.read() as s:
        experiments.get(s, experiment_id)
        artifact = artifacts.get(s, experiment_id, artifact_id)
    return download.respond(context, artifact, request.headers)
