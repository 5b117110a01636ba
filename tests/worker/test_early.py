"""An experiment that ends before its last round: as the simulation does, once, and whatever is lost in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import TaskName
from ferret_core.simulate import simulate
from ferret_db.engine import lifecycle
from ferret_db.repositories import artifacts, events, ledger
from tests.worker.conftest import Service, usually_on

SpecFactory = Callable[..., ExperimentSpec]
HOPELESS = {"patience": 2, "min_delta": 100}
"""No round improves by so much: the experiment ends after round 2."""


def ends(service: Service, experiment_id: str) -> list[dict[str, Any]]:
    with service.database.read() as s:
        found = events.after(s, experiment_id, 0, 1000)
    return [event.data for event in found if event.type == "experiment.completed"]


def extend(service: Service, experiment_id: str, more: int) -> None:
    with service.database.begin() as s:
        lifecycle.extend(s, experiment_id, more)


def test_it_ends_where_the_simulation_does_with_the_same_model(service: Service, plain_spec: SpecFactory) -> None:
    spec = plain_spec(rounds=6, stopping=HOPELESS, evaluation={"every": 2, "examples": 10, "generate_examples": 0})
    experiment_id = service.submit(spec)
    service.run()
    experiment, alone = service.experiment(experiment_id), simulate(spec)
    assert alone.stopped is not None
    assert (experiment.state, experiment.round, experiment.digest) == (ExperimentState.COMPLETED, 4, alone.digest)
    assert experiment.stopped is not None
    assert experiment.stopped["detail"] == alone.stopped.detail
    assert experiment.stopped["best"] == alone.stopped.best._asdict()
    assert [data["stopped"] for data in ends(service, experiment_id)] == [experiment.stopped]


@usually_on("sqlite")
def test_the_next_round_waits_for_what_the_last_was_worth(service: Service, plain_spec: SpecFactory) -> None:
    experiment_id = service.submit(plain_spec(rounds=6, stopping=HOPELESS))
    service.run(until=lambda message: message.task == TaskName.AGGREGATE)
    assert TaskName.EVALUATE in {message.task for message in service.messages}
    trained: list[int] = []
    while service.messages:
        waiting = service.experiment(experiment_id).round
        message = service.step()
        if message.task == TaskName.TRAIN:
            trained.append(waiting)
    assert service.experiment(experiment_id).round == 2
    assert max(trained) == 1, "nothing was trained that the end would have thrown away"


@usually_on("sqlite")
def test_it_ends_once_however_often_a_lost_message_is_sent_again(service: Service, plain_spec: SpecFactory) -> None:
    experiment_id = service.submit(plain_spec(rounds=6, stopping=HOPELESS))
    while not service.experiment(experiment_id).state.finished:
        if service.messages:
            service.step()
            service.messages.clear()  # the broker lost what was sent
        service.later()
    service.perform(TaskName.COORDINATE, experiment_id)
    service.run()
    assert len(ends(service, experiment_id)) == 1
    assert service.experiment(experiment_id).round == 2


@usually_on("sqlite")
def test_a_pause_puts_the_end_off(service: Service, plain_spec: SpecFactory) -> None:
    experiment_id = service.submit(plain_spec(rounds=6, stopping=HOPELESS))
    service.run(until=lambda message: service.experiment(experiment_id).round == 2)
    with service.database.begin() as s:
        lifecycle.pause(s, experiment_id)
    service.run()
    assert service.experiment(experiment_id).state == ExperimentState.PAUSED
    with service.database.begin() as s:
        lifecycle.resume(s, experiment_id)
    service.run()
    assert service.experiment(experiment_id).state == ExperimentState.COMPLETED
    assert service.experiment(experiment_id).round == 2


@usually_on("sqlite")
def test_more_rounds_follow_the_early_end_with_new_patience(service: Service, plain_spec: SpecFactory) -> None:
    experiment_id = service.submit(plain_spec(rounds=6, stopping=HOPELESS))
    service.run()
    extend(service, experiment_id, 1)
    assert service.experiment(experiment_id).stopped is None
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.round, experiment.rounds, experiment.stopped) == (3, 3, None)
    assert experiment.digest == simulate(plain_spec(rounds=3)).digest
    extend(service, experiment_id, 9)
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.round, experiment.rounds) == (5, 12), "two more evaluations without an improvement"
    with service.database.read() as s:
        told = [event.data for event in events.after(s, experiment_id, 0, 1000) if event.type == "experiment.extended"]
        assert len(ledger.after(s, experiment_id, 0, 99)) == 5
    assert told == [{"rounds": 3, "stopped_after": 2}, {"rounds": 12}]


@usually_on("sqlite")
def test_the_last_and_the_best_model_are_written_out(service: Service, toy_spec: SpecFactory) -> None:
    spec = toy_spec(rounds=9, stopping={"patience": 2, "min_delta": 0.5}, checkpoint={"every": 9, "keep": 1})
    experiment_id = service.submit(spec)
    service.run()
    experiment = service.experiment(experiment_id)
    assert experiment.stopped is not None
    with service.database.read() as s:
        kept = artifacts.rounds_of(s, experiment_id)
    assert {0, experiment.round, experiment.stopped["best"]["round"]} == {*kept}
