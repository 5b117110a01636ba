"""Endpoints that submit, list, show and edit experiments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Header, Query, Response
from pydantic import AwareDatetime, Field

from ferret_api.access import Reading, Researcher, Viewer
from ferret_api.context import ContextDep
from ferret_api.experiments import edit, listing, service
from ferret_api.experiments.edit import ExperimentChange
from ferret_api.http.errors import SUBMIT, problems
from ferret_api.schemas import PAGE, PREFIX, SPECIFICATION, Cursor, ExperimentId, IdempotencyKey, Limit
from ferret_core.protocol.resources.experiments import Experiment, ExperimentGroupPage, ExperimentPage, JoinedExperiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tags_and_notes import LEAST_PRIORITY, MOST_TAGS, Priority, Tag
from ferret_db.repositories.experiment_list import BOUND, NEWEST_FIRST, ExperimentFilter, numbers, sorts

router = APIRouter(prefix=f"{PREFIX}/experiments", tags=["experiments"])

InProject = Annotated[
    str | None,
    Query(max_length=64, description="Project of the experiment. Optional if the caller belongs to exactly one"),
]
Sort = Annotated[
    str,
    Query(
        max_length=64,
        description="Column to sort by: an experiment's attribute, its bytes, or the last or best value of a metric. "
        "A leading minus sorts in descending order. Experiments without a value always come last",
        json_schema_extra={"enum": sorts()},
    ),
]
Where = Annotated[
    list[Annotated[str, Field(pattern=BOUND)]],
    Query(
        default_factory=list,
        max_length=10,
        description="Only experiments whose number in a column is within this bound, such as `eval_loss<2`. "
        f"Columns: {', '.join(numbers())}",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=500,
        description="`ETag` of the experiment when it was read. A later edit makes this one fail",
    ),
]
Change = Annotated[
    ExperimentChange,
    Body(
        media_type="application/merge-patch+json",
        description="JSON Merge Patch (RFC 7396)",
        examples=[{"tags": ["hearts", "K search"], "notes": "Twice the coordinates of *hearts 3*."}],
    ),
]
ETAG = {
    "ETag": {
        "description": "Entity tag of name, tags, notes and priority, the fields that can be edited",
        "schema": {"type": "string"},
    }
}
QUEUED = {"headers": {"Location": {"description": "The experiment", "schema": {"type": "string"}}}}

Stalled = Annotated[bool, Query(description="True: only experiments that cannot make progress")]


def _filter(
    state: Annotated[
        list[ExperimentState], Query(default_factory=list, description="Only experiments in one of these states")
    ],
    tag: Annotated[
        list[Tag],
        Query(default_factory=list, max_length=MOST_TAGS, description="Only experiments with all of these tags"),
    ],
    algorithm: Annotated[str | None, Query(max_length=64)] = None,
    dataset: Annotated[str | None, Query(max_length=64)] = None,
    name: Annotated[str | None, Query(max_length=120, description="Part of the name; case is ignored")] = None,
    archived: Annotated[bool, Query(description="True: archived experiments only. False: all others")] = False,
    project: Annotated[str | None, Query(max_length=64, description="Name of the project")] = None,
    created_after: Annotated[
        AwareDatetime | None, Query(description="Only experiments submitted at or after this time")
    ] = None,
    created_before: Annotated[
        AwareDatetime | None, Query(description="Only experiments submitted before this time")
    ] = None,
    seed_group: Annotated[
        str | None, Query(max_length=64, description="Only experiments of the group with this key")
    ] = None,
    *,
    where: Where,
) -> ExperimentFilter:
    return ExperimentFilter(
        state,
        algorithm,
        dataset,
        name,
        archived,
        project,
        tag,
        created_after,
        created_before,
        seed_group,
        bounds=where,
    )


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
    spec: Annotated[ExperimentSpec, Body(examples=[SPECIFICATION])],
    response: Response,
    caller: Researcher,
    context: ContextDep,
    project: InProject = None,
    priority: Annotated[Priority, Query()] = LEAST_PRIORITY,
    idempotency_key: IdempotencyKey = None,
) -> Experiment:
    """Queues an experiment and returns it immediately; a worker runs it. Requires the role researcher.

    `Location` in the response is the experiment's address. `project.refused` if the project does not allow the model
    or the data."""
    experiment = service.submit(
        caller.database,
        spec,
        context.settings.readable,
        caller.id,
        project=project,
        priority=priority,
        idempotency_key=idempotency_key,
    )
    response.headers["Location"] = experiment.links.self
    return experiment


@router.get("", operation_id="list_experiments")
def list_experiments(
    caller: Viewer,
    wanted: Annotated[ExperimentFilter, Depends(_filter)],
    stalled: Stalled = False,
    sort: Sort = NEWEST_FIRST,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ExperimentPage:
    """Lists the experiments of the caller's projects, by default newest first. Requires the role viewer.

    A page begins after the last item of the previous page, even if the list has changed since. An experiment
    that keeps its position in the order is neither skipped nor repeated."""
    return listing.list_page(caller.database, wanted, stalled, sort, limit, cursor)


@router.get("/groups", operation_id="list_experiment_groups")
def list_experiment_groups(
    caller: Viewer,
    wanted: Annotated[ExperimentFilter, Depends(_filter)],
    stalled: Stalled = False,
    sort: Sort = NEWEST_FIRST,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ExperimentGroupPage:
    """Lists groups of experiments that differ only in name and seed. Requires the role viewer.

    Takes the filters of `list_experiments`. The sort key of a group is the mean of a metric, the sum of bytes, the
    latest of its times, and for other columns the smallest value of its experiments. To list a group's experiments,
    call `list_experiments` with the group's key as `seed_group` and the same filters."""
    return listing.group_page(caller.database, wanted, stalled, sort, limit, cursor)


@router.get(
    "/{experiment_id}",
    operation_id="get_experiment",
    responses={200: {"headers": ETAG}, **problems("experiment.not_found")},
)
def get_experiment(experiment_id: ExperimentId, response: Response, reader: Reading) -> Experiment | JoinedExperiment:
    """Returns one experiment with its specification and progress.

    Users get an `Experiment` with an `ETag`. A participant of the experiment gets a `JoinedExperiment`."""
    if reader.is_participant:
        return service.show_participant(reader.database, experiment_id)
    return _tagged(response, service.show(reader.database, experiment_id))


@router.patch(
    "/{experiment_id}",
    operation_id="edit_experiment",
    responses={200: {"headers": ETAG}, **problems("experiment.not_found", "experiment.changed")},
)
def edit_experiment(
    experiment_id: ExperimentId, change: Change, response: Response, caller: Researcher, if_match: IfMatch = None
) -> Experiment:
    """Changes name, tags, notes or priority, in any state. Training is not affected. Requires the role researcher.

    `experiment.changed` if `If-Match` does not match: the experiment was edited since it was read."""
    return _tagged(response, edit.edit(caller.database, experiment_id, change, if_match, caller.id))


def _tagged(response: Response, experiment: Experiment) -> Experiment:
    response.headers["ETag"] = edit.entity_tag(experiment)
    return experiment
