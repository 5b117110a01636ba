"""What a crash lost is found and done again, and nothing that is merely busy is disturbed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState
from ferret_core.protocol.tasks import TaskName
from ferret_db.database import Database
from ferret_db.engine import lifecycle, rounds
from ferret_db.engine.reconcile import reconcile
from ferret_db.repositories import gauges, outbox
from ferret_db.tables import Assignment, Experiment, OutboxMessage, Round

Sweep = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def sweep(database: Database, sent: list[tuple[str, str]]) -> Sweep:
    """Reconciles and returns what was sent."""

    def run() -> list[tuple[str, str]]:
        sent.clear()
        with database.begin() as s:
            reconcile(s)
        return list(sent)

    return run


def later(lab: Any, seconds: float = 40) -> None:
    """Everything so far happened longer ago."""
    for column in ("created_at", "sent_at"):
        lab.age(OutboxMessage, column, seconds, getattr(OutboxMessage, column).is_not(None))
    lab.age(Experiment, "started_at", seconds, Experiment.started_at.is_not(None))
    for column in ("frozen_at", "committed_at"):
        lab.age(Round, column, seconds, getattr(Round, column).is_not(None))


def unsent(database: Database) -> int:
    with database.read() as s:
        return gauges.read(s).outbox_unsent


def test_a_message_is_sent_once_the_broker_is_back(url: str, lab: Any) -> None:
    failures = [ConnectionError("at the commit"), ConnectionError("at the first sweep")]
    arrived: list[str] = []

    def dispatch(batch: list[OutboxMessage]) -> None:
        if failures:
            raise failures.pop(0)
        arrived.extend(message.argument for message in batch)

    database = Database(url, dispatch)
    with database.begin() as s:
        outbox.add(s, TaskName.TRAIN, "asg_1")
    later(lab, 3)
    for _ in range(3):
        with database.begin() as s:
            reconcile(s)
    assert arrived == ["asg_1"]
    with database.read() as s:
        assert [message.attempts for message in s.scalars(select(OutboxMessage))] == [3]
    assert unsent(database) == 0
    database.dispose()


def test_a_message_that_its_sender_still_has_in_hand_is_left_to_it(database: Database, url: str, sweep: Sweep) -> None:
    elsewhere = Database(url)
    with elsewhere.begin() as s:
        outbox.add(s, TaskName.TRAIN, "asg_1")
    elsewhere.dispose()
    assert sweep() == []
    assert unsent(database) == 1


def test_a_lost_lease_goes_back(lab: Any, sweep: Sweep) -> None:
    round_ = lab.open(lab.start())
    lost, alive, _ = lab.assignments(round_)
    lab.lease(lost, seconds=-1)
    lab.lease(alive)
    assert sweep() == [("ferret.train", lost.id)]
    assert lab.get(lost).state == AssignmentState.PENDING
    assert lab.get(alive).state == AssignmentState.LEASED
    assert lab.lease(lost).fence == 2


def test_work_whose_messages_the_broker_lost_is_sent_again(lab: Any, sweep: Sweep) -> None:
    waiting = lab.assignments(lab.open(lab.start()))
    assert sweep() == []
    later(lab)
    lab.lease(waiting[0])
    assert ("ferret.train", waiting[1].id) not in sweep()  # a worker is busy: the queue is alive
    lab.age(Assignment, "lease_until", 1, Assignment.state == AssignmentState.LEASED)
    assert {row.id for row in waiting} <= {argument for _, argument in sweep()}
    assert sweep() == []


def test_a_round_past_its_deadline_closes(database: Database, lab: Any, sweep: Sweep) -> None:
    quorate, short = lab.start(round={"quorum": 0.3}), lab.start()
    for experiment in (quorate, short):
        lab.deliver(lab.assignments(lab.open(experiment))[0])
    lab.age(Round, "deadline_at", 1)
    (round_id,) = [argument for task, argument in sweep() if task == "ferret.aggregate"]
    assert lab.get(quorate).state == ExperimentState.RUNNING
    assert lab.get(short).error["code"] == "quorum.missed"
    with database.read() as s:
        assert s.get_one(Round, round_id).state == RoundState.FROZEN
        assert gauges.read(s).rounds == {"open": 0, "frozen": 1, "committed": 0, "abandoned": 1}


def test_an_idle_experiment_is_coordinated_again(lab: Any, sweep: Sweep) -> None:
    experiment = lab.submit()
    assert sweep() == []
    later(lab, 20)
    assert sweep() == [("ferret.coordinate", experiment.id)]
    assert sweep() == []


def test_the_base_models_evaluation_is_called_for_again(database: Database, lab: Any, sweep: Sweep) -> None:
    experiment = lab.start()
    lab.open(experiment)
    later(lab)
    assert ("ferret.evaluate", experiment.id) in sweep()
    with database.begin() as s:
        rounds.record_evaluation(s, experiment.id, 0, {"eval_loss": 3.0})
    later(lab)
    assert ("ferret.evaluate", experiment.id) not in sweep()


def test_a_frozen_round_is_aggregated_again(lab: Any, sweep: Sweep) -> None:
    round_ = lab.freeze(lab.start())
    assert sweep() == []
    later(lab)
    assert ("ferret.aggregate", round_.id) in sweep()
    lab.commit(round_)
    later(lab)
    assert ("ferret.aggregate", round_.id) not in sweep()


def test_a_due_evaluation_is_called_for_again(database: Database, lab: Any, sweep: Sweep) -> None:
    experiment = lab.start(rounds=2, evaluation={"every": 2})
    committed = []
    for number in (1, 2):
        committed.append(lab.freeze(lab.get(experiment), number))
        lab.commit(committed[-1])
    later(lab)
    asked = sweep()
    assert ("ferret.evaluate", committed[1].id) in asked
    assert ("ferret.evaluate", committed[0].id) not in asked
    with database.begin() as s:
        rounds.record_evaluation(s, experiment.id, 2, {"eval_loss": 3.0})
    later(lab)
    assert ("ferret.evaluate", committed[1].id) not in sweep()


def test_a_finished_experiment_is_left_alone(database: Database, lab: Any, sweep: Sweep) -> None:
    lab.open(lab.start(), deadline=-1)
    sweep()  # the quorum is missed
    later(lab)
    assert sweep() == []


def test_sent_messages_are_forgotten_after_an_hour(database: Database, lab: Any, sweep: Sweep) -> None:
    first = lab.submit()
    with database.begin() as s:
        lifecycle.cancel(s, first.id)
    later(lab, 3700)
    lab.submit()
    sweep()
    with database.read() as s:
        assert [message.argument != first.id for message in s.scalars(select(OutboxMessage))] == [True]


def test_reconcilers_at_once_do_the_work_once(database: Database, lab: Any, sent: list[Any]) -> None:
    rows = lab.assignments(lab.open(lab.start(), participants=10))
    for row in rows:
        lab.lease(row, seconds=-1)
    sent.clear()

    def run(thread: int) -> None:
        with database.begin() as s:
            reconcile(s)

    lab.race(run)
    assert sorted(sent) == sorted(("ferret.train", row.id) for row in rows)
