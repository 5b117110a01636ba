"""The playground's process: it waits for questions and reports that it is alive."""

from __future__ import annotations

import logging
import os
from functools import cached_property
from typing import TYPE_CHECKING

import redis

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.database import Database
from ferret_runtime import log_setup, tracing
from ferret_runtime.broker import redis_client
from ferret_worker.celery import Request, connect_signals, create_celery, message_headers, run_worker
from ferret_worker.playground.requester import Requester, RequesterGone
from ferret_worker.settings import WorkerSettings
from ferret_worker.worker_heartbeat import WorkerHeartbeat, identity

if TYPE_CHECKING:
    from ferret_worker.playground.answer_question import Answering

logger = logging.getLogger(__name__)

NICE = 10
"""Low priority: training and aggregation on the same machine go first."""


def serve(settings: WorkerSettings) -> None:
    """Answers questions until a signal."""
    os.nice(NICE)
    celery = create_celery(settings)
    playground = Playground(settings)
    # Acknowledged before it begins: the requester learns that a worker was killed, and nobody waits for a retry.
    celery.task(playground.answer, name=str(TaskName.ANSWER), Request=Request, acks_late=False)
    connect_signals(playground.start, playground.stop_soon, playground.stop)
    run_worker(celery, Queue.PLAYGROUND, settings.log_level)


class Playground:
    """The process's state between questions."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._database = Database(settings.database_url)
        who = identity(Queue.PLAYGROUND, settings.device)
        self._presence = WorkerHeartbeat(self._database, who, settings.gone_seconds / 3)
        self._redis = redis_client.connect(settings.broker_url)
        self._stopping = False

    @cached_property
    def _answering(self) -> Answering:
        from ferret_worker.playground.answer_question import Answering

        return Answering(self._settings, self._database, self._settings.open_storage())

    def start(self) -> None:
        self._presence.say()
        self._presence.start()

    def stop_soon(self) -> None:
        self._stopping = True

    def stop(self) -> None:
        self._presence.stop()
        self._redis.close()
        self._database.dispose()

    def answer(self, question_id: str) -> None:
        """Answers the question ``question_id`` if its requester still waits."""
        asker = Requester(self._redis, question_id, lambda: self._stopping)
        with (
            tracing.received(message_headers()),
            tracing.span("answer", None, "consumer"),
            log_setup.bound(worker=self._presence.who.id, task=str(TaskName.ANSWER)),
        ):
            try:
                question = asker.question()
                with self._presence.at(TaskName.ANSWER, question.experiment), asker.kept_company():
                    self._presence.say()
                    self._answering.answer(question, asker)
            except RequesterGone as gone:
                logger.info("the requester has gone: %s", gone)
            except redis.RedisError as error:
                logger.warning("the answer breaks off, Redis does not answer: %s", error)
        self._presence.say()
