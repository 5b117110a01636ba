"""The state of the service: its version, its parts, its queues and its workers."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from ferret_core.protocol.ids import ExperimentId
from ferret_core.protocol.resources.base import Bytes, Resource
from ferret_core.protocol.sanitize import Line, Words
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import Queue, TaskName


class FormatVersions(Resource):
    """Versions of the wire formats."""

    wire: int
    projection: int


class Info(Resource):
    """Name, version and backends of this service."""

    name: Line
    version: Line
    instance: Line = Field(description="Identifies the installation; changes with the admin token")
    database: Line = Field(description="`sqlite` or `postgresql`")
    storage: Line = Field(description="Scheme of the storage URL, e.g. `file`")
    formats: FormatVersions


class Health(Resource):
    """The process is alive."""

    status: str


class ComponentStatus(Resource):
    """Whether one part of the service can be used."""

    ready: bool
    detail: Words | None = Field(description="What is wrong, and what to do")


class Readiness(Resource):
    """Whether the service is ready, and the state of each part."""

    ready: bool
    database: ComponentStatus
    migrations: ComponentStatus
    broker: ComponentStatus
    storage: ComponentStatus


class DatabaseStatus(Resource):
    """The database."""

    kind: Line = Field(description="`sqlite` or `postgresql`")
    revision: Line | None = Field(description="Revision of its schema")
    size: Bytes = Field(description="Bytes")


class StorageStatus(Resource):
    """Where contributions and checkpoints are stored."""

    kind: Line = Field(description="`file` or `s3`")
    place: Line = Field(description="The folder, or the bucket with its prefix")


class Disk(Resource):
    """The disk that holds `FERRET_HOME`, in bytes."""

    total: Bytes
    free: Bytes


class Backlog(Resource):
    """Work that nobody has taken."""

    waiting: int
    oldest: AwareDatetime | None = Field(description="Since when the oldest of it waits; null if nothing does")


class QueueStatus(Backlog):
    """A queue and its workers. Experiments that wait for their turn to start are not counted."""

    queue: Queue
    workers: int = Field(description="Workers that gave a sign of life in the last 15 seconds")
    messages: int | None = Field(
        description="Messages at the broker that no worker has taken; null: the broker does not answer"
    )


class WorkerStatus(Resource):
    """A worker process that was alive within the last day."""

    id: Line
    queue: Queue
    host: Line
    pid: int
    device: Line
    alive: bool = Field(description="Whether it gave a sign of life in the last 15 seconds")
    started_at: AwareDatetime
    seen_at: AwareDatetime = Field(description="Its last sign of life; it gives one every 5 seconds")
    task: TaskName | None = Field(description="What it works on; null: it is idle")
    subject: Line | None = Field(description="Id of what the task is about")
    experiment: ExperimentId | None = Field(description="Id of the experiment that the task is for")


class System(Resource):
    """The state of the whole service: its parts, its queues and its workers."""

    version: Line
    time: AwareDatetime = Field(description="By the database's clock, like all times here")
    parts: Readiness
    broker_silent_since: AwareDatetime | None = Field(
        description="Since when the broker does not answer the workers' reconciler; null: it answers"
    )
    database: DatabaseStatus
    storage: StorageStatus
    disk: Disk
    queues: list[QueueStatus]
    unsent: Backlog = Field(description="Calls for work that are not handed to the broker yet")
    given_up: int = Field(description="Tasks that failed or killed their worker too often, and are not tried again")
    experiments: dict[ExperimentState, int]
    workers: list[WorkerStatus] = Field(description="By queue, host and process")
