"""A worker's heartbeat, sent from a thread, so that a worker with a long task is not considered dead."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.database import Database
from ferret_db.repositories import workers
from ferret_db.repositories.workers import WorkerIdentity

logger = logging.getLogger(__name__)


def identity(queue: Queue, device: str, *, bfloat16: bool = False) -> WorkerIdentity:
    """Returns this process's identity. PIDs repeat (always the same in containers); a random suffix makes it unique."""
    host, pid = socket.gethostname(), os.getpid()
    return WorkerIdentity(f"{queue}-{host}-{pid}-{secrets.token_hex(3)}", queue, host, pid, device, bfloat16)


class WorkerHeartbeat(threading.Thread):
    """Records in the database, every ``seconds``, that ``who`` is alive, and its task."""

    def __init__(self, database: Database, who: WorkerIdentity, seconds: float) -> None:
        super().__init__(name="presence", daemon=True)
        self.who = who
        self._database = database
        self._seconds = seconds
        self._work: tuple[TaskName, str] | None = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    @contextmanager
    def at(self, task: TaskName, subject: str) -> Generator[None]:
        """Reports this task during the block. The caller records it first, in the task's transaction."""
        with self._lock:  # a heartbeat in progress reports the previous state
            self._work = task, subject
        try:
            yield
        finally:
            with self._lock:
                self._work = None

    def run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self.say()
            except Exception:
                logger.exception("could not report to the database that this worker is alive; will retry")

    def say(self) -> None:
        """Records it once."""
        with self._lock, self._database.begin(flush=False) as s:
            workers.seen(s, self.who, *(self._work or (None, None)))

    def stop(self) -> None:
        """Ends the heartbeats when the worker ends."""
        self._stopped.set()
        if self.is_alive():
            self.join()
        with self._database.begin() as s:
            workers.leave(s, self.who.id)
