"""A paused experiment stands still, mid-round too, and goes on as if nothing had been."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState
from ferret_db.database import Database
from ferret_db.engine import assignments, lifecycle, rounds
from ferret_db.engine.reconcile import reconcile
from ferret_db.repositories import assignments as assignment_rows
from ferret_db.repositories import participants
from ferret_db.tables import Experiment, OutboxMessage, Round
from tests.refusals import refused


def move(database: Database, how: str, experiment: Experiment) -> Experiment:
    with database.begin() as s:
        return getattr(lifecycle, how)(s, experiment.id)


@pytest.fixture
def experiment(lab: Any) -> Experiment:
    return lab.start()


def test_leases_are_taken_back_and_the_accepted_stay(database: Database, lab: Any, experiment: Experiment) -> None:
    round_ = lab.open(experiment)
    accepted, held, waiting = lab.assignments(round_)
    lab.deliver(accepted)
    leased = lab.lease(held)
    assert move(database, "pause", experiment).state == ExperimentState.PAUSED
    assert [row.state for row in lab.assignments(round_)] == ["accepted", "pending", "pending"]
    assert lab.get(held).fence == leased.fence + 1
    for act in (lambda: lab.accept(leased), lambda: lab.reject(leased)):
        with refused("lease.lost", "is pending under fence 2"):
            act()
    with refused("lease.lost"), database.begin() as s:
        assignments.heartbeat(s, held.id, leased.fence, 60)
    with database.begin() as s:
        assert assignments.lease(s, waiting.id, 60) is None
    assert lab.events(experiment.id)[-1] == "experiment.paused"


@pytest.mark.about_database
def test_a_lease_that_is_taken_at_the_same_moment_is_taken_back_or_not_given(
    database: Database, lab: Any, experiment: Experiment
) -> None:
    waiting = lab.assignments(lab.open(experiment, participants=21))

    def act(thread: int) -> None:
        if thread == 0:
            move(database, "pause", experiment)
            return
        for row in waiting[(thread - 1) * 3 : thread * 3]:
            with database.begin() as s:
                assignments.lease(s, row.id, 60)

    lab.race(act, threads=8)
    assert {lab.get(row).state for row in waiting} == {AssignmentState.PENDING}


def test_a_real_participant_finds_nothing_to_do_meanwhile(database: Database, lab: Any) -> None:
    experiment = lab.start(participants={"edge": 1})
    with database.begin() as s:
        own, _ = participants.enrol(s, participants.create_enrolment(s, experiment.id, 60)[1], "clinic-a")
        task = (lab.task(experiment, 1, "clinic-a"), ParticipantKind.EDGE, own.id)
        rounds.open_round(s, experiment.id, 1, [task], 60, 0)
    for how, found in (("pause", False), ("resume", True)):
        move(database, how, experiment)
        with database.read() as s:
            assert (own.id in assignment_rows.next_for(s, [own.id])) is found


def test_resuming_calls_for_what_waits_and_keeps_the_time_to_the_deadline(
    database: Database, lab: Any, experiment: Experiment, sent: list[Any]
) -> None:
    round_ = lab.open(experiment, deadline=1000)
    accepted, *waiting = lab.assignments(round_)
    lab.deliver(accepted)
    move(database, "pause", experiment)
    assert 900 < lab.get(round_).paused_seconds_left <= 1000
    lab.age(Round, "deadline_at", 5000)  # paused for longer than the round may last
    sent.clear()
    assert move(database, "resume", experiment).state == ExperimentState.RUNNING
    with database.read() as s:
        left = (lab.get(round_).deadline_at - database.now(s)).total_seconds()
    assert 900 < left <= 1000
    assert lab.get(round_).paused_seconds_left is None
    calls = [("ferret.train", row.id) for row in waiting] + [("ferret.coordinate", experiment.id)]
    assert sorted(sent) == sorted(calls)
    assert lab.events(experiment.id)[-1] == "experiment.resumed"


def test_nothing_opens_closes_or_is_called_for_meanwhile(
    database: Database, lab: Any, experiment: Experiment, sent: list[Any]
) -> None:
    round_ = lab.open(experiment)
    move(database, "pause", experiment)
    lab.age(Round, "deadline_at", 1)
    lab.age(OutboxMessage, "received_at", 100)
    sent.clear()
    with database.begin() as s:
        assert rounds.freeze_if_due(s, round_.id) is False
    reconcile(database)
    assert lab.get(round_).state == RoundState.OPEN
    assert sent == []
    with refused("experiment.conflict", "the experiment is paused"):
        lab.open(move(database, "pause", lab.start()))


def test_a_frozen_round_still_commits_and_the_next_one_waits(
    database: Database, lab: Any, experiment: Experiment, sent: list[Any]
) -> None:
    round_ = lab.freeze(experiment)
    move(database, "pause", experiment)
    lab.age(OutboxMessage, "received_at", 100)
    lab.age(Round, "frozen_at", 100)
    sent.clear()
    reconcile(database)
    assert sent == [("ferret.aggregate", round_.id)]
    assert lab.commit(round_) is True
    assert (lab.get(experiment).state, lab.get(experiment).round) == (ExperimentState.PAUSED, 1)
    move(database, "resume", experiment)
    assert lab.open(lab.get(experiment), number=2).number == 2


@pytest.mark.parametrize(("how", "then"), [("pause", "pause"), ("resume", "resume")])
def test_twice_is_once(database: Database, lab: Any, experiment: Experiment, how: str, then: str) -> None:
    move(database, "pause", experiment)
    first = move(database, how, experiment)
    assert move(database, then, experiment).version == first.version
    assert lab.events(experiment.id).count(f"experiment.{how}d") == 1


@pytest.mark.parametrize("how", ["cancel", "fail"])
def test_a_paused_experiment_can_be_ended(database: Database, lab: Any, experiment: Experiment, how: str) -> None:
    round_ = lab.open(experiment)
    move(database, "pause", experiment)
    with database.begin() as s:
        error = FerretError("model.invalid", "no")
        lifecycle.cancel(s, experiment.id) if how == "cancel" else lifecycle.fail(s, experiment.id, error)
    assert lab.get(round_).state == RoundState.ABANDONED
    assert {row.state for row in lab.assignments(round_)} == {AssignmentState.EXPIRED}
    with refused("experiment.conflict"):
        move(database, "resume", experiment)


def test_only_a_running_experiment_can_be_paused_and_only_a_paused_one_resumed(database: Database, lab: Any) -> None:
    queued = lab.submit()
    for how in ("pause", "resume"):
        with refused("experiment.conflict", "is queued"):
            move(database, how, queued)
    completed = lab.start()
    move(database, "complete", completed)
    for how in ("pause", "resume"):
        with refused("experiment.conflict", "is completed"):
            move(database, how, completed)


def test_a_late_start_does_not_undo_a_pause(database: Database, lab: Any, experiment: Experiment) -> None:
    """Two workers prepared the base model; the second is slow."""
    lab.commit(lab.freeze(experiment))
    move(database, "pause", experiment)
    with database.begin() as s:
        late = lifecycle.start(s, experiment.id, "ff" * 32, {"a": [1]}, [lab.file(0)])
    assert (late.state, late.base_digest, late.digest) == (ExperimentState.PAUSED, lab.base_digest, "dd" * 32)


@pytest.mark.about_database
def test_threads_that_pause_and_resume_leave_one_of_the_two(
    database: Database, lab: Any, experiment: Experiment
) -> None:
    round_ = lab.open(experiment)
    lab.race(lambda thread: move(database, ("pause", "resume")[thread % 2], experiment))
    state, left = lab.get(experiment).state, lab.get(round_).paused_seconds_left
    assert (state, left is None) in {(ExperimentState.PAUSED, False), (ExperimentState.RUNNING, True)}
    assert {row.state for row in lab.assignments(round_)} == {AssignmentState.PENDING}
