"""Submitting and finding experiments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Header, Query, Response
from pydantic import AwareDatetime

from ferret_api.access import Reading, Researcher, Viewer
from ferret_api.context import ContextDep
from ferret_api.experiments import edit, listing, service
from ferret_api.experiments.schemas import ExperimentChange
from ferret_api.http.errors import SUBMIT
from ferret_api.http.openapi_example import SPECIFICATION
from ferret_api.http.pagination import PAGE, Cursor, Limit
from ferret_api.http.problems import problems
from ferret_api.schemas import PREFIX, ExperimentId, IdempotencyKey
from ferret_core.protocol.priority import LEAST_PRIORITY, Priority
from ferret_core.protocol.resources.experiments import Experiment, ExperimentGroupPage, ExperimentPage, JoinedExperiment
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tags_and_notes import MOST_TAGS, Tag
from ferret_db.repositories.experiment_list import NEWEST_FIRST, ExperimentFilter
from ferret_db.repositories.experiment_sorting import sorts

router = APIRouter(prefix=f"{PREFIX}/experiments", tags=["experiments"])

InProject = Annotated[
    str | None,
    Query(max_length=64, description="Project that it is to belong to; may be left out by who sees only one"),
]
Sort = Annotated[
    str,
    Query(
        max_length=64,
        description="A column: the experiments' own, their bytes, or the last or best value of a metric. With a minus "
        "before it the greatest comes first; experiments without a value always come last",
        json_schema_extra={"enum": sorts()},
    ),
]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=500, description="The `ETag` of what was read: an edit since then is refused"),
]
Change = Annotated[
    ExperimentChange,
    Body(
        media_type="application/merge-patch+json",
        description="JSON Merge Patch (RFC 7396)",
        examples=[{"tags": ["hearts", "K search"], "notes": "Twice the coordinates of *hearts 3*."}],
    ),
]
ETAG = {"ETag": {"description": "Of name, tags, notes and priority, which can be edited", "schema": {"type": "string"}}}
QUEUED = {"headers": {"Location": {"description": "The experiment", "schema": {"type": "string"}}}}


def _filter(
    state: Annotated[list[ExperimentState], Query(default_factory=list, description="Any of these states")],
    tag: Annotated[list[Tag], Query(default_factory=list, max_length=MOST_TAGS, description="Each of these tags")],
    algorithm: Annotated[str | None, Query(max_length=64)] = None,
    dataset: Annotated[str | None, Query(max_length=64)] = None,
    name: Annotated[str | None, Query(max_length=120, description="Part of the name, upper or lower case")] = None,
    archived: Annotated[bool, Query(description="True: archived experiments only. False: all others")] = False,
    project: Annotated[str | None, Query(max_length=64, description="Name of the project")] = None,
    created_after: Annotated[AwareDatetime | None, Query(description="Submitted then or later")] = None,
    created_before: Annotated[AwareDatetime | None, Query(description="Submitted earlier")] = None,
    seed_group: Annotated[str | None, Query(max_length=64, description="Of this group, by its key")] = None,
) -> ExperimentFilter:
    return ExperimentFilter(
        state, algorithm, dataset, name, archived, project, tag, created_after, created_before, seed_group
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
    """Stores a queued experiment and answers at once; a worker takes it from there."""
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
    sort: Sort = NEWEST_FIRST,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ExperimentPage:
    """Experiments of the caller's projects, the newest first unless another order is asked for.

    A page begins behind the last item of the one before, whatever has changed since: no experiment that stays where it
    is in the order is left out or shown twice."""
    return listing.list_page(caller.database, wanted, sort, limit, cursor)


@router.get("/groups", operation_id="list_experiment_groups")
def list_experiment_groups(
    caller: Viewer,
    wanted: Annotated[ExperimentFilter, Depends(_filter)],
    sort: Sort = NEWEST_FIRST,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ExperimentGroupPage:
    """The same experiments as `list_experiments` gives, where those that differ in name and seed only are one item.

    A group is sorted by the mean of a metric, the sum of bytes, the last of times, and else by the least of its
    experiments' values. `list_experiments` with its key as `seed_group` and the same filters lists what is in it."""
    return listing.group_page(caller.database, wanted, sort, limit, cursor)


@router.get(
    "/{experiment_id}",
    operation_id="get_experiment",
    responses={200: {"headers": ETAG}, **problems("experiment.not_found")},
)
def get_experiment(experiment_id: ExperimentId, response: Response, reader: Reading) -> Experiment | JoinedExperiment:
    """One experiment with its specification and how far it has come. Users get an `Experiment`, with an `ETag`;
    a participant gets a `JoinedExperiment`."""
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
    """Another name, tags, notes or priority, whatever state the experiment is in; what is trained does not change."""
    return _tagged(response, edit.edit(caller.database, experiment_id, change, if_match, caller.id))


def _tagged(response: Response, experiment: Experiment) -> Experiment:
    response.headers["ETag"] = edit.entity_tag(experiment)
    return experiment
