"""What the database says of one experiment while everything around it is being killed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from ferret_core.protocol.task_names import TaskName
from ferret_db.database import Database
from ferret_db.repositories import experiments
from ferret_db.tables import Event, Experiment, Worker

R = TypeVar("R")


class Watch:
    """Reads again where its own connection was cut."""

    def __init__(self, database: Database, experiment_id: str) -> None:
        self._database = database
        self.experiment_id = experiment_id

    def experiment(self) -> Experiment:
        return self.read(lambda s: experiments.get(s, self.experiment_id))

    def at_work(self, task: TaskName) -> set[int]:
        """The process ids of the workers that said they are at ``task``; those of the killed are among them."""
        return set(self.read(lambda s: s.scalars(select(Worker.pid).where(Worker.task == task)).all()))

    def moments(self) -> list[datetime]:
        """When each event of the experiment happened, in order."""
        query = select(Event.created_at).where(Event.experiment_id == self.experiment_id).order_by(Event.seq)
        return self.read(lambda s: list(s.scalars(query)))

    def read(self, look: Callable[[Session], R]) -> R:
        """``look`` at one snapshot of the database."""
        while True:
            try:
                with self._database.read() as s:
                    return look(s)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
