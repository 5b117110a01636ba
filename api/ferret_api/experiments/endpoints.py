"""Submitting and finding experiments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from ferret_api.auth import Readable, Researcher, Viewer
from ferret_api.context import ContextDep
from ferret_api.errors import SUBMIT
from ferret_api.experiments import service
from ferret_api.experiments.schemas import Experiment, ExperimentPage
from ferret_api.pagination import PAGE, Cursor, Limit
from ferret_api.problems import problems
from ferret_api.schemas import PREFIX, ExperimentId, IdempotencyKey
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_db.repositories.experiments import ExperimentFilter

router = APIRouter(prefix=f"{PREFIX}/experiments", tags=["experiments"])

InProject = Annotated[
    str | None,
    Query(max_length=64, description="Project that it is to belong to; may be left out by who sees only one"),
]
QUEUED = {"headers": {"Location": {"description": "The experiment", "schema": {"type": "string"}}}}


def _filter(
    state: Annotated[list[ExperimentState], Query(default_factory=list, description="Any of these states")],
    algorithm: Annotated[str | None, Query(max_length=64)] = None,
    dataset: Annotated[str | None, Query(max_length=64)] = None,
    name: Annotated[str | None, Query(max_length=120, description="Part of the name, upper or lower case")] = None,
    archived: Annotated[bool, Query(description="True: archived experiments only. False: all others")] = False,
    project: Annotated[str | None, Query(max_length=64, description="Name of the project")] = None,
) -> ExperimentFilter:
    return ExperimentFilter(state, algorithm, dataset, name, archived, project)


@router.post(
    "",
    operation_id=SUBMIT,
    status_code=202,
    responses={
        202: QUEUED,
        **problems(
            "spec.invalid",
            "dataset.invalid",
            "model.invalid",
            "project.not_found",
            "project.refused",
            "idempotency.conflict",
        ),
    },
)
def submit_experiment(
    spec: ExperimentSpec,
    response: Response,
    caller: Researcher,
    context: ContextDep,
    project: InProject = None,
    idempotency_key: IdempotencyKey = None,
) -> Experiment:
    """Stores a queued experiment and answers at once; a worker takes it from there."""
    experiment = service.submit(
        caller.database, spec, context.settings.roots, caller.id, project=project, idempotency_key=idempotency_key
    )
    response.headers["Location"] = experiment.links.self
    return experiment


@router.get("", operation_id="list_experiments")
def list_experiments(
    caller: Viewer,
    wanted: Annotated[ExperimentFilter, Depends(_filter)],
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ExperimentPage:
    """Experiments of the caller's projects, the newest first."""
    return service.list_page(caller.database, wanted, limit, cursor)


@router.get(
    "/{experiment_id}",
    operation_id="get_experiment",
    responses=problems("experiment.not_found"),
)
def get_experiment(experiment_id: ExperimentId, database: Readable) -> Experiment:
    """One experiment with its specification and where it stands."""
    return service.show(database, experiment_id)
