"""Every process of a team except the first: does the announced work, and reports nothing."""

from __future__ import annotations

import logging
import signal

import torch

from ferret_core.distributed.process_group import Team
from ferret_core.protocol.errors import FerretError
from ferret_core.system import untrusted_files
from ferret_db.database import Database
from ferret_worker import memory_limit
from ferret_worker.local_round import part_together
from ferret_worker.settings import WorkerSettings
from ferret_worker.team_broadcast import Work, heard
from ferret_worker.worker_state import Context

logger = logging.getLogger(__name__)


def follow(settings: WorkerSettings, team: Team) -> None:
    """Works until the first process ends, or until a signal between two pieces of work.

    During a piece of work, the first process decides whether to continue. Raises ``team.broken``.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    context = Context(settings, Database(settings.database_url), settings.open_storage(), team)
    if context.device.type == "cpu":
        memory_limit.limit(settings.memory_limit)
    _stop_soon(context)
    number = 0
    while (work := heard(team, number, lambda: context.stopping)) is not None:
        _take_part(context, team, work)
        number += 1


def _stop_soon(context: Context) -> None:
    def stop(*_: object) -> None:
        context.stopping = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _take_part(context: Context, team: Team, work: Work) -> None:
    try:
        with untrusted_files.within(context.settings.readable):
            part_together(context, team, work.name, work.task, lambda step: None)
    except FerretError as error:
        if error.code == "team.broken":
            raise
        logger.info("%s: %s", work.task.participant, error.detail)
