"""Real workers on a real broker: killed by their work, told to stop, and cut off from what carries their messages."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import AssignmentState, ExperimentState
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_core.simulate import simulate
from ferret_db.engine import lifecycle
from ferret_db.repositories import assignments, rounds, task_runs
from ferret_db.tables import Assignment
from tests.tiers import EITHER_DATABASE
from tests.worker.conftest import usually_on

pytestmark = [pytest.mark.redis, pytest.mark.timeout(1200)]  # each starts several processes that load torch
SpecFactory = Callable[..., ExperimentSpec]
Fleet = Any  # tests/worker/processes/conftest.py

POISONED = """
import os, signal
from ferret_core.protocol.task_names import TaskName
from ferret_db.repositories import assignments
from ferret_worker import task_runner
from ferret_worker.__main__ import main

train = task_runner.TASKS[TaskName.TRAIN]

def poisoned(context, assignment_id):
    with context.database.read() as s:
        participant = assignments.get(s, assignment_id).participant
    if participant == "client-002":
        os.kill(os.getpid(), signal.SIGKILL)
    train(context, assignment_id)

task_runner.TASKS[TaskName.TRAIN] = poisoned
"""
DEAF = """
import time
from ferret_core.protocol.task_names import TaskName
from ferret_worker import task_runner
from ferret_worker.__main__ import main

def deaf(context, assignment_id):
    while True:
        time.sleep(0.05)

task_runner.TASKS[TaskName.TRAIN] = deaf
"""
ENDLESS = {"steps": 10**6, "learning_rate": 1e-6, "batch_size": 1, "accumulation": 1}
LONG = {"steps": 60, "learning_rate": 1e-4, "batch_size": 1, "accumulation": 1}
LOST = """
from ferret_core.protocol.task_names import TaskName
from ferret_worker import task_runner
from ferret_worker.__main__ import main

def lost(context, assignment_id):
    raise RuntimeError("CUDA error: device-side assert triggered")

task_runner.TASKS[TaskName.TRAIN] = lost
"""
PATIENT = """
from ferret_worker import watchdog
from ferret_worker.__main__ import main

