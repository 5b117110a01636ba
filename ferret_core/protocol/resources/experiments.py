"""Experiments, as a whole and in lists."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, computed_field
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ferret_core.protocol.ids import Digest, ExperimentId
from ferret_core.protocol.priority import LEAST_PRIORITY, Priority
from ferret_core.protocol.resources.base import (
    API_PATH,
    Count,
    Failure,
    FailureTitle,
    Page,
    Resource,
    RoundNumber,
    always_sent,
)
from ferret_core.protocol.sanitize import Line, Words
from ferret_core.protocol.spec import ExperimentSpec, FinalModel
from ferret_core.protocol.states import ExperimentState


class _SpecificationSchema:
    """Describes a dictionary as a specification. It is not read as one, since a newer server's may have more fields."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(ExperimentSpec.__pydantic_core_schema__)


SpecificationJson = Annotated[dict[str, Any], _SpecificationSchema]


class MetricSummary(Resource):
    """A metric over the rounds so far."""

    first: float
    last: float
    best: float | None = Field(description="Null if no value is better than another, as with bytes")


class Stall(Resource):
    """Why the experiment cannot make progress. It continues by itself once the reason is gone."""

    code: Line = Field(description="Stable name of the reason")
    detail: Words = Field(description="What is missing, and what to do")
    since: datetime


class BestRound(Resource):
    """The round with the best value of the metric that `stopping.metric` names, the first of equals."""

    metric: Line
    round: RoundNumber = Field(description="0 is the base model")
    value: float


class EarlyStop(Resource):
    """The experiment ended before its last round, as `stopping` in its specification asks for."""

    round: RoundNumber = Field(description="Its last round")
    detail: Words = Field(description="Why it ended, for people")
    best: BestRound


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
    """An experiment as its participants see it: what following the model takes, and the metrics of its model card.

    Only researchers see notes, tags, the project, paths on the server and the failures of other sites.
    """

    id: ExperimentId
    name: Line
    state: ExperimentState
    algorithm: Line
    dataset: Line
    rounds: RoundNumber = Field(description="Rounds asked for")
    round: RoundNumber = Field(description="Last committed round; 0 before the first")
    participants: Count
    spec: SpecificationJson = Field(
        description="The specification with every default. `dataset` has only its name, and a `model.source` that is "
        "a folder on the server is `./` and its last name"
    )
    error: FailureTitle | None = Field(description="Why the experiment failed, without details")
    base_digest: Digest | None = Field(description="Digest of the base model, once it is loaded")
    digest: Digest | None = Field(description="Digest of the global model after the last committed round")
    metrics: dict[Line, MetricSummary] = Field(description="The metrics of the model card")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Experiment(JoinedExperiment, json_schema_extra=always_sent):
    """A federated training run: what was asked for, how far it has come, and what it has cost.

    The fields with a default are missing from a :class:`JoinedExperiment`, which the SDK reads as this one.
    """

    project: Line = Field(default="", description="Name of the project that it belongs to")
    name: Line = Field(description="Its present name; `spec.name` is the name that it was submitted with")
    tags: list[Line] = Field(default_factory=list)
    notes: Words = Field(default="", description="Markdown")
    priority: Priority = LEAST_PRIORITY
    stalled: Stall | None = Field(
        default=None, description="Set while a queued or running experiment cannot make progress"
    )
    spec: SpecificationJson = Field(description="The specification with every default")
    error: Failure | None = Field(description="Why the experiment failed")
    stopped: EarlyStop | None = Field(default=None, description="Why the experiment completed early, if it did")
    best: BestRound | None = Field(default=None, description="Its best round so far; null until one is evaluated")
    better: FinalModel | None = Field(
        default=None,
        description="With `server.average`: which has the lower loss on the development sequences, the model of the "
        "last round or the mean of the models of the last rounds; null before the mean begins",
    )
    shapes: dict[str, list[int]] | None = Field(
        default=None, description="Shapes of the trainable parameters by their names"
    )
    metrics: dict[Line, MetricSummary]
    bytes_up: int = Field(default=0, description="Bytes sent by all participants so far")
    bytes_down: int = Field(default=0, description="Bytes received by all participants so far")
    cloned_from: ExperimentId | None = Field(
        default=None, description="Id of the experiment that it was cloned from, which may have been deleted"
    )
    event_seq: int = Field(
        default=0, description="Number of its last event; a stream that starts there sends only new ones"
    )
    archived_at: datetime | None = Field(
        default=None, description="When it was archived; archived experiments are listed only with `archived=true`"
    )

    @computed_field
    @property
    def links(self) -> ExperimentLinks:
        """Paths of the experiment and of its parts."""
        return ExperimentLinks.of(self.id)

    @property
    def shown_state(self) -> str:
        """The state for people: ``stalled`` if the experiment cannot make progress."""
        return "stalled" if self.stalled else self.state.value


class ListedExperiment(Resource):
    """An experiment in a list."""

    id: ExperimentId
    project: Line = Field(description="Name of the project that it belongs to")
    name: Line
    tags: list[Line]
    state: ExperimentState
    stalled: Line | None = Field(description="Code of why a queued or running experiment cannot make progress")
    algorithm: Line
    dataset: Line
    rounds: RoundNumber = Field(description="Rounds asked for")
    round: RoundNumber = Field(description="Last committed round; 0 before the first")
    participants: Count
    seed: int
    seed_group: Line = Field(
        description="The same for all experiments of the project whose specifications differ only in name and seed"
    )
    K: int | None = Field(description="The algorithm's option `K`, if it has one that is given")
    bytes_per_round: int | None = Field(description="The algorithm's option, if it has one that is given")
    learning_rate: float | None = Field(description="The local learning rate, if the algorithm has one")
    metrics: dict[Line, MetricSummary]
    bytes_up: int = Field(description="Bytes sent by all participants so far")
    bytes_down: int = Field(description="Bytes received by all participants so far")
    bytes_per_upload: float | None = Field(
        description="Mean size of the contributions accepted in the last committed round; null before the first"
    )
    error: FailureTitle | None = Field(description="Why the experiment failed")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None
    estimated_seconds_left: float | None = Field(
        description="Of a running experiment: the remaining rounds times the median duration of the last ones; null "
        "until a round is committed, and while it is stalled"
    )

    @property
    def shown_state(self) -> str:
        """The state for people: ``stalled`` if the experiment cannot make progress."""
        return "stalled" if self.stalled else self.state.value


class ExperimentPage(Page[ListedExperiment]):
    """Experiments in the order that was asked for."""


class SeedStatistics(Resource):
    """Mean and deviation of one value over the experiments of a group that have it."""

    mean: float
    sd: float | None = Field(description="Standard deviation of the sample (n - 1); null for a single value")
    count: int = Field(description="Experiments that have the value")


class MetricStatistics(Resource):
    """A metric over the experiments of a group."""

    last: SeedStatistics
    best: SeedStatistics | None = Field(description="Null if no value is better than another, as with bytes")


class ExperimentGroup(Resource):
    """Experiments of one project whose specifications differ only in name and seed."""

    key: Line = Field(description="`seed_group` of its experiments, by which they are listed")
    count: int = Field(description="Experiments that match the filters")
    states: dict[ExperimentState, int] = Field(description="How many of them are in each state")
    metrics: dict[Line, MetricStatistics]
    bytes_up: int = Field(description="Bytes sent by all participants of all of them so far")
    bytes_down: int = Field(description="Bytes received by all participants of all of them so far")
    newest: ListedExperiment = Field(description="The experiment that was submitted last")


class ExperimentGroupPage(Page[ExperimentGroup]):
    """Groups in the order that was asked for."""
