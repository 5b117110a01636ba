"""The Celery application: a message is a hint with one id, JSON only, no result backend; the database is the truth.

Late acknowledgement with prefetch 1 leaves a killed worker's message to others; the two ``unacked`` settings make
Redis hand it out again in seconds instead of minutes. Leases in the database decide who may work on it.
"""

from __future__ import annotations

from celery import Celery

from ferret_core.protocol.tasks import QUEUE_OF
from worker.settings import WorkerSettings


def create_celery(settings: WorkerSettings) -> Celery:
    """The application on ``settings.broker_url`` with every setting that Ferret relies on."""
    app = Celery("ferret", broker=settings.broker_url)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_routes={str(name): {"queue": str(queue)} for name, queue in QUEUE_OF.items()},
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "visibility_timeout": settings.task_limit_seconds + 60,
            "unacked_restore_interval": 2,
            "unacked_restore_throttle": 1,
            "socket_timeout": 30,
            "health_check_interval": 15,
            "socket_keepalive": True,
        },
    )
    return app
