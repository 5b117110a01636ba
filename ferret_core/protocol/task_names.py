"""Names of the Celery tasks and their queues: the API sends by name and never imports the worker.

A message is a hint that carries one id; the database determines the work.
"""

from __future__ import annotations

from enum import StrEnum


class Queue(StrEnum):
    """Queues with separate worker processes: questions in the playground never delay a round."""

    TRAIN = "train"
    AGGREGATE = "aggregate"
    PLAYGROUND = "playground"


class TaskName(StrEnum):
    """Tasks; each takes one id.

    ``coordinate``: an experiment; ``train``: an assignment; ``aggregate``: a round; ``evaluate``: a round, or an
    experiment for its base model; ``repair``: an experiment; ``reconcile``: ignored; ``answer``: a question of
    ``ferret_core.protocol.playground``, which is in no table.
    """

    COORDINATE = "ferret.coordinate"
    TRAIN = "ferret.train"
    AGGREGATE = "ferret.aggregate"
    EVALUATE = "ferret.evaluate"
    REPAIR = "ferret.repair"
    RECONCILE = "ferret.reconcile"
    ANSWER = "ferret.answer"


QUEUE_OF: dict[TaskName, Queue] = {
    TaskName.COORDINATE: Queue.AGGREGATE,
    TaskName.TRAIN: Queue.TRAIN,
    TaskName.AGGREGATE: Queue.AGGREGATE,
    TaskName.EVALUATE: Queue.AGGREGATE,
    TaskName.REPAIR: Queue.AGGREGATE,
    TaskName.RECONCILE: Queue.AGGREGATE,
    TaskName.ANSWER: Queue.PLAYGROUND,
}
