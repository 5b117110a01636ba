"""Start of a worker, alone or as a member of a team."""

from __future__ import annotations

from ferret_core.distributed.process_group import started
from ferret_core.protocol.task_names import Queue
from ferret_core.system.device import chosen_device
from ferret_worker.app import work
from ferret_worker.settings import WorkerSettings
from ferret_worker.team_follower import follow


def start(settings: WorkerSettings, queue: Queue) -> None:
    """Runs until it is stopped. Only a team's first process takes tasks and contacts the service."""
    with started(chosen_device(settings.device).type) as team:
        if team is None or team.is_first:
            work(settings, queue, team)
        else:
            follow(settings, team)
