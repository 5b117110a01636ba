"""Broadcast from a team's first process to the others, as numbered entries in the team's store."""

from __future__ import annotations

import time
from collections.abc import Callable

from pydantic import ValidationError
from torch import distributed

from ferret_core.distributed.process_group import ProcessGroup, process_group_failed
from ferret_core.protocol.spec import RoundTask, StrictModel

LOOK_SECONDS = 0.05
END = "end"


class TeamTask(StrictModel):
    """A client's part in a round, under a unique name."""

    name: str
    task: RoundTask


class TeamBroadcaster:
    """The first process' side."""

    def __init__(self, team: ProcessGroup) -> None:
        self.team = team
        self._number = 0

    def announce(self, task: RoundTask) -> str:
        """Starts ``task`` on the others and returns its name; raises ``process_group.failed`` without a store."""
        work = TeamTask(name=f"{self._number}", task=task)
        try:
            self._tell(work.model_dump_json())
        except (distributed.DistError, RuntimeError) as error:
            raise process_group_failed("the team's store is gone") from error
        return work.name

    def end(self) -> None:
        """Ends the others, if they are running."""
        try:
            self._tell(END)
        except (distributed.DistError, RuntimeError):
            return

    def _tell(self, text: str) -> None:
        if self._number > 1:
            self.team.store.delete_key(_key(self._number - 2))
        self.team.store.set(_key(self._number), text)
        self._number += 1


def heard(team: ProcessGroup, number: int, stopping: Callable[[], bool]) -> TeamTask | None:
    """Waits for the work with this ``number`` and returns it. Returns None at the end, and once ``stopping()``.

    Raises ``process_group.failed`` if the store has vanished with its process, or holds something else.
    """
    try:
        while not team.store.check([_key(number)]):
            if stopping():
                return None
            time.sleep(LOOK_SECONDS)
        told = team.store.get(_key(number))
    except (distributed.DistError, RuntimeError) as error:
        raise process_group_failed("the first process is gone") from error
    return None if told == END.encode() else _parsed(told)


def _parsed(told: bytes) -> TeamTask:
    try:
        return TeamTask.model_validate_json(told)
    except ValidationError as error:
        raise process_group_failed("the team's store holds an invalid announcement") from error


def _key(number: int) -> str:
    return f"work/{number}"
