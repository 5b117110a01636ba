"""State of the service: version, components, queues and workers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from ferret_core.protocol.ids import Digest, ExperimentId
from ferret_core.protocol.resources.base import Bytes, Json, Page, Resource
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
    instance: Line = Field(description="Id of the installation; changes with the admin token")
    database: Line = Field(description="`sqlite` or `postgresql`")
    storage: Line = Field(description="Scheme of the storage URL, e.g. `file`")
    formats: FormatVersions


class Health(Resource):
    """Liveness of the process."""

    status: str


class ComponentStatus(Resource):
    """State of one component of the service."""

    ready: bool
    detail: Words | None = Field(description="The fault and the next step")


class Readiness(Resource):
    """Readiness of the service, and the state of each component."""

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
    """The storage of contributions and checkpoints."""

    kind: Line = Field(description="`file` or `s3`")
    place: Line = Field(description="The folder, or the bucket with its prefix")


class Disk(Resource):
    """The disk that holds `FERRET_HOME`, in bytes."""

    total: Bytes
    free: Bytes


class Backlog(Resource):
    """Work that no worker has taken."""

    waiting: int
    oldest: AwareDatetime | None = Field(description="Time since which the oldest item waits; null for an empty queue")


class QueueStatus(Backlog):
    """A queue and its workers. Experiments that wait for their turn to start are not counted."""

    queue: Queue
    workers: int = Field(description="Workers with a heartbeat in the last 15 seconds")
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
    alive: bool = Field(description="true if its last heartbeat is at most 15 seconds old")
    started_at: AwareDatetime
    seen_at: AwareDatetime = Field(description="Its last heartbeat; one is sent every 5 seconds")
    task: TaskName | None = Field(description="Current task; null: idle")
    subject: Line | None = Field(description="Id of the task's subject")
    experiment: ExperimentId | None = Field(description="Id of the task's experiment")


class System(Resource):
    """State of the whole service: components, queues and workers."""

    version: Line
    time: AwareDatetime = Field(description="By the database's clock, like all times here")
    parts: Readiness
    broker_silent_since: AwareDatetime | None = Field(
        description="Time since which the broker does not answer the workers' reconciler; null: it answers"
    )
    database: DatabaseStatus
    storage: StorageStatus
    disk: Disk
    queues: list[QueueStatus]
    unsent: Backlog = Field(description="Tasks not yet handed to the broker")
    given_up: int = Field(description="Tasks that failed or killed their worker too often and are not retried")
    experiments: dict[ExperimentState, int]
    workers: list[WorkerStatus] = Field(description="Ordered by queue, host and process")


class AuditEntry(Resource):
    """One recorded action. Its hash is the BLAKE3 of the canonical JSON of all other fields."""

    number: Annotated[int, Field(ge=1, lt=2**63)] = Field(description="From 1, without gaps")
    time: AwareDatetime = Field(description="In UTC with microseconds, which the hash covers")
    actor: Line = Field(description="Actor: `admin`, `host` for commands on the server's machine, `nobody`, or an id")
    action: Line = Field(description="Action, e.g. `experiment.paused`")
    subject: Line = Field(description="Target: the id of an experiment or a session, the file of a backup, …")
    detail: Json
    previous: str = Field(description="Hash of the previous entry; empty for number 1")
    hash: str


class AuditPage(Page[AuditEntry]):
    """Entries by number."""


class AuditHead(Resource):
    """End of the log. A stored copy proves later that no earlier entry was changed."""

    number: Annotated[int, Field(ge=0, lt=2**63)] = Field(description="Number of the last entry; 0 for an empty log")
    hash: Digest | Literal[""] = Field(description="Hash of the last entry; empty for an empty log")
