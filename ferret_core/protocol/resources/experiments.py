"""Experiments, single and in lists."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, computed_field
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ferret_core.protocol.ids import ArtifactId, Digest, ExperimentId
from ferret_core.protocol.resources.base import (
    API_PATH,
    Bytes,
    Count,
    Failure,
    FailureTitle,
    Page,
    Resource,
    RoundNumber,
    always_sent,
)
from ferret_core.protocol.sanitize import Line, Words
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tags_and_notes import LEAST_PRIORITY, Priority


class _SpecificationSchema:
    """Describes a dictionary as a specification. It is not validated as one, because a newer server may add fields."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(ExperimentSpec.__pydantic_core_schema__)


SpecificationJson = Annotated[dict[str, Any], _SpecificationSchema]


class MetricSummary(Resource):
    """A metric over the rounds so far."""

    first: float
    last: float
    best: float | None = Field(description="Null if the metric has no better direction, as with bytes")


class Stall(Resource):
    """Reason for a stalled experiment. It continues by itself once the reason is gone."""

    code: Line = Field(description="Stable name of the reason")
    detail: Words = Field(description="The missing resource and the next step")
    since: datetime


class BestRound(Resource):
    """The round with the best value of `stopping.metric`; the first of equals."""

    metric: Line
    round: RoundNumber = Field(description="0 is the base model")
    value: float


class EarlyStop(Resource):
    """Early end of an experiment, as `stopping` in its specification requests."""

    round: RoundNumber = Field(description="Its last round")
    detail: Words = Field(description="Readable reason for the early end")
    best: BestRound


class Decline(Resource):
    """The result is worse than the base model or than the best round, by `stopping.metric`."""

    round: RoundNumber = Field(description="The last evaluated round")
    detail: Words = Field(description="Readable comparison")
    best: BestRound


class Reader(Resource):
    """The people or machines `who` read `what`."""

    who: Line
    what: Line


class Privacy(Resource):
    """The privacy of an experiment's real participants under its settings."""

    readers: list[Reader] = Field(description="Readers of contributions")
    useful_coordinates: float | None = Field(
        description="K*: the number of coordinates at which the noise that protects records and the projection cost "
        "the same; null without such noise"
    )
    audit: Line | None = Field(description="The last audit of such noise, on another model; null without such noise")


class ExperimentLinks(Resource):
    """Paths of the experiment and of its parts."""

    self: str
    rounds: str
    contributions: str
    rejections: str
    metrics: str
    artifacts: str
    ledger: str
    events: str
    stream: str

    @classmethod
    def of(cls, experiment_id: str) -> ExperimentLinks:
        base = f"{API_PATH}/experiments/{experiment_id}"
        return cls(
            self=base,
            rounds=f"{base}/rounds",
            contributions=f"{base}/contributions",
            rejections=f"{base}/rejections",
            metrics=f"{base}/metrics",
            artifacts=f"{base}/artifacts",
            ledger=f"{base}/ledger",
            events=f"{base}/events",
            stream=f"{base}/events/stream",
        )


class JoinedExperiment(Resource):
    """An experiment as its participants see it: the fields needed to follow the model, and the metrics of its model
    card.

    Only researchers see notes, tags, the project, paths on the server and the failures of other sites.
    """

    id: ExperimentId
    name: Line
    state: ExperimentState
    algorithm: Line
    dataset: Line
    rounds: RoundNumber = Field(description="Planned number of rounds")
    round: RoundNumber = Field(description="Last committed round; 0 before the first")
    participants: Count
    spec: SpecificationJson = Field(
        description="The specification with all defaults. `dataset` has only its name, and a "
        "`model.source` that is a folder on the server is `./` and its last name"
    )
    error: FailureTitle | None = Field(description="Reason for the failure, without details")
    base_digest: Digest | None = Field(description="Digest of the base model, once it is loaded")
    digest: Digest | None = Field(description="Digest of the global model after the last committed round")
    metrics: dict[Line, MetricSummary] = Field(description="The metrics of the model card")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Experiment(JoinedExperiment, json_schema_extra=always_sent):
    """A federated training run: its specification, progress and cost.

    Fields with a default are missing from a :class:`JoinedExperiment`, which the SDK reads with this model.
    """

    project: Line = Field(default="", description="Name of its project")
    name: Line = Field(description="Current name; `spec.name` is the name at submission")
    tags: list[Line] = Field(default_factory=list)
    notes: Words = Field(default="", description="Markdown")
    priority: Priority = LEAST_PRIORITY
    stalled: Stall | None = Field(
        default=None, description="Set while a queued or running experiment cannot make progress"
    )
    spec: SpecificationJson = Field(description="The specification with all defaults")
    error: Failure | None = Field(description="Reason for the failure")
    stopped: EarlyStop | None = Field(default=None, description="Reason for an early end")
    best: BestRound | None = Field(default=None, description="Its best round so far; null until one is evaluated")
    privacy: Privacy | None = Field(default=None, description="Null without real participants")
    decline: Decline | None = Field(
        default=None, description="Set if the finished experiment ends worse than its base model or its best round"
    )
    shapes: dict[str, list[int]] | None = Field(default=None, description="Shapes of the trainable parameters by name")
    metrics: dict[Line, MetricSummary]
    bytes_up: int = Field(default=0, description="Bytes sent by all participants so far")
    bytes_down: int = Field(default=0, description="Bytes received by all participants so far")
    cloned_from: ExperimentId | None = Field(
        default=None, description="Id of the experiment that it was cloned from; that experiment may be deleted"
    )
    last_event_seq: int = Field(
        default=0, description="Number of its last event; a stream that starts there sends only new ones"
    )
    archived_at: datetime | None = Field(
        default=None, description="Time of archiving; archived experiments are listed only with `archived=true`"
    )

    @computed_field
    @property
    def links(self) -> ExperimentLinks:
        """Paths of the experiment and of its parts."""
        return ExperimentLinks.of(self.id)

    @property
    def shown_state(self) -> str:
        """The displayed state: ``stalled`` if the experiment cannot make progress."""
        return "stalled" if self.stalled else self.state.value


