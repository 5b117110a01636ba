"""Sixteen aggregators race for every round: one of them commits it, whoever that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import select

from ferret_bench._control.workload import Workload
from ferret_core import catalog
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_core.simulate import simulate
from ferret_core.storage import open_storage
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import experiments, ledger, outbox
from ferret_db.tables import Event, OutboxMessage, Round
from ferret_worker.aggregate import aggregate
from ferret_worker.coordinate import coordinate
from ferret_worker.settings import WorkerSettings
from ferret_worker.train import train
from ferret_worker.worker_state import WorkerState
from tests.worker.conftest import settings as settings

AGGREGATORS = 16
FEDAVG = {"name": "fedavg", "local": {"learning_rate": 1e-2, "steps": 1, "batch_size": 1, "accumulation": 1}}
"""The least that there is to compute, so that they meet at the commit."""


class Racers:
    """Workers with a model and a storage of their own; the first also opens rounds and trains."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.messages: list[OutboxMessage] = []
        migrate.upgrade(settings.database_url)
        self.database = Database(settings.database_url, self.messages.extend)
        self.contexts = [
            WorkerState(settings, self.database, open_storage(settings.storage_url)) for _ in range(AGGREGATORS)
        ]
        self.barrier = Barrier(AGGREGATORS)

    def start(self, spec: ExperimentSpec) -> str:
        """The running experiment, its base model in every worker; transformers load one at a time."""
        with self.database.begin() as s:
            experiment_id = lifecycle.submit(s, catalog.resolve(spec).spec)[0].id
        coordinate(self.contexts[0], experiment_id)
        for context in self.contexts:
            context.model_at(experiment_id, 0)
        return experiment_id

    def freeze(self, experiment_id: str) -> str:
        """Trains for the next round: the id of the round that is to be aggregated."""
        coordinate(self.contexts[0], experiment_id)
        for assignment_id in self._asked(TaskName.TRAIN):
            train(self.contexts[0], assignment_id)
        self._take()
        (round_id,) = self._asked(TaskName.AGGREGATE)
        self.messages.clear()
        return round_id

    def race(self, pool: ThreadPoolExecutor, round_id: str) -> None:
        """All aggregate it at once."""

        def run(context: WorkerState) -> None:
            self.barrier.wait()
            aggregate(context, round_id)

        list(pool.map(run, self.contexts))

    def _take(self) -> None:
        """A worker has taken every message, and each that follows on one."""
        taken = 0
        while taken < len(self.messages):
            message = self.messages[taken]
            with self.database.begin() as s:
                outbox.take(s, message.task, message.argument)
            taken += 1

    def _asked(self, task: TaskName) -> list[str]:
        return [message.argument for message in self.messages if message.task == task]


@pytest.mark.about_database
@pytest.mark.timeout(900)
def test_every_round_is_committed_once_and_the_model_is_the_simulations(
    settings: WorkerSettings, tmp_path: Path, amount: Callable[[int, int], int]
) -> None:
    number_of_rounds = amount(3, 100)
    spec = Workload(tmp_path / "workload", owners=1).spec(number_of_rounds, algorithm=FEDAVG)
    racers = Racers(settings)
    experiment_id = racers.start(spec)
    with ThreadPoolExecutor(AGGREGATORS) as pool:
        for _ in range(number_of_rounds):
            racers.race(pool, racers.freeze(experiment_id))
    with racers.database.read() as s:
        committed = s.execute(
            select(Round.number, Round.state, Round.digest).where(Round.experiment_id == experiment_id)
        ).all()
        told = Counter(s.scalars(select(Event.round).where(Event.type == "round.committed")))
        entries = ledger.after(s, experiment_id, 0, 2 * number_of_rounds)
        digest = experiments.get(s, experiment_id).digest
    racers.database.dispose()
    once = dict.fromkeys(range(1, number_of_rounds + 1), 1)
    assert told == once
    assert Counter(number for number, state, _ in committed if state == RoundState.COMMITTED) == once
    assert [entry.record["digest"] for entry in entries] == [digest for _, _, digest in sorted(committed)]
    assert digest == simulate(spec).digest
