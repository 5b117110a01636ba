"""A simulated client's part in a round, trained by this process or by all processes of a team together."""

from __future__ import annotations

from collections.abc import Callable

from ferret_core.algorithms.base import Client
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.distributed.barrier import together
from ferret_core.distributed.process_group import ProcessGroup, as_first
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Arrays
from ferret_core.system.device import memory_checked
from ferret_db.engine.file_integrity import DAMAGE, call_for_repair
from ferret_runtime import tracing
from ferret_worker.repair import repaired
from ferret_worker.storage import client_state
from ferret_worker.worker_state import LoadedExperiment, WorkerState

Check = Callable[[int], None]
"""Callback with the number of completed local steps. It raises to end the training."""


def train_locally(context: WorkerState, task: RoundTask, check: Check) -> LocalRound:
    """Trains in this process; raises as :func:`ferret_core.client.local_round.contribute` and as ``check``."""
    with memory_checked():
        kept, memory = repaired(context, task.experiment, lambda: _loaded(context, task))
    return _trained(kept, task, memory, check)


def train_in_group(context: WorkerState, team: ProcessGroup, work: str, task: RoundTask, check: Check) -> LocalRound:
    """Trains in all processes of ``team``, for ``work``, a unique name. ``check`` is the first process'.

    A team repairs nothing: if a file is damaged, the first process requests a repair. Raises ``process_group.failed``
    too.
    """

    def do() -> LocalRound:
        with memory_checked():
            kept, memory = _loaded(context, task)
        return _trained(kept, task, memory, lambda step: as_first(team, lambda: check(step)))

    try:
        return together(team, work, do, lambda part: part.sealed.digest)
    except FerretError as error:
        if error.code in DAMAGE:
            context.drop(task.experiment)
            if team.is_first:
                context.database.transact(lambda s: call_for_repair(s, task.experiment))
        raise


def _loaded(context: WorkerState, task: RoundTask) -> tuple[LoadedExperiment, Arrays]:
    return context.model_at(task.experiment, task.round - 1), client_state(context, task).load()


def _trained(kept: LoadedExperiment, task: RoundTask, memory: Arrays, check: Check) -> LocalRound:
    with tracing.span("local_update", algorithm=kept.replica.spec.algorithm.name):
        return contribute(kept.replica, Client(task, kept.data.shard(task.participant), memory, check))
