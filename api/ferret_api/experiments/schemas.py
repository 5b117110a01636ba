"""An experiment as the API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_api.schemas import PREFIX, Command, Failure, Page, Resource
from ferret_core.protocol.priority import Priority
from ferret_core.protocol.spec import ExperimentName, ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tags_and_notes import Notes, Tags
from ferret_core.rounds.early_stopping import Better


class MetricSummary(Resource):
    """A metric over the rounds so far; ``best`` is null where no round is better than another, as with bytes."""

    first: float
    last: float
    best: float | None


class Stall(Resource):
    """Why the experiment cannot make progress. It continues by itself once this is fixed."""

    code: str = Field(description="Stable name of the reason")
    detail: str = Field(description="What is missing, and what to do")
    since: datetime


class Best(Resource):
    """The round with the best value of the metric that `stopping.metric` names; of equals the first."""

    metric: str
    round: int = Field(description="0 is the base model")
    value: float


class Stopped(Resource):
    """The experiment ended before its last round, as `stopping` in its specification asks for."""

    round: int = Field(description="Its last round")
    detail: str = Field(description="Why, for people")
    best: Best


class ExperimentLinks(Resource):
    """Where the rest of the experiment is found."""

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
        base = f"{PREFIX}/experiments/{experiment_id}"
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


class Experiment(Resource):
    """A federated tuning run: what was asked for, how far it has come, and what it has cost."""

    id: str
    project: str = Field(description="Name of the project that it belongs to")
    name: str = Field(description="What it is called now; `spec.name` is what it was submitted as")
    tags: list[str]
    notes: str = Field(description="Markdown")
    priority: Priority
    state: ExperimentState
    stalled: Stall | None = Field(description="Set while a queued or running experiment cannot make progress")
    algorithm: str
    dataset: str
    rounds: int = Field(description="Rounds asked for")
    round: int = Field(description="Last committed round; 0 before the first")
    participants: int
    spec: ExperimentSpec = Field(description="The specification with every default filled in")
    error: Failure | None = Field(description="Why the experiment failed")
    stopped: Stopped | None = Field(description="Why the experiment completed early, if it did")
    best: Best | None = Field(description="Its best round so far; null until one is evaluated")
    better: Better | None = Field(
        description="With `server.average`: which does better on the development sequences, the model of the last "
        "round or the mean of those of the last rounds; null before the mean begins"
    )
    base_digest: str | None = Field(description="Digest of the base model, once it is loaded")
    digest: str | None = Field(description="Digest of the global model after the last committed round")
    shapes: dict[str, list[int]] | None = Field(description="Shapes of the trainable parameters by name")
    metrics: dict[str, MetricSummary]
    bytes_up: int = Field(description="Bytes sent by all participants so far")
    bytes_down: int = Field(description="Bytes received by all participants so far")
    cloned_from: str | None = Field(description="Id of the experiment it was cloned from, which may have been deleted")
    event_seq: int = Field(description="Number of its last event: stream from there to get only new ones")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None = Field(
        description="When it was archived; archived experiments are listed only with `archived=true`"
    )
    links: ExperimentLinks


class FailureTitle(Resource):
    """Why an experiment failed, in a word and in a few."""

    code: str
    title: str


class JoinedExperiment(Resource):
    """An experiment as its participants see it: what following the model takes, and the figures of its model card.

    Notes, tags, project, paths on the server and the failures of other sites are the researchers' alone.
    """

    id: str
    name: str
    state: ExperimentState
    algorithm: str
    dataset: str
    rounds: int = Field(description="Rounds asked for")
    round: int = Field(description="Last committed round; 0 before the first")
    participants: int
    spec: ExperimentSpec = Field(
        description="The specification with every default filled in. `dataset` has its name alone, and of a "
        "`model.source` that is a folder on the server there is `./` and the last name"
    )
    error: FailureTitle | None = Field(description="Why the experiment failed, without details")
    base_digest: str | None = Field(description="Digest of the base model, once it is loaded")
    digest: str | None = Field(description="Digest of the global model after the last committed round")
    metrics: dict[str, MetricSummary] = Field(description="Those of the model card")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ListedExperiment(Resource):
    """What a list tells of an experiment."""

    id: str
    project: str = Field(description="Name of the project that it belongs to")
    name: str
    tags: list[str]
    state: ExperimentState
    stalled: str | None = Field(description="Code of why a queued or running experiment cannot make progress")
    algorithm: str
    dataset: str
    rounds: int = Field(description="Rounds asked for")
    round: int = Field(description="Last committed round; 0 before the first")
    participants: int
    seed: int
    seed_group: str = Field(
        description="The same for all experiments of the project whose specifications differ in name and seed only"
    )
    K: int | None = Field(description="The algorithm's option `K`, if it has one that is given")
    bytes_per_round: int | None = Field(description="The algorithm's option, if it has one that is given")
    learning_rate: float | None = Field(description="The local one, if the algorithm trains with one")
    metrics: dict[str, MetricSummary]
    bytes_up: int = Field(description="Bytes sent by all participants so far")
    bytes_down: int = Field(description="Bytes received by all participants so far")
    bytes_per_upload: float | None = Field(
        description="The mean size of what was accepted in the last committed round; null before the first"
    )
    error: FailureTitle | None = Field(description="Why the experiment failed")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None
    estimated_seconds_left: float | None = Field(
        description="Of a running experiment: the median of its last rounds' seconds, for each round that is left; "
        "null until a round is committed, and while it is stalled"
    )


class ExperimentPage(Page[ListedExperiment]):
    """Experiments in the order that was asked for."""


class Spread(Resource):
    """Of `count` values, one of each experiment that has the metric."""

    mean: float
    sd: float | None = Field(description="Standard deviation of the sample (n - 1); null for a single value")
    count: int


class MetricSpread(Resource):
    """A metric over the experiments of a group; ``best`` is null where no round is better than another."""

    last: Spread
    best: Spread | None


class ExperimentGroup(Resource):
    """Experiments of one project whose specifications differ in name and seed only."""

    key: str = Field(description="`seed_group` of its experiments, by which they are listed")
    count: int = Field(description="Experiments that match the filters")
    states: dict[ExperimentState, int] = Field(description="How many of them are in each state")
    metrics: dict[str, MetricSpread]
    bytes_up: int = Field(description="Bytes sent by all participants of all of them so far")
    bytes_down: int = Field(description="Bytes received by all participants of all of them so far")
    newest: ListedExperiment = Field(description="The one that was submitted last")


class ExperimentGroupPage(Page[ExperimentGroup]):
    """Groups in the order that was asked for."""


class ExperimentChange(Command):
    """What is to be different; what is left out stays. Null takes tags and notes away."""

    name: ExperimentName = Field(default_factory=str, description="It always has one: null is refused")
    tags: Tags | None = None
    notes: Notes | None = None
    priority: Priority = Field(default_factory=int, description="It always has one: null is refused")
