"""Guarded steps and the mean of the last rounds: the service's are the simulation's, whoever goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tasks import TaskName
from ferret_core.simulate import simulate
from ferret_core.storage import FileKind, blob_location
from ferret_db.engine.records import altered
from ferret_db.repositories import contributions, ledger, metrics, references
from tests.worker.conftest import usually_on

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py
MEASURED = (
    "step",
    "step_before",
    "noise_ratio",
    "development_loss",
    "average_development_loss",
    "average_eval_loss",
    "eval_loss",
)

FRESH = [
    pytest.param(False, id="one worker", marks=pytest.mark.slow),
    pytest.param(True, id="a fresh one for every task"),
]


@pytest.fixture
def spec(toy_spec: SpecFactory) -> ExperimentSpec:
    """Each round leads too far, and the mean begins with the second of three."""
    server = {"step": "guard", "rise": 0, "development": 4, "learning_rate": 64, "average": "tail", "average_from": 2}
    evaluation = {"split": "validation", "validation": 0.4, "examples": 8, "generate": 0}
    return toy_spec(rounds=3, server=server, evaluation=evaluation)


@pytest.fixture
def by_participants(toy_spec: SpecFactory) -> ExperimentSpec:
    """Each round leads too far, and the next takes a part of it back."""
    server = {"step": "guard", "development_by": "participants", "rise": 0, "learning_rate": 64}
    evaluation, robust = {"examples": 8, "generate": 0}, {"explosion": 1e6}
    return toy_spec(rounds=3, server=server, evaluation=evaluation, robust=robust)


def measured(service: Service, experiment_id: str) -> list[dict[str, float]]:
    with service.database.read() as s:
        found = metrics.by_round(s, experiment_id, range(4))
    return [{name: found[number][name] for name in MEASURED if name in found[number]} for number in range(4)]


def run(service: Service, spec: ExperimentSpec, fresh: bool) -> tuple[str, list[dict[str, Any]]]:
    """The experiment and its records; it must end as the simulation does."""
    experiment_id = service.submit(spec)
    while service.messages:
        if fresh and service.messages[0].task != TaskName.COORDINATE:
            service.context = service.new_context()
        service.step()
    done, simulated = service.experiment(experiment_id), simulate(spec)
    assert (done.state, done.digest) == (ExperimentState.COMPLETED, simulated.digest)
    expected = [{name: done.metrics[name] for name in MEASURED if name in done.metrics} for done in simulated.rounds]
    assert measured(service, experiment_id) == expected
    with service.database.read() as s:
        records = [entry.record for entry in ledger.after(s, experiment_id, 0, 10)]
    steps = [(record.get("halvings"), record.get("taken_back")) for record in records]
    assert steps == [(record.halvings, record.taken_back) for record in simulated.ledger]
    return experiment_id, records


@pytest.mark.parametrize("fresh", FRESH)
def test_the_service_takes_the_simulations_steps(service: Service, spec: ExperimentSpec, fresh: bool) -> None:
    _, records = run(service, spec, fresh)
    assert all(record["halvings"] for record in records[:1])


@pytest.mark.slow  # the next two have it too
@pytest.mark.parametrize("fresh", [False, True])
def test_the_service_takes_back_what_the_simulation_does(
    service: Service, by_participants: ExperimentSpec, fresh: bool
) -> None:
    _, records = run(service, by_participants, fresh)
    assert any(record["taken_back"] for record in records)


@usually_on("sqlite")
@pytest.mark.slow
def test_a_forged_taking_back_is_found_by_the_contributions(service: Service, by_participants: ExperimentSpec) -> None:
    experiment_id, records = run(service, by_participants, fresh=False)
    with service.database.read() as s:
        assert list(altered(s, service.context.storage)) == []
    said = records[1]["taken_back"]
    with service.database.begin() as s:
        ledger.get(s, experiment_id, 2).record = {**records[1], "taken_back": 3 - said}
    with service.database.read() as s:
        (found,) = altered(s, service.context.storage)
        rows = {row.participant: row for row in contributions.of_experiment(s, experiment_id) if row.round == 2}
    assert (found.experiment_id, found.round, found.participant) == (experiment_id, 2, "")
    assert found.reason.startswith("ledger.broken: round = 2")
    assert f"taken_back is {3 - said}, and its contributions' rises say {said}" in found.reason
    lost = blob_location(FileKind.CONTRIBUTION, rows["client-001"].digest)
    service.context.storage.path(lost).unlink()
    with service.database.read() as s:
        assert list(altered(s, service.context.storage)) == [], "of contributions that are gone nothing can be said"


@usually_on("sqlite")
@pytest.mark.slow
def test_what_was_lost_is_made_again_with_its_rises(service: Service, by_participants: ExperimentSpec) -> None:
    """The update and a contribution of a round that takes back."""
    experiment_id, _ = run(service, by_participants, fresh=False)
    with service.database.read() as s:
        files = list(references.of_all(s, experiment_id))
    lost = [file for file in files if file.round == 3 and file.kind in (FileKind.UPDATE, FileKind.CONTRIBUTION)]
    paths = {service.context.storage.path(file.location) for file in lost}
    before = {path: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    service.context = service.new_context()
    service.perform(TaskName.REPAIR, experiment_id)
    assert {path: path.read_bytes() for path in paths} == before
