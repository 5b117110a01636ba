"""An experiment as the API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_api.schemas import PREFIX, Failure, Page, Resource
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState


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
    name: str
    state: ExperimentState
    stalled: Stall | None = Field(description="Set while a queued or running experiment cannot make progress")
    algorithm: str
    dataset: str
    rounds: int = Field(description="Rounds asked for")
    round: int = Field(description="Last committed round; 0 before the first")
    participants: int
    spec: ExperimentSpec = Field(description="The specification with every default filled in")
    error: Failure | None = Field(description="Why the experiment failed")
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


class ExperimentPage(Page[Experiment]):
    """Experiments, the newest first."""
