"""Moving an experiment on: pause and resume, cancel, extend, clone, archive, delete.

Each answers with the experiment as it then is. What is done already is no error, however often it is asked for; what
the experiment's state forbids is ``experiment.conflict``.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response

from api.auth import AdminOnly
from api.context import ContextDep
from api.experiments.endpoints import QUEUED, IdempotencyKey
from api.experiments.schemas import Experiment
from api.lifecycle import service
from api.lifecycle.schemas import Extension
from api.openapi import problems
from api.schemas import PREFIX, ExperimentId, Json
from ferret_db.engine import lifecycle

router = APIRouter(prefix=f"{PREFIX}/experiments", tags=["experiments"], dependencies=[AdminOnly])

CONFLICT = problems("experiment.not_found", "experiment.conflict")
Patch = Annotated[
    Json,
    Body(
        media_type="application/merge-patch+json",
        description="JSON Merge Patch (RFC 7396) of the specification; null takes a member away",
        examples=[{"name": "twice the coordinates", "algorithm": {"K": 8192}}],
    ),
]


@router.post("/{experiment_id}:pause", operation_id="pause_experiment", responses=CONFLICT)
def pause_experiment(experiment_id: ExperimentId, context: ContextDep) -> Experiment:
    """Stops a running experiment for a while, mid-round too: leases end, what was accepted stays."""
    return service.move(context.database, lifecycle.pause, experiment_id)


@router.post("/{experiment_id}:resume", operation_id="resume_experiment", responses=CONFLICT)
def resume_experiment(experiment_id: ExperimentId, context: ContextDep) -> Experiment:
    """Goes on where the experiment was paused; the open round has the time left that it had then."""
    return service.move(context.database, lifecycle.resume, experiment_id)


@router.post("/{experiment_id}:cancel", operation_id="cancel_experiment", responses=CONFLICT)
def cancel_experiment(experiment_id: ExperimentId, context: ContextDep) -> Experiment:
    """Stops the experiment for good; what it has committed stays."""
    return service.move(context.database, lifecycle.cancel, experiment_id)


@router.post(
    "/{experiment_id}:extend",
    operation_id="extend_experiment",
    responses=problems("experiment.not_found", "experiment.conflict", "extension.refused"),
)
def extend_experiment(experiment_id: ExperimentId, wanted: Extension, context: ContextDep) -> Experiment:
    """Adds rounds; a completed experiment runs again. Only under a constant server learning rate."""
    return service.extend(context.database, experiment_id, wanted)


@router.post(
    "/{experiment_id}:clone",
    operation_id="clone_experiment",
    status_code=202,
    responses={202: QUEUED, **problems("experiment.not_found", "spec.invalid", "idempotency.conflict")},
)
def clone_experiment(
    experiment_id: ExperimentId,
    patch: Patch,
    response: Response,
    context: ContextDep,
    idempotency_key: IdempotencyKey = None,
) -> Experiment:
    """Queues a new experiment: the same specification, changed by the patch."""
    experiment = service.clone(context.database, experiment_id, patch, idempotency_key)
    response.headers["Location"] = experiment.links.self
    return experiment


@router.post("/{experiment_id}:archive", operation_id="archive_experiment", responses=CONFLICT)
def archive_experiment(experiment_id: ExperimentId, context: ContextDep) -> Experiment:
    """Puts a finished experiment away: it stays, but lists leave it out."""
    return service.move(context.database, lifecycle.archive, experiment_id)


@router.post("/{experiment_id}:unarchive", operation_id="unarchive_experiment", responses=CONFLICT)
def unarchive_experiment(experiment_id: ExperimentId, context: ContextDep) -> Experiment:
    """Lists the experiment again."""
    return service.move(context.database, lifecycle.unarchive, experiment_id)


@router.delete("/{experiment_id}", operation_id="delete_experiment", status_code=204, responses=CONFLICT)
def delete_experiment(experiment_id: ExperimentId, context: ContextDep) -> None:
    """Forgets a finished experiment with its rounds, curves and ledger. Files that nobody else needs follow later."""
    service.delete(context.database, experiment_id)
