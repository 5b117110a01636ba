"""A worker says every few seconds that it is alive, from a thread: a long task must not make it look dead."""

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
from ferret_db.repositories.workers import Identity

logger = logging.getLogger(__name__)


def identity(queue: Queue, device: str) -> Identity:
    """Who this process is. Pids come again, in containers always the same: a few random digits make it a new one."""
    host, pid = socket.gethostname(), os.getpid()
    return Identity(f"{queue}-{host}-{pid}-{secrets.token_hex(3)}", queue, host, pid, device)


class Presence(threading.Thread):
    """Notes in the database, every ``seconds``, that ``who`` is alive and what it works on."""

    def __init__(self, database: Database, who: Identity, seconds: float) -> None:
        super().__init__(name="presence", daemon=True)
        self.who = who
        self._database = database
        self._seconds = seconds
        self._work: tuple[TaskName, str] | None = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    @contextmanager
    def at(self, task: TaskName, subject: str) -> Generator[None]:
        """Reports this task during the block; the caller records it first, in the task's own transaction."""
        with self._lock:  # what is being said now was true before
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
        """Notes it once."""
        with self._lock, self._database.begin(flush=False) as s:
            workers.seen(s, self.who, *(self._work or (None, None)))

    def stop(self) -> None:
        """The worker ends: nothing is heard of it any more."""
        self._stopped.set()
        if self.is_alive():
            self.join()
        with self._database.begin() as s:
            workers.leave(s, self.who.id)
