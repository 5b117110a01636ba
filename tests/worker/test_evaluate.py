"""A measurement that nobody wants any more ends at the next batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import TaskName
from ferret_db.engine import lifecycle
from ferret_db.repositories import metrics
from ferret_worker import evaluate as evaluating
from ferret_worker import worker_state
from ferret_worker.evaluate import evaluate
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


@pytest.fixture
def due(service: Service, plain_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """The experiment whose base model is to be evaluated; every batch looks whether it still is."""
    monkeypatch.setattr(worker_state, "LOOK_SECONDS", 0.0)
    experiment_id = service.submit(plain_spec(rounds=1))
    service.run(until=lambda message: service.messages[0].task == TaskName.EVALUATE)
    return experiment_id


def before_the_first_batch(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    measure = evaluating.measure

    def disturbed(*args: Any, **options: Any) -> Any:
        act()
        return measure(*args, **options)

    monkeypatch.setattr(evaluating, "measure", disturbed)


def test_a_cancelled_experiment_is_measured_no_further(
    service: Service, due: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel() -> None:
        with service.database.begin() as s:
            lifecycle.cancel(s, due)

    before_the_first_batch(monkeypatch, cancel)
    with refused("experiment.conflict", "no longer needed"):
        evaluate(service.context, due)
    with service.database.read() as s:
        assert metrics.by_round(s, due, [0]) == {}


def test_nor_is_one_by_a_worker_that_stops(service: Service, due: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before_the_first_batch(monkeypatch, lambda: setattr(service.context, "stopping", True))
    with refused("worker.stopping"):
        evaluate(service.context, due)


def test_a_model_that_is_no_number_fails_the_experiment_unless_it_is_over(
    service: Service, due: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise FerretError("training.non_finite", "the evaluation loss is nan")

    before_the_first_batch(monkeypatch, broken)
    evaluate(service.context, due)
    assert service.experiment(due).error["code"] == "training.non_finite"
    again = service.experiment(due)
    evaluate(service.context, due)
    assert (service.experiment(due).state, service.experiment(due).version) == (ExperimentState.FAILED, again.version)