class ListedExperiment(Resource):
    """An experiment in a list."""

    id: ExperimentId
    project: Line = Field(description="Name of its project")
    name: Line
    tags: list[Line]
    state: ExperimentState
    stalled: Line | None = Field(description=("Code of the reason for a stalled experiment; null otherwise"))
    algorithm: Line
    dataset: Line
    rounds: RoundNumber = Field(description="Planned number of rounds")
    round: RoundNumber = Field(description="Last committed round; 0 before the first")
    participants: Count
    seed: int
    seed_group: Line = Field(description="Equal for all experiments of the project that differ only in name and seed")
    K: int | None = Field(description="The algorithm's option `K`, if set")
    bytes_per_round: int | None = Field(description="The algorithm's option, if set")
    learning_rate: float | None = Field(description="The local learning rate, if the algorithm has one")
    metrics: dict[Line, MetricSummary]
    bytes_up: int = Field(description="Bytes sent by all participants so far")
    bytes_down: int = Field(description="Bytes received by all participants so far")
    bytes_per_upload: float | None = Field(
        description="Mean size of the contributions accepted in the last committed round; null before the first"
    )
    error: FailureTitle | None = Field(description="Reason for the failure")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None
    estimated_seconds_left: float | None = Field(
        description="Remaining rounds times the median duration of the latest ones; null unless the "
        "experiment is running, has committed a round and is not stalled"
    )

    @property
    def shown_state(self) -> str:
        """The displayed state: ``stalled`` if the experiment cannot make progress."""
        return "stalled" if self.stalled else self.state.value


class ExperimentPage(Page[ListedExperiment]):
    """Experiments in the requested order."""


class SeedStatistics(Resource):
    """Mean and deviation of one value over the experiments of a group that have it."""

    mean: float
    sd: float | None = Field(description="Sample standard deviation (n - 1); null for a single value")
    count: int = Field(description="Number of experiments that have the value")


class MetricStatistics(Resource):
    """A metric over the experiments of a group."""

    last: SeedStatistics
    best: SeedStatistics | None = Field(description="Null if the metric has no better direction, as with bytes")


class ExperimentGroup(Resource):
    """Experiments of one project with specifications that differ only in name and seed."""

    key: Line = Field(description="`seed_group` of its experiments, usable as a filter")
    count: int = Field(description="Number of experiments that match the filters")
    states: dict[ExperimentState, int] = Field(description="Number of experiments in each state")
    metrics: dict[Line, MetricStatistics]
    bytes_up: int = Field(description="Bytes sent by all participants of all its experiments so far")
    bytes_down: int = Field(description="Bytes received by all participants of all its experiments so far")
    newest: ListedExperiment = Field(description="The most recently submitted experiment")


class ExperimentGroupPage(Page[ExperimentGroup]):
    """Groups in the requested order."""


class Artifact(Resource):
    """A file written by an experiment."""

    id: ArtifactId
    kind: str = Field(description="Kind of file: `checkpoint`")
    round: RoundNumber = Field(description="Round after which it was written; 0 is the base model")
    best: bool = Field(description="true for the round with the best `stopping.metric` among the kept ones")
    name: str = Field(description="File name within its checkpoint")
    size: Bytes = Field(description="Bytes")
    digest: Digest = Field(description="BLAKE3 of the bytes; also the ETag of the download")
    created_at: datetime
    href: str = Field(description="Path of the download")


class ArtifactPage(Page[Artifact]):
    """Artifacts by round and name."""
