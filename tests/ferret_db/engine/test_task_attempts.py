"""Attempts are counted before they run; three that did not end well make a task dead, and the rest goes on."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError, OperationalError

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.database import Database
from ferret_db.engine import lifecycle, rounds, task_attempts
from ferret_db.engine.file_integrity import call_for_repair
from ferret_db.engine.reconcile import reconcile
from ferret_db.engine.task_attempts import TaskSubject
from ferret_db.repositories import events, task_runs, workers
from ferret_db.repositories.workers import WorkerIdentity
from ferret_db.tables import Assignment, Experiment, TaskRun, Worker

FULL = FerretError("storage.full", "no room left")
BUG = FerretError("internal", "KeyError: 'w'")


class Crew:
    """Workers that take tasks, and are killed at them."""

    def __init__(self, database: Database, lab: Any, sent: list[tuple[str, str]]) -> None:
        self.database = database
        self.lab = lab
        self.sent = sent
        self.hired = 0

    def worker(self) -> WorkerIdentity:
        self.hired += 1
        return WorkerIdentity(f"aggregate-host-{self.hired}-00", Queue.AGGREGATE, "host", self.hired, "cpu")

    def begin(self, task: TaskName, argument: str, who: WorkerIdentity | None = None) -> TaskSubject | None:
        with self.database.begin() as s:
            return task_attempts.begin(s, task, argument, who or self.worker(), strikes=3)

    def end(self, how: Any, task: TaskName, argument: str, who: WorkerIdentity, *args: Any, **options: Any) -> None:
        with self.database.begin() as s:
            how(s, task, argument, who, *args, **options)

    def kill(self) -> None:
        """All workers so far: nothing is heard of them any more."""
        self.lab.age(Worker, "seen_at", 20)

    def die_at(self, task: TaskName, argument: str, times: int = 3) -> None:
        for _ in range(times):
            assert self.begin(task, argument) is not None
            self.kill()
            if task == TaskName.TRAIN:
                self.lease(argument, seconds=-1)

    def lease(self, assignment_id: str, seconds: float) -> None:
        with self.database.read() as s:
            self.lab.lease(s.get_one(Assignment, assignment_id), seconds)

    def experiment(self, experiment_id: str) -> Experiment:
        with self.database.read() as s:
            return s.get_one(Experiment, experiment_id)

    def run(self, task: TaskName, argument: str) -> TaskRun | None:
        with self.database.read() as s:
            return task_runs.get(s, task, argument)

    def sweep(self) -> list[tuple[str, str]]:
        """What a reconciler sends."""
        self.sent.clear()
        reconcile(self.database)
        return list(self.sent)


@pytest.fixture
def crew(database: Database, lab: Any, sent: list[tuple[str, str]]) -> Crew:
    return Crew(database, lab, sent)


def test_a_task_that_ends_well_leaves_nothing_behind(crew: Crew, lab: Any) -> None:
    experiment, who = lab.start(), crew.worker()
    assert crew.begin(TaskName.COORDINATE, experiment.id, who) == TaskSubject(experiment.id)
    run = crew.run(TaskName.COORDINATE, experiment.id)
    assert (run.attempts, run.worker, run.experiment_id) == (1, who.id, experiment.id)
    crew.end(task_attempts.done, TaskName.COORDINATE, experiment.id, who)
    assert crew.run(TaskName.COORDINATE, experiment.id) is None


def test_what_a_task_is_about(crew: Crew, lab: Any, database: Database) -> None:
    round_ = lab.open(lab.start())
    assignment = lab.assignments(round_)[0]
    subjects = {
        (TaskName.TRAIN, assignment.id): TaskSubject(round_.experiment_id, 1, "client-0"),
        (TaskName.AGGREGATE, round_.id): TaskSubject(round_.experiment_id, 1),
        (TaskName.EVALUATE, round_.id): TaskSubject(round_.experiment_id, 1),
        (TaskName.EVALUATE, round_.experiment_id): TaskSubject(round_.experiment_id),
        (TaskName.COORDINATE, round_.experiment_id): TaskSubject(round_.experiment_id),
    }
    with database.read() as s:
        assert {key: task_attempts.subject_of(s, *key) for key in subjects} == subjects
    for task in (TaskName.TRAIN, TaskName.AGGREGATE, TaskName.EVALUATE, TaskName.COORDINATE):
        assert crew.begin(task, "rnd_0000000000000000") is None
        assert crew.run(task, "rnd_0000000000000000") is None


@pytest.mark.parametrize("task", [TaskName.COORDINATE, TaskName.AGGREGATE])
def test_a_poison_task_is_dead_after_three_workers_and_fails_its_experiment(
    crew: Crew, lab: Any, task: TaskName
) -> None:
    round_ = lab.freeze(lab.start())
    argument = round_.id if task == TaskName.AGGREGATE else round_.experiment_id
    crew.die_at(task, argument)
    assert crew.begin(task, argument) is None
    run = crew.run(task, argument)
    assert run.given_up_at is not None
    assert (run.error["code"], run.attempts) == ("task.given_up", 3)
    experiment = crew.experiment(round_.experiment_id)
    assert (experiment.state, experiment.error["code"]) == (ExperimentState.FAILED, "task.given_up")
    assert "3 times" in experiment.error["detail"]
    assert "disappeared" in experiment.error["detail"]
    assert argument in experiment.error["detail"]
    assert (task, argument) not in crew.sweep()


def test_a_poison_training_is_rejected_and_the_round_goes_on(crew: Crew, lab: Any) -> None:
    round_ = lab.open(lab.start(round={"quorum": 0.5}))
    poison, *others = lab.assignments(round_)
    crew.die_at(TaskName.TRAIN, poison.id)
    assert crew.begin(TaskName.TRAIN, poison.id) is None
    rejected = lab.get(poison)
    assert (rejected.state, rejected.error["code"]) == (AssignmentState.REJECTED, "task.given_up")
    for other in others:
        lab.deliver(other)
    assert lab.get(round_).state == RoundState.FROZEN


def test_a_dead_training_whose_lease_still_runs_is_rejected_when_it_ends(crew: Crew, lab: Any) -> None:
    poison = lab.assignments(lab.open(lab.start()))[0]
    crew.die_at(TaskName.TRAIN, poison.id)
    crew.lease(poison.id, seconds=60)
    assert crew.begin(TaskName.TRAIN, poison.id) is None
    assert lab.get(poison).state == AssignmentState.LEASED
    lab.age(Assignment, "lease_until", 1, Assignment.id == poison.id)
    assert crew.begin(TaskName.TRAIN, poison.id) is None
    assert lab.get(poison).state == AssignmentState.REJECTED


def test_a_dead_training_of_a_paused_experiment_is_rejected_once_it_goes_on(crew: Crew, lab: Any) -> None:
    round_ = lab.open(lab.start())
    poison = lab.assignments(round_)[0]
    crew.die_at(TaskName.TRAIN, poison.id)
    for move, state in ((lifecycle.pause, AssignmentState.PENDING), (lifecycle.resume, AssignmentState.REJECTED)):
        with crew.database.begin() as s:
            move(s, round_.experiment_id)
        assert crew.begin(TaskName.TRAIN, poison.id) is None
        assert lab.get(poison).state == state


def test_a_poison_evaluation_is_left_out(crew: Crew, lab: Any) -> None:
    round_ = lab.freeze(lab.start())
    lab.commit(round_)
    crew.die_at(TaskName.EVALUATE, round_.id)
    crew.sent.clear()
    assert crew.begin(TaskName.EVALUATE, round_.id) is None
    assert crew.sent == [("ferret.coordinate", round_.experiment_id)]
    assert lab.get(round_).evaluated_at is not None
    with crew.database.read() as s:
        (event,) = [
            event for event in events.after(s, round_.experiment_id, 0, 100) if event.type == "evaluation.failed"
        ]
    assert (event.round, event.data["code"]) == (1, "task.given_up")
    assert crew.begin(TaskName.EVALUATE, round_.id) is None  # and once is enough
    with crew.database.read() as s:
        assert [later.type for later in events.after(s, round_.experiment_id, event.seq, 100)] == []


def test_the_base_models_poison_evaluation_fails_the_experiment(crew: Crew, lab: Any) -> None:
    experiment = lab.start()
    crew.die_at(TaskName.EVALUATE, experiment.id)
    crew.begin(TaskName.EVALUATE, experiment.id)
    assert lab.get(experiment).error["code"] == "task.given_up"


def test_what_was_done_after_all_does_no_harm(crew: Crew, lab: Any) -> None:
    """The round was committed and the base model evaluated, by workers that died before they could say so."""
    round_ = lab.freeze(lab.start())
    crew.die_at(TaskName.AGGREGATE, round_.id)
    crew.die_at(TaskName.EVALUATE, round_.experiment_id)
    lab.commit(round_)
    with crew.database.begin() as s:
        rounds.record_evaluation(s, round_.experiment_id, 0, {"eval_loss": 1.0})
    for task, argument in ((TaskName.AGGREGATE, round_.id), (TaskName.EVALUATE, round_.experiment_id)):
        assert crew.begin(task, argument) is None
    assert crew.experiment(round_.experiment_id).state == ExperimentState.RUNNING


def test_a_task_of_a_finished_experiment_dies_quietly(crew: Crew, lab: Any) -> None:
    round_ = lab.freeze(lab.start())
    crew.die_at(TaskName.AGGREGATE, round_.id)
    with crew.database.begin() as s:
        lifecycle.cancel(s, round_.experiment_id)
    assert crew.begin(TaskName.AGGREGATE, round_.id) is None
    assert crew.run(TaskName.AGGREGATE, round_.id).given_up_at is not None


def test_given_back_and_refused_work_is_no_strike(crew: Crew, lab: Any) -> None:
    round_ = lab.freeze(lab.start())
    for _ in range(5):
        who = crew.worker()
        assert crew.begin(TaskName.AGGREGATE, round_.id, who) is not None
        crew.end(task_attempts.released, TaskName.AGGREGATE, round_.id, who)
        assert crew.run(TaskName.AGGREGATE, round_.id) is None
    crew.die_at(TaskName.AGGREGATE, round_.id, times=2)
    who = crew.worker()
    crew.begin(TaskName.AGGREGATE, round_.id, who)
    crew.sent.clear()
    crew.end(task_attempts.released, TaskName.AGGREGATE, round_.id, who, again=True)
    assert crew.run(TaskName.AGGREGATE, round_.id).attempts == 2
    assert crew.sent == [("ferret.aggregate", round_.id)]


def test_a_full_disk_is_no_strike_and_is_shown(crew: Crew, lab: Any) -> None:
    round_ = lab.freeze(lab.start())
    for _ in range(5):
        who = crew.worker()
        assert crew.begin(TaskName.AGGREGATE, round_.id, who) is not None
        crew.end(task_attempts.failed, TaskName.AGGREGATE, round_.id, who, FULL, strike=False)
        with crew.database.read() as s:
            (run,) = task_runs.failing(s, round_.experiment_id)
        assert (run.error["code"], run.attempts, run.worker) == ("storage.full", 0, None)
    crew.begin(TaskName.AGGREGATE, round_.id, who)
    crew.end(task_attempts.done, TaskName.AGGREGATE, round_.id, who)
    with crew.database.read() as s:
        assert list(task_runs.failing(s, round_.experiment_id)) == []


def test_the_last_error_is_the_reason_of_death(crew: Crew, lab: Any) -> None:
    experiment = lab.start()
    for _ in range(3):
        who = crew.worker()
        assert crew.begin(TaskName.COORDINATE, experiment.id, who) is not None
        crew.end(task_attempts.failed, TaskName.COORDINATE, experiment.id, who, BUG, strike=True)
    assert crew.begin(TaskName.COORDINATE, experiment.id) is None
    assert "KeyError: 'w'" in lab.get(experiment).error["detail"]


def test_who_is_to_blame() -> None:
    assert not task_attempts.is_strike(FULL)
    assert not task_attempts.is_strike(OSError(28, "No space left on device"))
    assert not task_attempts.is_strike(OperationalError("SELECT 1", {}, Exception("terminating connection")))
    assert not task_attempts.is_strike(RuntimeError("Error while serializing: I/O error: File too large (os error 27)"))
    assert task_attempts.is_strike(OSError(2, "No such file or directory"))
    assert task_attempts.is_strike(IntegrityError("INSERT", {}, Exception("duplicate")))
    assert task_attempts.is_strike(ValueError("x"))
    assert task_attempts.described(OSError(28, "No space left on device")).code == "storage.full"
    assert task_attempts.described(ValueError("x")).detail == "ValueError: x"


def test_one_worker_at_a_time_and_no_message_is_lost(crew: Crew, lab: Any) -> None:
    experiment, first, second = lab.start(), crew.worker(), crew.worker()
    crew.begin(TaskName.COORDINATE, experiment.id, first)
    assert crew.begin(TaskName.COORDINATE, experiment.id, second) is None
    crew.sent.clear()
    crew.end(task_attempts.done, TaskName.COORDINATE, experiment.id, first)
    assert crew.sent == [("ferret.coordinate", experiment.id)]
    assert crew.begin(TaskName.COORDINATE, experiment.id, second) is not None
    assert crew.run(TaskName.COORDINATE, experiment.id).attempts == 1


def test_a_lease_that_was_taken_away_leaves_the_assignment_to_others(crew: Crew, lab: Any) -> None:
    """Paused and resumed within one local step: another may train before the first has noticed."""
    assignment, first, second = lab.assignments(lab.open(lab.start()))[0], crew.worker(), crew.worker()
    crew.begin(TaskName.TRAIN, assignment.id, first)
    crew.lease(assignment.id, seconds=60)
    assert crew.begin(TaskName.TRAIN, assignment.id, second) is None
    for move in (lifecycle.pause, lifecycle.resume):
        with crew.database.begin() as s:
            move(s, assignment.experiment_id)
    assert crew.begin(TaskName.TRAIN, assignment.id, second) is not None
    crew.end(task_attempts.released, TaskName.TRAIN, assignment.id, first)
    run = crew.run(TaskName.TRAIN, assignment.id)
    assert (run.worker, run.attempts) == (second.id, 1)


def test_who_comes_back_after_it_was_taken_for_dead_takes_nothing_from_the_next(crew: Crew, lab: Any) -> None:
    experiment, first, second = lab.start(), crew.worker(), crew.worker()
    crew.begin(TaskName.COORDINATE, experiment.id, first)
    crew.kill()
    crew.begin(TaskName.COORDINATE, experiment.id, second)
    crew.end(task_attempts.done, TaskName.COORDINATE, experiment.id, first)
    run = crew.run(TaskName.COORDINATE, experiment.id)
    assert (run.worker, run.attempts) == (second.id, 1)


def test_what_a_process_could_not_note_the_end_of_is_not_held_against_it(crew: Crew, lab: Any) -> None:
    experiment, who = lab.start(), crew.worker()
    for _ in range(5):
        assert crew.begin(TaskName.COORDINATE, experiment.id, who) is not None
    assert crew.run(TaskName.COORDINATE, experiment.id).attempts == 1


def test_a_dead_workers_task_is_called_for_at_once(crew: Crew, lab: Any) -> None:
    round_ = lab.freeze(lab.start())
    crew.begin(TaskName.AGGREGATE, round_.id)
    assert crew.sweep() == []
    crew.kill()
    assert ("ferret.aggregate", round_.id) in crew.sweep()
    assert ("ferret.aggregate", round_.id) not in crew.sweep()
    assert crew.run(TaskName.AGGREGATE, round_.id).attempts == 1


@pytest.mark.parametrize("lost", ["forgotten", "turned to something else"])
def test_so_is_the_task_of_a_worker_that_is_not_on_it_any_more(crew: Crew, lab: Any, lost: str) -> None:
    round_, who = lab.freeze(lab.start()), crew.worker()
    crew.begin(TaskName.AGGREGATE, round_.id, who)
    with crew.database.begin() as s:
        workers.leave(s, who.id) if lost == "forgotten" else workers.seen(s, who, TaskName.EVALUATE, round_.id)
    assert ("ferret.aggregate", round_.id) in crew.sweep()


def test_a_dead_workers_lease_ends_with_it(crew: Crew, lab: Any) -> None:
    assignment = lab.assignments(lab.open(lab.start()))[0]
    crew.begin(TaskName.TRAIN, assignment.id)
    crew.lease(assignment.id, seconds=3600)
    assert crew.sweep() == []
    crew.kill()
    assert crew.sweep() == [("ferret.train", assignment.id)]
    assert lab.get(assignment).state == AssignmentState.PENDING


def test_an_assignment_whose_worker_died_before_it_could_lease_it_is_called_for_again(crew: Crew, lab: Any) -> None:
    assignment = lab.assignments(lab.open(lab.start()))[0]
    crew.begin(TaskName.TRAIN, assignment.id)
    crew.kill()
    assert ("ferret.train", assignment.id) in crew.sweep()


@pytest.mark.about_database
def test_many_workers_at_once_are_counted_once(crew: Crew, lab: Any) -> None:
    round_ = lab.freeze(lab.start())
    crew_of_8 = [crew.worker() for _ in range(8)]
    begun = lab.race(lambda i: crew.begin(TaskName.AGGREGATE, round_.id, crew_of_8[i]))
    assert sum(subject is not None for subject in begun) == 1
    run = crew.run(TaskName.AGGREGATE, round_.id)
    assert (run.attempts, run.reschedule_requested) == (1, True)
    with crew.database.read() as s:
        assert len(s.scalars(select(TaskRun)).all()) == 1


@pytest.mark.about_database
def test_reconcilers_at_once_call_once_for_what_was_lost(crew: Crew, lab: Any) -> None:
    round_ = lab.freeze(lab.start())
    crew.begin(TaskName.AGGREGATE, round_.id)
    crew.kill()
    crew.sent.clear()

    def sweep(_: int) -> None:
        with crew.database.read() as s:
            orphaned = task_runs.orphaned(s)
        for run in orphaned:
            with crew.database.begin() as s:
                task_attempts.recover(s, run)

    lab.race(sweep)
    assert crew.sent == [("ferret.aggregate", round_.id)]


def test_a_repair_that_was_given_up_starts_over_when_it_is_asked_for_again(database: Database, crew: Crew) -> None:
    """Somebody may have put the lost model back, as the error says."""
    experiment: Experiment = crew.lab.start()
    crew.die_at(TaskName.REPAIR, experiment.id)
    assert crew.begin(TaskName.REPAIR, experiment.id) is None
    with database.begin() as s:
        call_for_repair(s, experiment.id)
    assert crew.begin(TaskName.REPAIR, experiment.id)


def test_a_repair_that_failed_is_tried_again(crew: Crew) -> None:
    experiment: Experiment = crew.lab.start()
    who = crew.worker()
    crew.begin(TaskName.REPAIR, experiment.id, who)
    assert (TaskName.REPAIR, experiment.id) not in crew.sweep()
    crew.end(task_attempts.failed, TaskName.REPAIR, experiment.id, who, FULL, strike=False)
    assert (TaskName.REPAIR, experiment.id) in crew.sweep()
    assert (TaskName.REPAIR, experiment.id) not in crew.sweep(), "it was called for a moment ago"
