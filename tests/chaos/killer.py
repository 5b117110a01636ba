"""Kills and stops processes by plan, while a supervisor replaces them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from ferret_core.protocol.task_names import QUEUE_OF, TaskName
from tests.chaos.cluster import Cluster
from tests.chaos.schedule import Kill
from tests.chaos.watch import Watch

TASKS = {
    "train": TaskName.TRAIN,
    "aggregate": TaskName.AGGREGATE,
    "evaluate": TaskName.EVALUATE,
    "coordinate": TaskName.COORDINATE,
}
"""Victims that are whichever worker is at this task."""
AIM_SECONDS = 5.0
LATE_EVENTS = 15
"""A kill waits so long for such a worker, and until so many more events have happened."""
STEP_SECONDS = 0.01


class TooLong(Exception):
    """The experiment did not end in the time given."""


class Hit(NamedTuple):
    """When ``victim`` was struck; ``at_work``: as it was meant, a worker in the middle of its task."""

    moment: datetime
    victim: str
    at_work: bool


class Hung(NamedTuple):
    """A stopped process: its pid and the ``time.monotonic()`` of the strike."""

    pid: int
    since: float


@dataclass
class Striker:
    """Keeps its ``hits``, and after how many seconds each stopped process was ``replaced``.

    ``cut_sessions`` ends every connection to the database; ``deadline`` is a ``time.monotonic()``.
    """

    cluster: Cluster
    watch: Watch
    cut_sessions: Callable[[], object]
    random: Random
    deadline: float
    say: Callable[[str], None]
    hits: list[Hit] = field(default_factory=list)
    replaced: list[float] = field(default_factory=list)
    _hung: dict[str, Hung] = field(default_factory=dict)

    def rage(self, kills: Sequence[Kill]) -> None:
        """Until the experiment has ended, before which every kill should have been due; raises ``TooLong``."""
        for kill in kills:
            self._until(lambda kill=kill: self._passed(kill.after))
            self._until(lambda kill=kill: self._late(kill), kill.delay)
            if self.watch.experiment().state.finished:
                return
            self._strike(kill)
        self._until(lambda: self.watch.experiment().state.finished and not self._hung)

    def _strike(self, kill: Kill) -> None:
        name, at_work = self._aim(kill) if kill.target in TASKS else (kill.target, False)
        self.hits.append(Hit(datetime.now(UTC), kill.victim, at_work))
        match kill.target:
            case "flush":
                self.cluster.flush_broker()
            case "sessions":
                self.cut_sessions()
            case _ if kill.hangs:
                self._hang(name)
            case _:
                self._hung.pop(name, None)
                self.cluster.kill(name)
        what = "hang" if kill.hangs else "kill"
        hit = f"{self.hits[-1].moment:%H:%M:%S.%f} {what} {len(self.hits)}, after event {kill.after}: {name}"
        self.say(f"{hit} at {kill.target}" if at_work else hit)

    def _hang(self, name: str) -> None:
        """A process that has just ended or hangs already is left alone."""
        if name not in self._hung and (pid := self.cluster.hang(name)) is not None:
            self._hung[name] = Hung(pid, time.monotonic())

    def _note_replaced(self) -> None:
        for name, hung in list(self._hung.items()):
            child = self.cluster.children[name]
            if child.pid != hung.pid:
                self.replaced.append(time.monotonic() - hung.since)
                del self._hung[name]

    def _aim(self, kill: Kill) -> tuple[str, bool]:
        """A worker that is at the task, else any that could be; and whether it is."""
        task = TASKS[kill.target]
        names = self.cluster.workers(QUEUE_OF[task])
        busy: list[str] = []

        def found() -> bool:
            pids = self.watch.at_work(task)
            busy.extend(name for name in names if self.cluster.children[name].pid in pids)
            return bool(busy) or self._late(kill)

        self._until(found, AIM_SECONDS)
        return self.random.choice(busy or names), bool(busy)

    def _late(self, kill: Kill) -> bool:
        """Whether the experiment has gone on so far without this kill that it must come at once."""
        return self._passed(kill.after + LATE_EVENTS)

    def _passed(self, event: int) -> bool:
        return self.watch.experiment().last_event_seq >= event

    def _until(self, holds: Callable[[], bool], seconds: float = float("inf")) -> None:
        """Supervises until ``holds()``, for so many seconds at most."""
        end = time.monotonic() + seconds
        while not holds() and time.monotonic() < end:
            if time.monotonic() > self.deadline:
                raise TooLong(f"{self.watch.experiment_id} stands at event {self.watch.experiment().last_event_seq}")
            self.cluster.supervise()
            self._note_replaced()
            time.sleep(STEP_SECONDS)
