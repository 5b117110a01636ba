"""What the service says about itself."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, field_validator, model_validator

from ferret_api.schemas import Command, Resource
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import Queue, TaskName


class Formats(Resource):
    """Versions of the wire formats."""

    wire: int
    projection: int


class Info(Resource):
    """Name, version and backends of this service."""

    name: str
    version: str
    instance: str = Field(description="Identifies the installation; changes with the admin token")
    database: str = Field(description="`sqlite` or `postgresql`")
    storage: str = Field(description="Scheme of the storage URL, e.g. `file`")
    formats: Formats


class Login(
    Command,
    json_schema_extra={"examples": [{"name": "ada", "password": "the sentence until now"}]},  # nosec B105: an example
):
    """Signs a browser in: with name and password, or with the admin token."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    password: str | None = Field(default=None, min_length=1, max_length=200, repr=False)
    token: str | None = Field(
        default=None, min_length=1, max_length=500, repr=False, description="The admin token, or that of a sign-in link"
    )

    @field_validator("name")
    @classmethod
    def _small(cls, name: str | None) -> str | None:
        return name and name.lower()

    @model_validator(mode="after")
    def _one_way(self) -> Login:
        if (self.token is None) == (self.name is None) or (self.name is None) != (self.password is None):
            raise ValueError("give name and password, or the token")
        return self


class SignInLink(Resource):
    """Signs one browser in, once: what browsers keep in their history opens nothing any more."""

    url: str = Field(description="To be opened in a browser; the dashboard takes the token out of the address")
    token: str
    expires_at: datetime


class Health(Resource):
    """The process is alive."""

    status: str


class PartStatus(Resource):
    """Whether one part can be used; ``detail`` says what is wrong and what to do."""

    ready: bool
    detail: str | None


class Readiness(Resource):
    """Whether the service is ready, and the state of each part."""

    ready: bool
    database: PartStatus
    migrations: PartStatus
    broker: PartStatus
    storage: PartStatus


class DatabaseFacts(Resource):
    """The database."""

    kind: str = Field(description="`sqlite` or `postgresql`")
    revision: str | None = Field(description="Of its schema")
    size: int = Field(description="Bytes")


class StorageFacts(Resource):
    """Where contributions and checkpoints are."""

    kind: str = Field(description="`file` or `s3`")
    place: str = Field(description="The folder, or the bucket with its prefix")


class Disk(Resource):
    """The disk that `FERRET_HOME` is on, in bytes."""

    total: int
    free: int


class Backlog(Resource):
    """Work that nobody has in hand."""

    waiting: int
    oldest: datetime | None = Field(description="Since when the oldest of it waits; null where nothing does")


class QueueFacts(Backlog):
    """A queue, and who works on it. Experiments that wait for their turn to start are not in it."""

    queue: Queue
    workers: int = Field(description="That gave a sign of life in the last 15 seconds")
    messages: int | None = Field(description="At the broker and in no worker's hands; null: the broker does not answer")


class WorkerFacts(Resource):
    """A worker process that was alive within the last day."""

    id: str
    queue: Queue
    host: str
    pid: int
    device: str
    alive: bool = Field(description="Whether it gave a sign of life in the last 15 seconds")
    started_at: datetime
    seen_at: datetime = Field(description="Its last sign of life; it gives one every 5 seconds")
    task: TaskName | None = Field(description="What it works at; null: it is idle")
    subject: str | None = Field(description="Id of what the task is about")
    experiment: str | None = Field(description="Id of the experiment that the task is for")


class System(Resource):
    """How the whole service is: its parts, its queues, its workers."""

    version: str
    time: datetime = Field(description="By the database's clock, as all times here")
    parts: Readiness
    broker_silent_since: datetime | None = Field(description="As the workers' reconciler saw it; null: it answers")
    database: DatabaseFacts
    storage: StorageFacts
    disk: Disk
    queues: list[QueueFacts]
    unsent: Backlog = Field(description="Calls for work that were not handed to the broker yet")
    given_up: int = Field(description="Tasks that failed or killed their worker too often, and are not tried again")
    experiments: dict[ExperimentState, int]
    workers: list[WorkerFacts] = Field(description="By queue, host and process")
