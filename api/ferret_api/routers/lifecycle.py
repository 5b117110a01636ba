"""Endpoints for actions on an experiment: pause, resume, cancel, extend, clone, archive, delete.

Each returns the experiment after the action. Repeating an action succeeds. An action that the experiment's state does
not allow fails with ``experiment.conflict``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field, ValidationError
from sqlalchemy.orm import Session

from ferret_api.access import Researcher
from ferret_api.context import ContextDep
from ferret_api.experiments import service
from ferret_api.http.errors import problems
from ferret_api.participants import resumable_upload
from ferret_api.routers.experiments import QUEUED
from ferret_api.schemas import PREFIX, Command, ExperimentId, IdempotencyKey
from ferret_core.experiment.spec_patch import revise
from ferret_core.protocol.audit import AuditAction
from ferret_core.protocol.errors import FerretError, field_errors
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.resources.base import Json
from ferret_core.protocol.resources.experiments import Experiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import audit, experiments, participants


class Extension(Command, json_schema_extra={"examples": [{"rounds": 10, "expected_rounds": 20}]}):
    """Request for more rounds."""

    rounds: int = Field(ge=1, le=MAX_ROUNDS, description="Rounds to add")
    expected_rounds: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ROUNDS,
        description="Number of rounds before the extension: `rounds`, or `round` of an experiment that stopped early. "
        "With it a repeated request adds rounds only once",
    )


router = APIRouter(prefix=f"{PREFIX}/experiments", tags=["experiments"])

ToProject = Annotated[
    str | None, Query(max_length=64, description="Project of the clone; by default that of the original")
]
CONFLICT = problems("experiment.not_found", "experiment.conflict")
Patch = Annotated[
    Json,
    Body(
        media_type="application/merge-patch+json",
        description="JSON Merge Patch (RFC 7396) of the specification; null resets a value to its default",
        examples=[{"name": "twice the coordinates", "algorithm": {"K": 8192}}],
    ),
]


@router.post("/{experiment_id}:pause", operation_id="pause_experiment", responses=CONFLICT)
def pause_experiment(experiment_id: ExperimentId, caller: Researcher) -> Experiment:
    """Pauses a running experiment, also during a round. Requires the role researcher.

    Work in progress is lost; accepted contributions are kept. Repeating the action succeeds."""
    return _move(caller.database, lifecycle.pause, experiment_id, caller.id, "experiment.paused")


@router.post("/{experiment_id}:resume", operation_id="resume_experiment", responses=CONFLICT)
def resume_experiment(experiment_id: ExperimentId, caller: Researcher) -> Experiment:
    """Resumes a paused experiment. The open round has as much time left as when it was paused.

    Requires the role researcher. Repeating the action succeeds."""
    return _move(caller.database, lifecycle.resume, experiment_id, caller.id, "experiment.resumed")


@router.post("/{experiment_id}:cancel", operation_id="cancel_experiment", responses=CONFLICT)
def cancel_experiment(experiment_id: ExperimentId, caller: Researcher) -> Experiment:
    """Stops the experiment permanently. Committed rounds are kept. Requires the role researcher."""
    return _move(caller.database, lifecycle.cancel, experiment_id, caller.id, "experiment.cancelled")


@router.post(
    "/{experiment_id}:extend",
    operation_id="extend_experiment",
    responses=problems("experiment.not_found", "experiment.conflict", "extension.refused"),
)
def extend_experiment(experiment_id: ExperimentId, wanted: Extension, caller: Researcher) -> Experiment:
    """Adds rounds. A completed experiment runs again. Requires the role researcher.

    A schedule of the local learning rate stretches over the new number of rounds. `extension.refused` if the server
    learning rate is not constant, or the total would exceed the maximum of rounds."""
    with caller.database.begin() as s:
        experiment = experiments.lock(s, experiment_id)
        expected, so_far = wanted.expected_rounds, lifecycle.rounds_to_the_end(experiment)
        if expected is not None and so_far == expected + wanted.rounds and not experiment.stopped:
            return service.shown(s, experiment)
        if expected is not None and so_far != expected:
            message = f"{experiment_id} has {so_far} rounds now; reload it and try again"
            raise FerretError.of_field("experiment.conflict", "expected_rounds", expected, message)
        extended = lifecycle.extend(s, experiment_id, wanted.rounds)
        audit.record(s, caller.id, "experiment.extended", experiment_id, name=extended.name, rounds=extended.rounds)
        return service.shown(s, extended)


@router.post(
    "/{experiment_id}:clone",
    operation_id="clone_experiment",
    status_code=202,
    responses={
        202: QUEUED,
        **problems(
            "experiment.not_found",
            "spec.invalid",
            "dataset.invalid",
            "model.invalid",
            "project.not_found",
            "project.refused",
            "idempotency.conflict",
        ),
    },
)
def clone_experiment(
    experiment_id: ExperimentId,
    patch: Patch,
    response: Response,
    caller: Researcher,
    context: ContextDep,
    project: ToProject = None,
    idempotency_key: IdempotencyKey = None,
) -> Experiment:
    """Queues a new experiment with the same specification, changed by the patch. Requires the role researcher.

    A patch with another algorithm, dataset or partition drops the options of the previous one, except the options of
    `algorithm.local` that both algorithms have. A new option removes the options that it excludes."""
    with caller.database.read() as s:
        original = experiments.get(s, experiment_id)
    try:
        named = {**original.spec, "name": original.name}
        spec = ExperimentSpec.model_validate(revise(named, patch).document)
    except ValidationError as error:
        raise FerretError.of_fields("spec.invalid", field_errors(error, model=ExperimentSpec)) from error
    experiment = service.submit(
        caller.database,
        spec,
        context.settings.readable,
        caller.id,
        project=project or original.project,
        idempotency_key=idempotency_key,
        original=original,
    )
    response.headers["Location"] = experiment.links.self
    return experiment


@router.post("/{experiment_id}:archive", operation_id="archive_experiment", responses=CONFLICT)
def archive_experiment(experiment_id: ExperimentId, caller: Researcher) -> Experiment:
    """Archives a finished experiment. It is kept, but lists leave it out by default. Requires the role researcher."""
    return _move(caller.database, lifecycle.archive, experiment_id, caller.id, "experiment.archived")


@router.post("/{experiment_id}:unarchive", operation_id="unarchive_experiment", responses=CONFLICT)
def unarchive_experiment(experiment_id: ExperimentId, caller: Researcher) -> Experiment:
    """Restores an archived experiment, so that it is listed again. Requires the role researcher."""
    return _move(caller.database, lifecycle.unarchive, experiment_id, caller.id, "experiment.unarchived")


@router.delete("/{experiment_id}", operation_id="delete_experiment", status_code=204, responses=CONFLICT)
def delete_experiment(experiment_id: ExperimentId, caller: Researcher, context: ContextDep) -> None:
    """Deletes a finished experiment with its rounds, metrics and ledger. Requires the role researcher.

    Files that no other experiment uses are deleted later."""
    with caller.database.begin() as s:
        name = experiments.lock(s, experiment_id).name
        members = [row.id for row in participants.ever_of_experiment(s, experiment_id)]
        lifecycle.delete(s, experiment_id)
        audit.record(s, caller.id, "experiment.deleted", experiment_id, name=name)
    resumable_upload.forget(context.storage, members)


Move = Callable[[Session, str], tables.Experiment]


def _move(database: Database, transition: Move, experiment_id: str, actor: str, action: AuditAction) -> Experiment:
    with database.begin() as s:
        before = _standing(experiments.lock(s, experiment_id))
        after = transition(s, experiment_id)
        if _standing(after) != before:  # repeating an action changes nothing and is not recorded
            audit.record(s, actor, action, experiment_id, name=after.name)
        return service.shown(s, after)


def _standing(experiment: tables.Experiment) -> tuple[str, datetime | None]:
    return experiment.state, experiment.archived_at