watchdog.GRACE_SECONDS = 300.0  # a step on a busy machine may take longer than a second to notice the end
"""
QUICK = {"examples": 2, "generate_examples": 0}
sqlite = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)


def of_round(fleet: Fleet, experiment_id: str) -> list[Assignment]:
    """The assignments of the last round; none before the first."""
    with fleet.database.read() as s:
        last = rounds.latest(s, experiment_id)
        return assignments.of_round(s, last.id) if last else []


def leased(fleet: Fleet, experiment_id: str) -> list[Assignment]:
    return [round_ for round_ in of_round(fleet, experiment_id) if round_.state == AssignmentState.LEASED]


def at_work(fleet: Fleet, queue: Queue, task: TaskName) -> bool:
    return any((row.queue, row.task) == (queue, task) for row in fleet.workers().values())


@pytest.mark.slow
@pytest.mark.parametrize("settings", EITHER_DATABASE, indirect=True)
def test_a_poison_task_is_dead_after_three_workers_and_the_rest_goes_on(fleet: Fleet, plain_spec: SpecFactory) -> None:
    fleet.start(Queue.AGGREGATE)
    fleet.start(Queue.TRAIN, POISONED)
    experiment = fleet.until_finished(fleet.submit(plain_spec(rounds=1, round={"quorum": 0.5})))
    assert (experiment.state, experiment.round) == (ExperimentState.COMPLETED, 1)
    found = {round_.participant: round_ for round_ in of_round(fleet, experiment.id)}
    assert (found["client-002"].state, found["client-002"].error["code"]) == (AssignmentState.REJECTED, "task.given_up")
    with fleet.database.read() as s:
        run = task_runs.get(s, TaskName.TRAIN, found["client-002"].id)
    assert run is not None
    assert run.attempts == 3
    assert [item.state for item in found.values()].count(AssignmentState.ACCEPTED) == 2


@sqlite
def test_told_to_stop_a_worker_gives_its_work_back(fleet: Fleet, plain_spec: SpecFactory) -> None:
    fleet.start(Queue.AGGREGATE)
    first = fleet.start(Queue.TRAIN)
    experiment_id = fleet.submit(plain_spec(options={"local": ENDLESS}))
    fleet.until(lambda: bool(leased(fleet, experiment_id)))
    (held,) = leased(fleet, experiment_id)
    fleet.terminate(first)
    fleet.until(lambda: first.exit_code is not None)
    assert first.exit_code == 0, first.last_lines()
    (given_back,) = [round_ for round_ in of_round(fleet, experiment_id) if round_.id == held.id]
    assert (given_back.state, given_back.lease_until) == (AssignmentState.PENDING, None)
    assert first.pid not in fleet.workers()


@pytest.mark.slow
@sqlite
def test_told_twice_or_to_quit_or_with_its_device_lost_a_worker_is_gone(fleet: Fleet, plain_spec: SpecFactory) -> None:
    fleet.start(Queue.AGGREGATE)
    experiment_id = fleet.submit(plain_spec(options={"local": ENDLESS}))
    deaf = fleet.start(Queue.TRAIN, DEAF)
    fleet.until(lambda: at_work(fleet, Queue.TRAIN, TaskName.TRAIN))
    fleet.terminate(deaf)
    fleet.until(lambda: "Warm shutdown" in deaf.last_lines())
    assert deaf.exit_code is None
    fleet.terminate(deaf)
    fleet.until(lambda: deaf.exit_code is not None)
    assert deaf.exit_code == 1

    blind = fleet.start(Queue.TRAIN, LOST)
    fleet.until(lambda: blind.exit_code is not None)
    assert blind.exit_code == 1
    with fleet.database.read() as s:
        (failing,) = task_runs.failing(s, experiment_id)
    assert "device-side assert" in failing.error["detail"]

    third = fleet.start(Queue.TRAIN, PATIENT)
    fleet.until(lambda: bool(leased(fleet, experiment_id)))
    taken = leased(fleet, experiment_id)[0].lease_until
    # Once the lease is extended, the model is loaded: steps notice the end.
    fleet.until(lambda: leased(fleet, experiment_id)[0].lease_until > taken)
    with fleet.database.begin() as s:
        lifecycle.cancel(s, experiment_id)
    fleet.until(lambda: third.pid in fleet.workers() and fleet.workers()[third.pid].task is None)
    fleet.quit(third)
    fleet.until(lambda: third.exit_code is not None)
    assert (third.exit_code, "stopped" in third.last_lines()) == (1, False)

    # Celery itself says on stdout that it shuts down; all else is logged, whoever logs it, and one document per line.
    said = [line for line in third.log.read_text().splitlines() if line and not line.startswith("worker: ")]
    lines = [json.loads(line) for line in said]
    assert all({"event", "level", "logger", "timestamp"} <= line.keys() for line in lines)
    assert any(line["logger"].startswith("celery.") for line in lines)
    (taken_away,) = [line for line in lines if line["logger"] == "ferret_worker.task_runner"]
    assert (taken_away["experiment"], taken_away["round"], taken_away["task"]) == (experiment_id, 1, "ferret.train")


@pytest.mark.slow
@sqlite
def test_a_broker_that_dies_before_a_task_is_acknowledged_is_connected_to_anew(
    fleet: Fleet, toy_spec: SpecFactory
) -> None:
    """The worker must not go on believing that it still works on that message, and wait for ever."""
    spec = toy_spec("fedavg", rounds=1, options={"local": LONG}, evaluation=QUICK)
    workers = [fleet.start(Queue.AGGREGATE), fleet.start(Queue.TRAIN)]
    experiment_id = fleet.submit(spec)
    fleet.until(lambda: bool(leased(fleet, experiment_id)))
    fleet.lose_broker()
    fleet.until(lambda: all("Cannot connect" in worker.log.read_text() for worker in workers))
    fleet.broker.child.start()
    experiment = fleet.until_finished(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)
    assert [worker.exit_code for worker in workers] == [None, None], fleet.last_lines()


@pytest.mark.slow
@usually_on("postgresql")
def test_a_broker_that_hangs_is_named_and_all_goes_on_when_it_answers(fleet: Fleet, plain_spec: SpecFactory) -> None:
    spec = plain_spec(rounds=2)
    for queue in Queue:
        fleet.start(queue)
    fleet.until(lambda: len(fleet.workers()) == len(Queue))
    os.kill(fleet.broker.child.pid, signal.SIGSTOP)
    experiment_id = fleet.submit(spec)
    fleet.until(lambda: fleet.stalled(experiment_id) == "broker.missing")
    os.kill(fleet.broker.child.pid, signal.SIGCONT)
    experiment = fleet.until_finished(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)
    waiting = fleet.submit(plain_spec(participants={"edge": 1}))
    fleet.until(lambda: fleet.stalled(waiting) == "participants.missing")
