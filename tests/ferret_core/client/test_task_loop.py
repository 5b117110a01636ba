"""A loop over rounds gives what a function under @site.train gives, and gives up the round that it is left in."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from ferret_core.client.hooks import Site
from ferret_core.client.task_loop import tasks
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

pytestmark = pytest.mark.timeout(60)


def step(model: Any, examples: Any, context: Any) -> float:
    optimizer, losses = context.optimizer(model), list[float]()
    for batch in context.batches():
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def ended() -> bool:
    """Whether the loop's thread is gone, which may take it a moment."""
    for _ in range(100):
        if not any(thread.name == "ferret-tasks" for thread in threading.enumerate()):
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def spec(toy_spec: SpecFactory) -> ExperimentSpec:
    return toy_spec("fedavg", rounds=2, participants={"simulated": 2})


def test_the_loop_gives_the_model_of_the_function(spec: ExperimentSpec) -> None:
    site = Site()
    site.train(step)
    found = list[Any]()
    rounds = list[tuple[int, str]]()
    for task in tasks(lambda own: found.append(simulate(spec, site=own))):
        rounds.append((task.context.round, task.context.participant))
        task.submit(step(task.model, task.examples, task.context))
    assert sorted(rounds) == [(1, "client-001"), (1, "client-002"), (2, "client-001"), (2, "client-002")]
    expected = simulate(spec, site=site)
    assert found[0].digest == expected.digest
    assert found[0].rounds[2].metrics["train_loss"] == expected.rounds[2].metrics["train_loss"]


def test_a_task_that_is_not_submitted_is_told_and_ends_the_run(spec: ExperimentSpec) -> None:
    with pytest.raises(TypeError, match=r"call task\.submit"):
        for _ in tasks(lambda own: simulate(spec, site=own)):
            pass
    assert ended()


def test_a_task_is_submitted_once(spec: ExperimentSpec) -> None:
    rounds = tasks(lambda own: simulate(spec, site=own))
    task = next(rounds)
    task.submit()
    with pytest.raises(TypeError, match="once"):
        task.submit()
    rounds.close()
    assert ended()


def test_leaving_the_loop_ends_the_run(spec: ExperimentSpec) -> None:
    rounds = tasks(lambda own: simulate(spec, site=own))
    next(rounds)
    rounds.close()
    assert ended()


def test_what_ends_the_run_ends_the_loop(toy_spec: SpecFactory) -> None:
    with refused("training.unsupported", "cannot take"):
        next(tasks(lambda own: simulate(toy_spec("scaffold", rounds=1), site=own)))
    assert ended()
