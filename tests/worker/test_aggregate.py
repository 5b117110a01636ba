"""A frozen round is folded by whoever comes; only what follows from the frozen set itself ends the experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tasks import TaskName
from ferret_core.replica import Replica
from ferret_core.simulate import simulate
from ferret_db.engine import lifecycle
from ferret_db.repositories import ledger, rounds
from ferret_worker.aggregate import aggregate

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


@pytest.fixture
def frozen(service: Service, toy_spec: SpecFactory) -> str:
    """The frozen first round of a toy experiment of two."""
    service.submit(toy_spec(rounds=2))
    while service.messages[0].task != TaskName.AGGREGATE:
        service.step()
    return service.messages.popleft().argument


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """``meanwhile(act)``: called once, in the middle of the next fold."""

    def plan(act: Callable[[], None]) -> None:
        fold = Replica.fold

        def disturbed(replica: Replica, *args: Any) -> Any:
            monkeypatch.setattr(Replica, "fold", fold)
            act()
            return fold(replica, *args)

        monkeypatch.setattr(Replica, "fold", disturbed)

    return plan


def experiment_of(service: Service, round_id: str) -> Any:
    with service.database.read() as s:
        return service.experiment(rounds.get(s, round_id).experiment_id)


def raising(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def test_a_lost_race_is_no_error_and_keeps_the_model_which_is_the_winners(
    service: Service, frozen: str, meanwhile: Any, toy_spec: SpecFactory
) -> None:
    winner = service.new_context()
    meanwhile(lambda: aggregate(winner, frozen))
    aggregate(service.context, frozen)
    experiment = experiment_of(service, frozen)
    assert (experiment.state, experiment.round) == (ExperimentState.RUNNING, 1)
    assert list(service.context._models) == list(winner._models) == [experiment.id]
    service.run()
    experiment = experiment_of(service, frozen)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(toy_spec(rounds=2)).digest)
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


def test_a_worker_that_stops_leaves_the_fold_to_another(service: Service, frozen: str, meanwhile: Any) -> None:
    meanwhile(lambda: setattr(service.context, "stopping", True))
    with pytest.raises(FerretError) as caught:
        aggregate(service.context, frozen)
    assert (caught.value.code, service.context._models) == ("worker.stopping", {})
    aggregate(service.new_context(), frozen)
    assert experiment_of(service, frozen).round == 1
