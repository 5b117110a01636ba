"""Every process of a team except the first: does the announced work, and reports nothing."""

from __future__ import annotations

import logging
import signal

import torch

from ferret_core.distributed.process_group import ProcessGroup
from ferret_core.protocol.errors import FerretError
from ferret_core.system import memory_limit, untrusted_files
from ferret_db.database import Database
from ferret_worker.local_round import train_in_group
from ferret_worker.settings import WorkerSettings
from ferret_worker.team_broadcast import TeamTask, heard
from ferret_worker.worker_state import WorkerState

logger = logging.getLogger(__name__)


def follow(settings: WorkerSettings, team: ProcessGroup) -> None:
    """Works until the first process ends, or until a signal between two pieces of work.

    During a piece of work, the first process decides whether to continue. Raises ``process_group.failed``.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    context = WorkerState(settings, Database(settings.database_url), settings.open_storage(), team)
    if context.device.type == "cpu":
        memory_limit.limit(settings.memory_limit)
    _stop_soon(context)
    number = 0
    while (work := heard(team, number, lambda: context.stopping)) is not None:
        _take_part(context, team, work)
        number += 1


def _stop_soon(context: WorkerState) -> None:
    def stop(*_: object) -> None:
        context.stopping = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _take_part(context: WorkerState, team: ProcessGroup, work: TeamTask) -> None:
    try:
        with untrusted_files.allowed_roots(context.settings.readable):
            train_in_group(context, team, work.name, work.task, lambda step: None)
    except FerretError as error:
        if error.code == "process_group.failed":
            raise
        logger.info("%s: %s", work.task.participant, error.detail)
