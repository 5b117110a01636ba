"""A round: opened, frozen once, committed once, evaluated once."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, event

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState
from ferret_db.database import Database
from ferret_db.engine import assignments, lifecycle, rounds
from ferret_db.repositories import artifacts, contributions, ledger, metrics
from ferret_db.tables import Round
from tests.refusals import refused


def evaluate(database: Database, experiment_id: str, number: int, **values: float) -> None:
    with database.begin() as s:
        rounds.record_evaluation(s, experiment_id, number, values)


def freeze_if_due(database: Database, round_: Round) -> bool:
    with database.begin() as s:
        return rounds.freeze_if_due(s, round_.id)


def test_opening_assigns_and_calls_for_training(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.start()
    sent.clear()
    round_ = lab.open(experiment)
    assert (round_.state, round_.attempt, round_.base_digest) == (RoundState.OPEN, 1, lab.base_digest)
    assert (round_.deadline_at - round_.opened_at).total_seconds() == 60
    assert round_.bytes_down == 300
    rows = lab.assignments(round_)
    assert [row.participant for row in rows] == ["client-0", "client-1", "client-2"]
    assert sorted(sent) == sorted(("ferret.train", row.id) for row in rows)
    assert RoundTask.model_validate(rows[0].task) == lab.task(experiment, 1, "client-0")  # 64-bit seeds survive


def test_real_participants_are_not_trained_by_workers(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.start(participants={"edge": 1})
    sent.clear()
    with database.begin() as s:
        rounds.open_round(s, experiment.id, 1, [(lab.task(experiment, 1, "a"), ParticipantKind.EDGE, None)], 60, 0)
    assert sent == []


@pytest.mark.about_database
def test_opening_at_once_opens_once(database: Database, lab: Any) -> None:
    experiment = lab.start()
    opened = lab.race(lambda _: lab.open(experiment))
    assert len({round_.id for round_ in opened}) == 1
    assert len(lab.assignments(opened[0])) == 3
    assert lab.events(experiment.id).count("round.opened") == 1


def test_rounds_open_in_order(lab: Any) -> None:
    experiment = lab.start()
    with refused("experiment.conflict", "round 2 of", "cannot open"):
        lab.open(experiment, number=2)
    with refused("experiment.conflict", "the experiment is queued"):
        lab.open(lab.submit())


@pytest.mark.about_database
def test_contributions_are_ordered_by_code_point(database: Database, lab: Any) -> None:
    experiment = lab.start()
    names = ["b", "a-10", "A", "a2", "a.1", "B_"]
    tasks = [(lab.task(experiment, 1, name), ParticipantKind.SIMULATED, None) for name in names]
    with database.begin() as s:
        round_ = rounds.open_round(s, experiment.id, 1, tasks, 60, 0)
    for assignment in lab.assignments(round_):
        lab.deliver(assignment)
    with database.read() as s:
        assert [row.participant for row in contributions.of_round(s, round_.id)] == sorted(names)


@pytest.mark.about_database
def test_threads_that_deliver_the_last_reports_freeze_once(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.start()
    round_ = lab.open(experiment, participants=8)
    leased = [lab.lease(row) for row in lab.assignments(round_)]
    sent.clear()
    lab.race(lambda i: lab.accept(leased[i], digest=str(i)))
    assert sent == [("ferret.aggregate", round_.id)]
    assert lab.events(experiment.id).count("round.frozen") == 1
    assert lab.get(round_).bytes_up == 8 * 50


@pytest.mark.about_database
def test_threads_that_close_a_round_at_its_deadline_freeze_once(database: Database, lab: Any) -> None:
    experiment = lab.start(round={"quorum": 0.5})
    round_ = lab.open(experiment, participants=4)
    for assignment in lab.assignments(round_)[:2]:
        lab.deliver(assignment)
    lab.age(Round, "deadline_at", 1)
    assert sorted(lab.race(lambda _: freeze_if_due(database, round_))) == [False] * 7 + [True]
    assert lab.events(experiment.id).count("round.frozen") == 1


def test_the_deadline_closes_a_round_with_its_quorum(database: Database, lab: Any) -> None:
    round_ = lab.open(lab.start(round={"quorum": 0.6}))
    delivered = lab.assignments(round_)[:2]
    for assignment in delivered:
        lab.deliver(assignment)
    assert freeze_if_due(database, round_) is False
    lab.age(Round, "deadline_at", 1)
    assert freeze_if_due(database, round_) is True
    states = [row.state for row in lab.assignments(round_)]
    assert states == [AssignmentState.ACCEPTED, AssignmentState.ACCEPTED, AssignmentState.EXPIRED]


def test_rejections_count_as_reports(database: Database, lab: Any) -> None:
    round_ = lab.open(lab.start(round={"quorum": 0.6}))
    good, bad, other = lab.assignments(round_)
    lab.deliver(good)
    leased = lab.lease(bad)
    with database.begin() as s:
        assignments.reject(s, leased.id, leased.fence, FerretError("contribution.malformed", "no"))
    lab.deliver(other)
    assert lab.get(round_).state == RoundState.FROZEN


@pytest.mark.parametrize("delivered", [0, 1])
def test_a_missed_quorum_fails_the_experiment_after_the_last_attempt(
    database: Database, lab: Any, delivered: int
) -> None:
    experiment = lab.start(round={"quorum": 0.6, "attempts": 1})
    round_ = lab.open(experiment)
    for assignment in lab.assignments(round_)[:delivered]:
        lab.deliver(assignment)
    lab.age(Round, "deadline_at", 1)
    assert freeze_if_due(database, round_) is False
    failed = lab.get(experiment)
    assert (failed.state, failed.error["code"]) == (ExperimentState.FAILED, "quorum.missed")
    assert f"round 1, attempt 1: {delivered} participants were accepted, 2 are needed" in failed.error["detail"]
    abandoned = lab.get(round_)
    assert (abandoned.state, abandoned.error["code"]) == (RoundState.ABANDONED, "quorum.missed")


@pytest.mark.parametrize(
    ("rejected", "code", "why"),
    [
        ("memory.exhausted", "quorum.missed", "; the first rejection was: the loss is nan"),
        ("training.non_finite", "round.diverged", ", and 3 diverged: the loss is nan"),
    ],
)
def test_the_last_attempt_without_a_quorum_tells_the_first_rejection(
    lab: Any, rejected: str, code: str, why: str
) -> None:
    experiment = lab.start(round={"quorum": 0.01, "attempts": 2})
    for _ in range(2):
        for assignment in lab.assignments(lab.open(experiment)):
            lab.reject(lab.lease(assignment), rejected)
    error = lab.get(experiment).error
    assert error["code"] == code
    assert f"attempt 2: 0 participants were accepted, 1 are needed{why}" in error["detail"]
    assert lab.events(experiment.id).count("round.abandoned") == 2


def test_the_quorum_of_an_over_selected_round_is_that_of_the_needed(database: Database, lab: Any) -> None:
    round_ = lab.open(lab.start(round={"quorum": 0.5}), participants=8, needed=4)
    for assignment in lab.assignments(round_)[:2]:
        lab.deliver(assignment)
    lab.age(Round, "deadline_at", 1)
    assert freeze_if_due(database, round_) is True


@pytest.mark.about_database
def test_a_thousand_assignments_take_as_many_statements_as_three(url: str, lab: Any, sent: Any) -> None:
    sent.taken = False

    def statements(participants: int) -> int:
        experiment, counted = lab.start(), []

        def count(*_: Any) -> None:
            counted.append(1)

        event.listen(Engine, "before_cursor_execute", count)
        try:
            round_ = lab.open(experiment, participants)
            with lab.database.begin() as s:
                lifecycle.pause(s, experiment.id)
            with lab.database.begin() as s:
                lifecycle.resume(s, experiment.id)
            lab.age(Round, "deadline_at", 1, Round.id == round_.id)
            assert freeze_if_due(lab.database, round_) is False
        finally:
            event.remove(Engine, "before_cursor_execute", count)
        return len(counted)

    few = statements(3)
    assert statements(1000) <= few + 10  # a statement for some hundred rows where one cannot hold more


@pytest.mark.about_database
def test_committing_moves_the_experiment_on(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.start()
    round_ = lab.freeze(experiment)
    sent.clear()
    assert lab.commit(round_, digest="d1" * 32, train_loss=2.25) is True
    moved, committed = lab.get(experiment), lab.get(round_)
    assert (moved.round, moved.digest) == (1, "d1" * 32)
    assert (committed.state, committed.digest) == (RoundState.COMMITTED, "d1" * 32)
    assert sent == [("ferret.evaluate", round_.id)]
    assert lab.events(experiment.id)[-2:] == ["round.committed", "checkpoint.written"]
    with database.read() as s:
        entry = ledger.get(s, experiment.id, 1)
        assert (entry.record, entry.update_size) == ({"round": 1, "scale": 1e16, "clipped": [], "refused": []}, 40)
        assert isinstance(entry.record["scale"], float)
        assert metrics.by_round(s, experiment.id, [1]) == {1: {"bytes_down": 300, "bytes_up": 150, "train_loss": 2.25}}
        assert [(row.round, row.size) for row in artifacts.of_experiment(s, experiment.id)] == [(0, 9), (1, 9)]
    assert lab.open(lab.get(experiment), number=2).base_digest == "d1" * 32


@pytest.mark.about_database
def test_threads_commit_once(database: Database, lab: Any) -> None:
    experiment = lab.start()
    round_ = lab.freeze(experiment)
    digests = [f"{i}" * 64 for i in range(8)]
    won = lab.race(lambda i: lab.commit(round_, digest=digests[i]))
    assert sorted(won) == [False] * 7 + [True]
    assert lab.get(experiment).digest == digests[won.index(True)]
    assert lab.events(experiment.id).count("round.committed") == 1


@pytest.mark.about_database
def test_a_commit_with_a_loss_that_is_no_number_leaves_nothing(database: Database, lab: Any) -> None:
    experiment = lab.start()
    round_ = lab.freeze(experiment)
    with refused("training.non_finite", "train_loss"):
        lab.commit(round_, train_loss=float("nan"))
    assert (lab.get(round_).state, lab.get(experiment).round) == (RoundState.FROZEN, 0)


def test_evaluation_is_called_for_where_due(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.start(rounds=4, evaluation={"every": 3})
    due = []
    for number in range(1, 5):
        round_ = lab.freeze(lab.get(experiment), number)
        sent.clear()
        lab.commit(round_)
        due += [number] if ("ferret.evaluate", round_.id) in sent else []
    assert due == [3, 4]


def test_an_evaluation_is_recorded_once(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.start()
    round_ = lab.freeze(experiment)
    lab.commit(round_)
    sent.clear()
    evaluate(database, experiment.id, 1, eval_loss=2.0, rouge_l=31.5)
    evaluate(database, experiment.id, 1, eval_loss=9.0, rouge_l=0.0)
    assert lab.get(round_).evaluated_at is not None
    assert sent == [("ferret.coordinate", experiment.id)]
    with database.read() as s:
        found = metrics.by_round(s, experiment.id, [1])[1]
    assert (found["eval_loss"], found["rouge_l"]) == (2.0, 31.5)
    assert lab.events(experiment.id)[-1] == "round.evaluated"


def test_nothing_happens_after_the_end(database: Database, lab: Any) -> None:
    experiment = lab.start()
    with database.begin() as s:
        lifecycle.cancel(s, experiment.id)
    evaluate(database, experiment.id, 0, eval_loss=3.0)
    assert lab.events(experiment.id)[-1] == "experiment.cancelled"
