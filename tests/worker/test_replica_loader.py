"""Weights in mapped files: the service's model is the simulation's, whatever happens to its workers."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import TaskName
from ferret_core.replica.mapped.replica import MappedReplica
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate
from tests.worker.conftest import usually_on

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


def half(spec: ExperimentSpec) -> ExperimentSpec:
    return spec.model_copy(update={"model": spec.model.model_copy(update={"dtype": "bfloat16"})})


@usually_on("postgresql")
@pytest.mark.parametrize(
    "fresh", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["kept", "a new worker for every task"]
)
def test_the_service_in_mapped_files_ends_with_the_simulations_model(
    service: Service, toy_spec: SpecFactory, fresh: bool
) -> None:
    service.settings = service.settings.model_copy(update={"weights_in": "mapped", "aggregation_processes": 2})
    service.context = service.new_context()
    spec = half(toy_spec(rounds=2))
    expected = simulate(spec)
    experiment_id = service.submit(spec)
    while service.messages:
        if fresh:
            service.context = service.new_context()
        service.step()
    assert isinstance(service.context.model_at(experiment_id, 2).replica, MappedReplica)
    assert service.experiment(experiment_id).state == ExperimentState.COMPLETED
    assert service.experiment(experiment_id).digest == expected.digest


@usually_on("sqlite")
@pytest.mark.parametrize("ends", [errno.ENOSPC, None], ids=["the disk is full", "the worker is killed"])
def test_a_round_that_ends_in_the_middle_of_a_move_is_made_again(
    service: Service, toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch, ends: int | None
) -> None:
    service.settings = service.settings.model_copy(update={"weights_in": "mapped"})
    service.context = service.new_context()
    spec = half(toy_spec(rounds=2))
    expected = simulate(spec)
    experiment_id = service.submit(spec)
    service.run(until=lambda message: message.task == TaskName.AGGREGATE)
    pwrite, written = os.pwrite, 0

    def ending(*given: Any) -> int:
        nonlocal written
        written += 1
        if written != 3:
            return pwrite(*given)
        raise KeyboardInterrupt if ends is None else OSError(ends, os.strerror(ends))

    monkeypatch.setattr(os, "pwrite", ending)
    if ends is None:
        with pytest.raises(KeyboardInterrupt):
            service.run()
        service.context = service.new_context()
        service.lose_worker()
    else:
        service.run()
        assert service.experiment(experiment_id).state == ExperimentState.RUNNING
        service.later()
    service.run()
    assert written > 3
    assert service.experiment(experiment_id).state == ExperimentState.COMPLETED
    assert service.experiment(experiment_id).digest == expected.digest


@usually_on("sqlite")
@pytest.mark.parametrize(
    ("setting", "memory", "algorithm", "mapped"),
    [
        ("auto", 0, "ferret", False),
        ("auto", 1 << 16, "ferret", True),
        ("auto", 1 << 16, "fedit", False),
        ("mapped", 0, "ferret", True),
        ("mapped", 0, "fedit", False),
        ("memory", 1 << 16, "ferret", False),
    ],
)
def test_where_the_weights_lie(
    service: Service, toy_spec: SpecFactory, setting: str, memory: int, algorithm: str, mapped: bool
) -> None:
    experiment_id = service.submit(half(toy_spec(algorithm)))
    service.step()
    service.settings = service.settings.model_copy(update={"weights_in": setting, "task_memory_bytes": memory})
    replica: Replica = service.new_context().load_base(experiment_id)
    assert isinstance(replica, MappedReplica) == mapped


@usually_on("sqlite")
def test_mapped_files_are_removed_with_the_worker(service: Service, toy_spec: SpecFactory) -> None:
    service.settings = service.settings.model_copy(update={"weights_in": "mapped"})
    experiment_id = service.submit(half(toy_spec()))
    service.step()
    context = service.new_context()
    context.model_at(experiment_id, 0)
    assert list((service.settings.home / "mapped").glob("*/0"))
    context.drop(experiment_id)
    assert not list((service.settings.home / "mapped").glob("*/0"))
