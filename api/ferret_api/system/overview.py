"""Overview of the service for operators."""

from __future__ import annotations

import shutil
from datetime import timedelta
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from ferret_api.context import Context
from ferret_core import __version__
from ferret_core.protocol.resources.system import (
    Backlog,
    DatabaseStatus,
    Disk,
    QueueStatus,
    Readiness,
    StorageStatus,
    System,
    WorkerStatus,
)
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import Queue
from ferret_db import clock, schema_version
from ferret_db.database import Database, size_in_bytes
from ferret_db.repositories import backlog, experiments, service_clock, workers


def look(context: Context, database: Database, parts: Readiness) -> System:
    """Returns the service's status, with the data that ``database`` shows and the readiness of each part."""
    messages = context.broker.lengths() if parts.broker.ready else None
    used = shutil.disk_usage(context.settings.home)
    with database.read() as s:
        return System(
            version=__version__,
            time=clock.now(s),
            parts=parts,
            broker_silent_since=service_clock.broker_silent_since(s),
            database=_database(s, context.settings.database_url),
            storage=StorageStatus(kind=urlsplit(context.settings.storage_url).scheme, place=str(context.storage)),
            disk=Disk(total=used.total, free=used.free),
            queues=_queues(s, messages),
            unsent=Backlog.model_validate(backlog.unsent(s)),
            given_up=backlog.given_up(s),
            experiments=dict.fromkeys(ExperimentState, 0) | experiments.count_by_state(s),
            workers=_workers(s),
        )


def _database(s: Session, url: str) -> DatabaseStatus:
    kind = urlsplit(url).scheme.partition("+")[0]
    return DatabaseStatus(kind=kind, revision=schema_version.revision(s), size=size_in_bytes(s))


def _queues(s: Session, messages: dict[Queue, int] | None) -> list[QueueStatus]:
    alive, sent = workers.counts(s), messages or dict.fromkeys(Queue)
    return [
        QueueStatus(queue=queue, workers=alive[queue], messages=sent[queue], **backlog._asdict())
        for queue, backlog in backlog.backlogs(s).items()
    ]


def _workers(s: Session) -> list[WorkerStatus]:
    gone = clock.now(s) - timedelta(seconds=workers.GONE_SECONDS)
    columns = WorkerStatus.model_fields.keys() - {"alive", "experiment"}
    return [
        WorkerStatus(
            **{name: getattr(worker, name) for name in columns}, alive=worker.seen_at > gone, experiment=experiment_id
        )
        for worker, experiment_id in workers.known(s)
    ]
