"""A frozen round is aggregated by whoever comes; only what follows from the frozen set itself ends the experiment."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_core.simulate import simulate
from ferret_core.storage import FileKind, blob_location
from ferret_db.engine import lifecycle
from ferret_db.repositories import assignments, contributions, events, ledger, outbox, rounds
from ferret_worker import aggregate as aggregation
from ferret_worker import repair
from ferret_worker.aggregate import aggregate
from tests.worker.conftest import usually_on

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


@pytest.fixture
def frozen(service: Service, plain_spec: SpecFactory) -> str:
    """The frozen first round of a toy experiment of two."""
    service.submit(plain_spec(rounds=2))
    while service.messages[0].task != TaskName.AGGREGATE:
        service.step()
    message = service.messages.popleft()
    with service.database.begin() as s:
        outbox.take(s, message.task, message.argument)
    return message.argument


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """``meanwhile(act)``: called once, in the middle of the next aggregation."""

    def plan(act: Callable[[], None]) -> None:
        aggregate_round = aggregation.aggregate_round

        def disturbed(*args: Any) -> Any:
            monkeypatch.setattr(aggregation, "aggregate_round", aggregate_round)
            act()
            return aggregate_round(*args)

        monkeypatch.setattr(aggregation, "aggregate_round", disturbed)

    return plan


def experiment_of(service: Service, round_id: str) -> Any:
    with service.database.read() as s:
        return service.experiment(rounds.get(s, round_id).experiment_id)


def raising(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def test_a_lost_race_is_no_error_and_keeps_the_model_which_is_the_winners(
    service: Service, frozen: str, meanwhile: Any, plain_spec: SpecFactory
) -> None:
    winner = service.new_context()
    meanwhile(lambda: aggregate(winner, frozen))
    aggregate(service.context, frozen)
    experiment = experiment_of(service, frozen)
    assert (experiment.state, experiment.round) == (ExperimentState.RUNNING, 1)
    assert list(service.context._models) == list(winner._models) == [experiment.id]
    service.run()
    experiment = experiment_of(service, frozen)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(plain_spec(rounds=2)).digest)
    with service.database.read() as s:
        assert [entry.round for entry in ledger.after(s, experiment.id, 0, 10)] == [1, 2]


@pytest.mark.parametrize("code", ["ledger.broken", "training.non_finite"])
def test_who_fails_after_another_has_committed_fails_alone(
    service: Service, frozen: str, meanwhile: Any, code: str
) -> None:
    winner = service.new_context()

    def lose() -> None:
        aggregate(winner, frozen)
        raise FerretError(code, "too late to matter")

    meanwhile(lose)
    aggregate(service.context, frozen)
    assert experiment_of(service, frozen).state == ExperimentState.RUNNING


def test_so_does_who_fails_after_a_cancellation(service: Service, frozen: str, meanwhile: Any) -> None:
    def cancel() -> None:
        with service.database.begin() as s:
            lifecycle.cancel(s, rounds.get(s, frozen).experiment_id)
        raise FerretError("training.non_finite", "too late to matter")

    meanwhile(cancel)
    aggregate(service.context, frozen)
    assert experiment_of(service, frozen).state == ExperimentState.CANCELLED


def test_what_follows_from_the_frozen_set_fails_the_experiment(service: Service, frozen: str, meanwhile: Any) -> None:
    meanwhile(raising(FerretError("training.non_finite", "lower server.learning_rate")))
    aggregate(service.context, frozen)
    experiment = experiment_of(service, frozen)
    assert (experiment.state, experiment.error["code"]) == (ExperimentState.FAILED, "training.non_finite")


@pytest.mark.parametrize("error", [FerretError("storage.full", "no room left"), KeyError("a bug")])
def test_what_may_pass_is_left_to_the_next_attempt(
    service: Service, frozen: str, meanwhile: Any, error: Exception
) -> None:
    meanwhile(raising(error))
    with pytest.raises(type(error)):
        aggregate(service.context, frozen)
    assert experiment_of(service, frozen).state == ExperimentState.RUNNING
    assert service.context._models == {}
    aggregate(service.context, frozen)
    assert experiment_of(service, frozen).round == 1


def test_a_worker_that_stops_leaves_the_round_to_another(service: Service, frozen: str, meanwhile: Any) -> None:
    meanwhile(lambda: setattr(service.context, "stopping", True))
    with pytest.raises(FerretError) as caught:
        aggregate(service.context, frozen)
    assert (caught.value.code, service.context._models) == ("worker.stopping", {})
    aggregate(service.new_context(), frozen)
    assert experiment_of(service, frozen).round == 1


def test_files_that_are_lost_during_their_repair_cost_no_attempt(
    service: Service, frozen: str, plain_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete_all() -> None:
        with service.database.read() as s:
            for row in contributions.of_round(s, frozen):
                service.context.storage.path(blob_location(FileKind.CONTRIBUTION, row.digest)).unlink()

    rebuild, rebuilds = repair.rebuild, list[str]()

    def disturbed(*args: Any) -> bool:
        rebuilds.append("once more")
        found = rebuild(*args)
        if len(rebuilds) == 1:
            delete_all()
        return found

    monkeypatch.setattr(repair, "rebuild", disturbed)
    delete_all()
    service.perform(TaskName.AGGREGATE, frozen)
    with service.database.read() as s:
        round_ = rounds.get(s, frozen)
    assert (round_.state, round_.attempt, len(rebuilds)) == (RoundState.COMMITTED, 1, 2)
    service.run()
    assert experiment_of(service, frozen).digest == simulate(plain_spec(rounds=2)).digest


def test_an_undone_round_is_tried_again_without_who_broke_it(
    service: Service, frozen: str, meanwhile: Any, plain_spec: SpecFactory
) -> None:
    broken = {"refused": {"client-002": "the round breaks the model with it"}}
    meanwhile(raising(FerretError("round.diverged", "round 1 was undone", members=broken)))
    aggregate(service.context, frozen)
    experiment = experiment_of(service, frozen)
    assert (experiment.state, experiment.round) == (ExperimentState.RUNNING, 0)
    with service.database.read() as s:
        (undone,) = (item for item in events.after(s, experiment.id, 0, 100) if item.type == "round.rolled_back")
        assert undone.data["refused"] == broken["refused"]
        assert undone.data["contributors"] == ["client-001", "client-002", "client-003"]
        rejected = [row for row in assignments.of_round(s, frozen) if row.state == AssignmentState.REJECTED]
        assert [(row.participant, row.error["code"]) for row in rejected] == [
            ("client-002", "contribution.out_of_bounds")
        ]
        assert assignments.sitting_out(s, experiment.id, 1, 2) == {"client-002"}
    service.run()
    assert experiment_of(service, frozen).state == ExperimentState.COMPLETED


def test_a_round_is_undone_no_more_often_than_it_has_attempts(
    service: Service, plain_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: Any) -> None:
        raise FerretError("round.diverged", "round 1 was undone")

    monkeypatch.setattr(aggregation, "aggregate_round", explode)
    experiment_id = service.submit(plain_spec(rounds=2))
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.error["code"]) == (ExperimentState.FAILED, "round.diverged")
    with service.database.read() as s:
        undone = [item for item in events.after(s, experiment_id, 0, 100) if item.type == "round.rolled_back"]
    assert len(undone) == 3


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("ferret", {"K": 2000}),
        pytest.param(
            "ferret",
            {"K": 2000, "seeds": "shared", "allocation": "fixed", "coordinates": "float16"},
            marks=pytest.mark.slow,
        ),
        pytest.param("topk", {"K": 500}, marks=pytest.mark.slow),
    ],
)
def test_the_service_looks_into_updates_as_a_simulation_does(
    service: Service, toy_spec: SpecFactory, algorithm: str, options: dict[str, Any]
) -> None:
    spec = toy_spec(algorithm, options=options, rounds=2)
    experiment_id = service.submit(spec)
    service.run()
    done = simulate(spec).rounds
    for number in (1, 2):
        with service.database.read() as s:
            assert rounds.update_statistics(s, experiment_id, number) == done[number].statistics.model_dump(mode="json")


@usually_on("sqlite")
@pytest.mark.slow
def test_rounds_leave_nothing_in_a_worker(service: Service, plain_spec: SpecFactory) -> None:
    """Python's blocks of memory, after what the first rounds import: one kept for each contribution would be 160."""
    spec = plain_spec(rounds=7, participants={"simulated": 40}, options={"local": {"steps": 1, "batch_size": 1}})
    experiment_id = service.submit(spec)
    blocks: dict[int, int] = {}
    while 6 not in blocks:
        service.step()
        if (done := service.experiment(experiment_id).round) not in blocks:
            gc.collect()
            blocks[done] = sys.getallocatedblocks()
    assert blocks[6] - blocks[2] < 160
