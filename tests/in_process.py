"""The service within the test's process: the API in a thread, and what the workers do in another."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

from ferret_api.app import create_app
from ferret_api.context import Context
from ferret_api.server import Server
from ferret_core.protocol.states import AssignmentState, ParticipantKind, RoundState
from ferret_core.storage import open_storage
from ferret_db.database import Database
from ferret_db.repositories import assignments, experiment_list, experiments, metrics, rounds
from ferret_db.repositories.experiment_list import ExperimentFilter
from ferret_worker.aggregate import aggregate
from ferret_worker.coordinate import coordinate
from ferret_worker.evaluate import evaluate
from ferret_worker.settings import WorkerSettings
from ferret_worker.train import train
from ferret_worker.worker_state import WorkerState
from tests.sized import made

ADMIN = "an-admin-token-for-the-tests"
NO_BROKER = "redis://127.0.0.1:1/0"

PART_BYTES = 64 << 10
"""As small as possible, so that the toy model's whole updates are sent in parts."""


class Api:
    """The real API on a free port, in a thread; it can be stopped and started again on the same port."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        settings = made(
            home=self.home,
            broker_url=NO_BROKER,
            admin_token=ADMIN,
            poll_seconds=0.1,
            stream_poll_seconds=0.05,
            lease_seconds=2,
            part_bytes=PART_BYTES,
        )
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = int(listener.getsockname()[1])
        context = Context.open(settings)
        self._server = Server(create_app(settings, context), context)  # it lets polls end before it stops
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


class Worker:
    """Does what the workers do, in a thread, by looking at the database instead of waiting for messages."""

    def __init__(self, home: Path) -> None:
        self._settings = WorkerSettings(home=home)
        self.database = Database(self._settings.database_url, dispatch=lambda messages: None)
        self._context = self.new_context()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def new_context(self) -> WorkerState:
        """A worker's memory, with nothing in it."""
        return WorkerState(self._settings, self.database, open_storage(self._settings.storage_url))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.database.dispose()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            with self.database.read() as s:
                ids = [
                    item.id
                    for item in experiment_list.list_page(s, ExperimentFilter(), 100).items
                    if not item.state.finished
                ]
            for id in ids:
                self._move_on(id)

    def _move_on(self, id: str) -> None:
        coordinate(self._context, id)
        with self.database.read() as s:
            opened = rounds.in_states(s, id, RoundState.OPEN)
            frozen = rounds.in_states(s, id, RoundState.FROZEN)
            unevaluated = rounds.unevaluated(s, experiments.get(s, id))
            waiting = [
                row.id
                for round_ in opened
                for row in assignments.of_round(s, round_.id)
                if (row.state, row.kind) == (AssignmentState.PENDING, ParticipantKind.SIMULATED)
            ]
            base = metrics.by_round(s, id, [0])
        for assignment in waiting:
            train(self._context, assignment)
        for round_ in frozen:
            aggregate(self._context, round_.id)
        for subject in [*([] if base else [id]), *(round_.id for round_ in unevaluated)]:
            evaluate(self._context, subject)
