"""What a crash lost is found and done again, and nothing that is merely busy is disturbed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, update

from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.database import Database
from ferret_db.engine import lifecycle, rounds, task_attempts
from ferret_db.engine.file_integrity import call_for_repair
from ferret_db.engine.reconcile import reconcile
from ferret_db.repositories import gauges, outbox
from ferret_db.repositories.workers import WorkerIdentity
from ferret_db.tables import Experiment, OutboxMessage, Round, TaskRun, Worker

Sweep = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def sweep(database: Database, sent: list[tuple[str, str]]) -> Sweep:
    """Reconciles and returns what was sent; ``drained`` are the queues in which the broker has nothing."""

    def run(drained: Collection[Queue] = ()) -> list[tuple[str, str]]:
        sent.clear()
        reconcile(database, drained=drained)
        return list(sent)

    return run


def later(lab: Any, seconds: float = 40) -> None:
    """Everything so far happened longer ago."""
    for column in ("created_at", "sent_at", "received_at"):
        lab.age(OutboxMessage, column, seconds, getattr(OutboxMessage, column).is_not(None))
    lab.age(Experiment, "started_at", seconds, Experiment.started_at.is_not(None))
    for column in ("frozen_at", "committed_at"):
        lab.age(Round, column, seconds, getattr(Round, column).is_not(None))


def hire(lab: Any, pid: int, **work: Any) -> None:
    """A worker for training that is alive, and idle unless it is said what it works on."""
    with lab.database.begin() as s:
        s.add(Worker(id=f"train-host-{pid}", queue=Queue.TRAIN, host="host", pid=pid, device="cpu", **work))


def unsent(database: Database) -> int:
    with database.read() as s:
        return sum(gauges.read(s).unsent.values())


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
        reconcile(database)
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


@pytest.mark.about_database
def test_a_lost_lease_goes_back(lab: Any, sweep: Sweep) -> None:
    round_ = lab.open(lab.start(), participants=2)
    lost, alive = lab.assignments(round_)
    lab.lease(lost, seconds=-1)
    lab.lease(alive)
    assert sweep() == [("ferret.train", lost.id)]
    assert lab.get(lost).state == AssignmentState.PENDING
    assert lab.get(alive).state == AssignmentState.LEASED
    assert lab.lease(lost).fence == 2


def test_what_waits_at_the_broker_is_not_sent_again(lab: Any, sent: Any, sweep: Sweep) -> None:
    sent.taken = False
    lab.open(lab.start())
    hire(lab, 1)
    for _ in range(3):
        later(lab)
        assert sweep() == []


@pytest.mark.about_database
def test_what_the_broker_lost_is_sent_again_once(lab: Any, sent: Any, sweep: Sweep) -> None:
    sent.taken = False
    round_ = lab.open(lab.start())
    first, *_ = sorted(row.id for row in lab.assignments(round_))
    assert sweep(drained=Queue) == [], "it was sent this very moment"
    later(lab, 3)
    assert sorted(sweep(drained=Queue)) == [("ferret.coordinate", round_.experiment_id), ("ferret.train", first)]
    assert sweep(drained=Queue) == []


def test_a_message_that_later_ones_overtook_is_lost(lab: Any, sent: Any, sweep: Sweep) -> None:
    sent.taken = False
    overtaken, taken = lab.submit(), lab.submit()
    lab.age(OutboxMessage, "sent_at", 60, OutboxMessage.argument == overtaken.id)
    assert sweep() == []
    with lab.database.begin() as s:
        who = WorkerIdentity("aggregate-1", Queue.AGGREGATE, "host", 1, "cpu")
        task_attempts.begin(s, TaskName.COORDINATE, taken.id, who, strikes=3)
    assert sweep() == [("ferret.coordinate", overtaken.id)]
    assert sweep() == []


def test_a_training_that_a_worker_made_nothing_of_is_called_for_again(lab: Any, sweep: Sweep) -> None:
    (row,) = lab.assignments(lab.open(lab.start(), participants=1))
    assert sweep() == []
    later(lab)
    assert ("ferret.train", row.id) in sweep()


def test_a_round_past_its_deadline_closes(database: Database, lab: Any, sweep: Sweep) -> None:
    quorate, short = lab.start(round={"quorum": 0.3}), lab.start(round={"attempts": 1})
    for experiment in (quorate, short):
        lab.deliver(lab.assignments(lab.open(experiment))[0])
    lab.age(Round, "deadline_at", 1)
    (round_id,) = [argument for task, argument in sweep() if task == "ferret.aggregate"]
    assert lab.get(quorate).state == ExperimentState.RUNNING
    assert lab.get(short).error["code"] == "quorum.missed"
    with database.read() as s:
        assert s.get_one(Round, round_id).state == RoundState.FROZEN
        assert gauges.read(s).rounds == {"opening": 0, "open": 0, "frozen": 1, "committed": 0, "abandoned": 1}


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
    lab.open(lab.start(round={"attempts": 1}), deadline=-1)
    sweep()  # the quorum is missed
    later(lab)
    assert sweep() == []


def test_taken_messages_are_forgotten_after_an_hour(database: Database, lab: Any, sweep: Sweep) -> None:
    experiment = lab.start()
    with database.begin() as s:
        call_for_repair(s, experiment.id)
        lifecycle.cancel(s, experiment.id)
    later(lab, 3700)
    sweep()
    with database.read() as s:
        assert s.scalars(select(OutboxMessage)).all() == []


@pytest.mark.about_database
def test_reconcilers_at_once_do_the_work_once(database: Database, lab: Any, sent: list[Any]) -> None:
    rows = lab.assignments(lab.open(lab.start(), participants=10))
    for row in rows:
        lab.lease(row, seconds=-1)
    sent.clear()
    lab.race(lambda thread: reconcile(database))
    assert sorted(sent) == sorted(("ferret.train", row.id) for row in rows)


def test_half_a_lease_decides_when_work_is_lost(database: Database, lab: Any, sent: list[Any]) -> None:
    round_ = lab.freeze(lab.start())
    later(lab, 4)
    for lease_seconds, called in ((10.0, []), (6.0, [("ferret.aggregate", round_.id)])):
        sent.clear()
        reconcile(database, lease_seconds)
        assert [message for message in sent if message[0] == "ferret.aggregate"] == called


def test_a_missed_quorum_is_tried_again(lab: Any, sweep: Sweep) -> None:
    experiment = lab.start()
    lab.open(experiment, deadline=-1)
    assert ("ferret.coordinate", experiment.id) in sweep()
    assert lab.open(experiment).attempt == 2


def test_what_a_worker_has_in_hand_is_not_called_for(database: Database, lab: Any, sweep: Sweep) -> None:
    round_ = lab.freeze(lab.start())
    with database.begin() as s:
        about = {"task": TaskName.AGGREGATE, "subject": round_.id}
        s.add(Worker(id="aggregate-1", queue=Queue.AGGREGATE, host="host", pid=1, device="cpu", **about))
        of = {"experiment_id": round_.experiment_id}
        s.add(TaskRun(task=TaskName.AGGREGATE, argument=round_.id, worker="aggregate-1", **of))
    later(lab)
    assert ("ferret.aggregate", round_.id) not in sweep()
    lab.age(Worker, "seen_at", 100)
    assert ("ferret.aggregate", round_.id) in sweep()


def test_an_experiment_that_cannot_be_read_does_not_keep_the_others(
    database: Database, lab: Any, sweep: Sweep, caplog: pytest.LogCaptureFixture
) -> None:
    broken, *others = [lab.start(round={"attempts": 1}) for _ in range(3)]
    for experiment in (broken, *others):
        lab.open(experiment, deadline=-1)
    with database.begin() as s:
        s.execute(update(Experiment).where(Experiment.id == broken.id).values(spec={"no": "specification"}))
    sweep()
    assert [lab.get(experiment).state for experiment in (broken, *others)] == ["running", "failed", "failed"]
    assert f"{broken.id} could not be checked" in caplog.text


def test_workers_that_were_not_seen_for_a_day_are_forgotten(database: Database, lab: Any, sweep: Sweep) -> None:
    for pid in (1, 2):
        hire(lab, pid)
    lab.age(Worker, "seen_at", 86_500, Worker.pid == 1)
    sweep()
    with database.read() as s:
        assert [row.pid for row in s.scalars(select(Worker))] == [2]


@pytest.mark.slow
def test_a_sweep_takes_as_many_statements_for_a_thousand_assignments_as_for_three(
    lab: Any, sent: Any, sweep: Sweep
) -> None:
    sent.taken = False

    def statements(participants: int) -> list[int]:
        rows = lab.assignments(lab.open(lab.start(), participants))
        later(lab)
        counts = [counted(sweep)]
        for row in rows[: participants // 2]:
            lab.lease(row, seconds=-1)
        counts.append(counted(sweep))  # and some of the leases are lost
        with lab.database.begin() as s:
            lifecycle.cancel(s, rows[0].experiment_id)
        return counts

    hire(lab, 1)
    few, many = statements(3), statements(1000)
    assert all(more <= less + 10 for less, more in zip(few, many, strict=True)), (few, many)


def counted(act: Callable[[], Any]) -> int:
    """How many statements it takes."""
    statements: list[str] = []

    def count(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        act()
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    return len(statements)
