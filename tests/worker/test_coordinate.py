"""Rounds that are asked of more than needed, tried again, interrupted or added later end as the simulation does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_core.simulate import simulate
from ferret_db.engine import assignments as leases
from ferret_db.engine import lifecycle
from ferret_db.engine import rounds as round_engine
from ferret_db.repositories import assignments, contributions, events, experiments, participants, rounds, workers
from ferret_db.repositories.workers import WorkerIdentity
from ferret_db.tables import Round
from ferret_worker import coordinate
from tests.ferret_db.conftest import Lab

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


def move(service: Service, act: Callable[..., Any], *args: Any) -> None:
    with service.database.begin() as s:
        act(s, *args)


def ended(service: Service, experiment_id: str) -> tuple[ExperimentState, str]:
    experiment = service.experiment(experiment_id)
    return experiment.state, experiment.digest


def test_an_over_selected_round_is_closed_by_those_drawn_first(service: Service, plain_spec: SpecFactory) -> None:
    spec = plain_spec(participants={"simulated": 5, "fraction": 0.6}, round={"over_selection": 0.5}, rounds=2)
    experiment_id = service.submit(spec)
    service.run()
    assert ended(service, experiment_id) == (ExperimentState.COMPLETED, simulate(spec).digest)
    with service.database.read() as s:
        (first, second) = rounds.in_states(s, experiment_id, RoundState.COMMITTED)
        assert (first.required_contributions, rounds.summary(s, experiment_id, 1).participants) == (3, 5)
        assert len(contributions.of_round(s, second.id)) == 3


@pytest.mark.parametrize("algorithm", [pytest.param("fedavg", marks=pytest.mark.slow), "topk"])
def test_a_missed_quorum_is_tried_again_with_others(
    service: Service, one_bad_client: ExperimentSpec, algorithm: str
) -> None:
    """What a client kept from an attempt that did not count must not count either: topk keeps what it did not send."""
    changes = {
        "participants": one_bad_client.participants.model_copy(update={"fraction": 0.5}),
        "round": one_bad_client.round.model_copy(update={"quorum": 1.0, "attempts": 9}),
        "rounds": 3,
        "algorithm": one_bad_client.algorithm.model_copy(update={"name": algorithm}),
    }
    spec = one_bad_client.model_copy(update=changes)
    experiment_id = service.submit(spec)
    service.run()
    assert ended(service, experiment_id) == (ExperimentState.COMPLETED, simulate(spec).digest)
    with service.database.read() as s:
        assert rounds.in_states(s, experiment_id, RoundState.ABANDONED)
        assert len(rounds.in_states(s, experiment_id, RoundState.COMMITTED)) == 3


def test_an_experiment_that_was_paused_mid_round_ends_with_the_same_model(
    service: Service, plain_spec: SpecFactory
) -> None:
    spec = plain_spec(rounds=2)
    experiment_id = service.submit(spec)
    service.run(until=lambda message: message.task == TaskName.TRAIN)
    move(service, lifecycle.pause, experiment_id)
    service.run()
    assert service.experiment(experiment_id).state == ExperimentState.PAUSED
    assert service.experiment(experiment_id).round == 0
    move(service, lifecycle.resume, experiment_id)
    service.run()
    assert ended(service, experiment_id) == (ExperimentState.COMPLETED, simulate(spec).digest)


@pytest.mark.parametrize(
    ("training", "here", "expected"),
    [([True, True], False, "bfloat16"), ([True, False], True, "float32"), ([], True, "bfloat16")],
    ids=["all are quick", "one is slow", "none yet"],
)
def test_the_workers_that_train_decide_the_precision(
    service: Service,
    plain_spec: SpecFactory,
    monkeypatch: pytest.MonkeyPatch,
    training: list[bool],
    here: bool,
    expected: str,
) -> None:
    local = {"learning_rate": 1e-2, "steps": 1, "batch_size": 2, "accumulation": 1, "precision": "auto"}
    spec = plain_spec(options={"local": local}, rounds=1)
    monkeypatch.setattr(coordinate, "fast_bfloat16", lambda device: here)
    for number, quick in enumerate(training):
        move(service, workers.seen, WorkerIdentity(f"w{number}", Queue.TRAIN, "host", number, "cpu", quick))
    experiment_id = service.submit(spec)
    service.run()
    with service.database.read() as s:
        found = experiments.spec_of(experiments.get(s, experiment_id))
    assert found.algorithm.options["local"]["precision"] == expected
    assert ended(service, experiment_id) == (ExperimentState.COMPLETED, simulate(found).digest)


def test_a_task_for_a_deleted_experiment_is_left_alone(service: Service, plain_spec: SpecFactory) -> None:
    experiment_id = service.submit(plain_spec())
    service.run(until=lambda message: message.task == TaskName.TRAIN)
    move(service, lifecycle.cancel, experiment_id)
    move(service, lifecycle.delete, experiment_id)
    service.run()
    assert not service.messages


def test_a_round_that_is_opened_in_steps_is_the_same(
    service: Service, plain_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinate, "OPENED_AT_ONCE", 2)
    spec = plain_spec(participants={"simulated": 5}, round={"over_selection": 0.5}, rounds=2)
    experiment_id = service.submit(spec)
    service.run()
    assert ended(service, experiment_id) == (ExperimentState.COMPLETED, simulate(spec).digest)
    with service.database.read() as s:
        found = events.after(s, experiment_id, 0, 1000)
    assert [event.data["participants"] for event in found if event.type == "round.opened"] == [5, 5]


def test_nobody_works_on_a_round_before_all_of_it_is_there(
    service: Service, plain_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinate, "OPENED_AT_ONCE", 2)
    fill, filled = round_engine.fill_round, list[bool]()

    def stopped(*args: Any) -> bool:
        """As if the round were over after two of three steps."""
        if len(filled) < 2:
            filled.append(fill(*args))
        return len(filled) < 2

    monkeypatch.setattr(round_engine, "fill_round", stopped)
    experiment_id = service.submit(plain_spec(participants={"simulated": 5}))
    service.run()
    with service.database.read() as s:
        (opening,) = rounds.in_states(s, experiment_id, RoundState.OPENING)
        rows = assignments.of_round(s, opening.id)
    assert len(rows) == 4
    with service.database.begin() as s:
        assert leases.lease(s, rows[0].id, 60) is None
    monkeypatch.setattr(round_engine, "fill_round", fill)
    service.later()
    service.run()
    assert service.experiment(experiment_id).state == ExperimentState.COMPLETED


@pytest.mark.parametrize(
    ("given", "took", "first", "second"),
    [({}, 700, 3600, 1400), ({}, 1, 3600, 300), ({"deadline_seconds": 60.0}, 700, 60, 60)],
)
def test_real_participants_are_waited_for_as_long_as_they_took_before(
    service: Service, given: dict[str, float], took: float, first: float, second: float
) -> None:
    lab = Lab(service.database)
    experiment = lab.start(participants={"edge": 3}, round=given)
    for name in ("north", "south", "west"):
        with service.database.begin() as s:
            participants.enrol(s, participants.create_enrolment(s, experiment.id, 60)[1], name)
    assert seconds_to_the_deadline(service, experiment.id) == pytest.approx(first, abs=1)
    with service.database.read() as s:
        (round_,) = rounds.in_states(s, experiment.id, RoundState.OPEN)
    for assignment in lab.assignments(round_):
        lab.deliver(assignment)
    lab.age(Round, "opened_at", took)
    lab.commit(round_)
    assert seconds_to_the_deadline(service, experiment.id) == pytest.approx(second, rel=0.05)


def test_simulated_clients_wait_for_the_service_alone_and_have_an_hour(service: Service) -> None:
    lab = Lab(service.database)
    experiment = lab.start()
    for _ in range(2):
        assert seconds_to_the_deadline(service, experiment.id) == pytest.approx(3600, abs=1)
        with service.database.read() as s:
            (round_,) = rounds.in_states(s, experiment.id, RoundState.OPEN)
        for assignment in lab.assignments(round_):
            lab.deliver(assignment)
        lab.commit(round_)


def seconds_to_the_deadline(service: Service, experiment_id: str) -> float:
    """Of the round that opens now."""
    move(service, coordinate.advance, experiment_id)
    with service.database.read() as s:
        (round_,) = rounds.in_states(s, experiment_id, RoundState.OPEN)
    return (round_.deadline_at - round_.opened_at).total_seconds()
