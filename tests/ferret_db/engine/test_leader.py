"""The service's time is counted, not read: no jump of the database's clock moves a deadline."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from ferret_core.protocol.states import AssignmentState, RoundState
from ferret_db.database import Database
from ferret_db.engine.leader import Leader
from ferret_db.engine.reconcile import reconcile
from ferret_db.tables import Assignment, Experiment, OutboxMessage, Round, ServiceClock, Worker

HOUR = 3600.0
TICK = 5.0


class Process:
    """A process that sweeps every five seconds, with a clock of its own."""

    seconds = 0.0

    def __init__(self, database: Database, who: str) -> None:
        self.database = database
        self.keeper = Leader(database, who, 3 * TICK, lease_seconds=60, monotonic=lambda: Process.seconds)

    def wait_for_the_lock(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        """Delays the next transaction by ``seconds``, on the process's clock and on the database's."""
        begin = self.database.begin

        def late(**options: Any) -> Any:
            Process.seconds += seconds
            monkeypatch.undo()
            return begin(**options)

        jump(self.database, seconds)
        monkeypatch.setattr(self.database, "begin", late)

    def sweep(self) -> bool:
        turn = self.keeper.turn()
        if turn:
            reconcile(self.database)
        return turn


@pytest.fixture
def process(database: Database) -> Process:
    Process.seconds = 0.0
    process = Process(database, "worker-1")
    assert process.sweep()
    return process


def jump(database: Database, seconds: float) -> None:
    """The database's clock jumps: as good as all moments in it lying so much further back."""
    with database.begin() as s:
        for table in (Assignment, Experiment, OutboxMessage, Round, ServiceClock, Worker):
            for row in s.scalars(select(table)):
                for column in table.__table__.columns:
                    moment = getattr(row, column.name)
                    if isinstance(moment, datetime):
                        setattr(row, column.name, moment - timedelta(seconds=seconds))


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_jump_closes_no_round_early_and_none_late(
    database: Database, lab: Any, process: Process, seconds: float
) -> None:
    round_ = lab.open(lab.start(round={"attempts": 1}), deadline=4 * TICK)
    held = lab.lease(lab.assignments(round_)[0])
    jump(database, seconds)
    for _ in range(3):
        Process.seconds += TICK
        process.sweep()
        assert lab.get(round_).state == RoundState.OPEN
        assert lab.get(held).state == AssignmentState.LEASED, "who is alive keeps its lease"
    for _ in range(2):
        Process.seconds += TICK
        process.sweep()
    assert lab.get(round_).state == RoundState.ABANDONED


def test_waiting_for_the_write_lock_is_no_jump(
    database: Database, process: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process.wait_for_the_lock(HOUR, monkeypatch)
    assert process.sweep()
    assert "jumped" not in caplog.text


@pytest.mark.about_database
def test_one_process_sweeps_and_another_takes_over_when_it_is_silent(database: Database, process: Process) -> None:
    other = Process(database, "worker-2")
    for _ in range(4):
        Process.seconds += TICK
        assert (process.sweep(), other.sweep()) == (True, False)
    found = list[bool]()
    for _ in range(4):
        Process.seconds += TICK
        found.append(other.sweep())
    assert found == [False, False, True, True]
    assert not process.sweep(), "which comes back and sees that another has the office"


def test_who_ends_in_order_leaves_the_office_at_once(database: Database, process: Process) -> None:
    process.keeper.leave()
    assert Process(database, "worker-2").sweep()


def test_while_no_process_runs_no_deadline_passes(database: Database, lab: Any, process: Process) -> None:
    round_ = lab.open(lab.start(), deadline=HOUR)
    Process.seconds += 10 * HOUR
    for _ in range(3):
        Process(database, "worker-2").sweep()
    assert lab.get(round_).state == RoundState.OPEN
