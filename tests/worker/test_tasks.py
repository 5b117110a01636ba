from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ferret_core import discovery
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import AssignmentState, ExperimentState
from ferret_core.protocol.task_names import TaskName
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate
from ferret_core.storage import FileKind, blob_location
from ferret_db.repositories import artifacts, assignments, contributions, ledger, metric_series, metrics, rounds
from tests.worker.conftest import usually_on

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


def cases() -> Iterator[Any]:
    """Those that send, keep and store different things; in ``make test-all`` every one, and on PostgreSQL too."""
    usual = [
        ("fedavg", {}, "float16"),
        ("ferret", {}, "float32"),
        ("fedit", {}, "float32"),
        ("topk", {}, "float32"),
    ]
    names = set(discovery.names("ferret_core.algorithms")) - {name for name, *_ in usual}
    slow = [
        ("ferret", {"basis": "H"}, "bfloat16"),
        ("ferret", {"allocation": "curvature"}, "float32"),
        *((name, {}, "float32") for name in sorted(names)),
    ]
    for case in (*usual, *slow):
        own = [] if case in usual else [pytest.mark.slow]
        yield pytest.param("sqlite", *case, marks=own)
        own = [] if case == usual[0] else [pytest.mark.slow]
        yield pytest.param("postgresql", *case, marks=[pytest.mark.postgresql, *own])


@pytest.mark.parametrize(("settings", "algorithm", "options", "dtype"), list(cases()), indirect=["settings"])
def test_the_service_equals_the_simulation_bit_for_bit(
    service: Service, toy_spec: SpecFactory, tmp_path: Path, algorithm: str, options: dict[str, Any], dtype: str
) -> None:
    spec = toy_spec(algorithm, options=options, participants={"simulated": 5, "fraction": 0.6})
    spec = spec.model_copy(update={"model": spec.model.model_copy(update={"dtype": dtype})})
    oracle = simulate(spec, tmp_path / "oracle")
    experiment_id = service.submit(spec)
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, oracle.digest)
    with service.database.read() as s:
        recorded = {
            metric.name: [p.value for p in metric.points] for metric in metric_series.curves(s, experiment_id).series
        }
        entries = ledger.after(s, experiment_id, 0, 10)
        last = {round_.name: round_ for round_ in artifacts.of_round(s, experiment_id, 3)}
    for name in ("eval_loss", "rouge_l"):
        assert recorded[name] == [round_.metrics[name] for round_ in oracle.rounds]
    assert recorded["train_loss"] == [round_.metrics["train_loss"] for round_ in oracle.rounds[1:]]
    assert [entry.update_digest for entry in entries] == [record.update for record in oracle.ledger]
    (name,) = [name for name in last if name.endswith(".safetensors")]
    weights = service.context.storage.path(last[name].location)
    assert weights.read_bytes() == (tmp_path / "oracle" / name).read_bytes()


def test_a_worker_keeps_its_model_and_advances_it_by_the_ledger(
    service: Service, plain_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    initialise = Replica.__init__

    def counted(replica: Replica, *args: Any) -> None:
        loaded.append("once more")
        initialise(replica, *args)

    monkeypatch.setattr(Replica, "__init__", counted)
    experiment_id = service.submit(plain_spec())
    service.run(until=lambda message: message.task == TaskName.AGGREGATE)
    assert len(loaded) == 1
    service.context = service.new_context()  # another worker takes over, from the base model and the ledger
    service.run()
    assert len(loaded) == 2
    assert service.experiment(experiment_id).state == ExperimentState.COMPLETED


@usually_on("sqlite")
@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"model": {"source": "/nowhere/at/all"}}, "model.invalid", "model.source"),
        ({"participants": {"simulated": 500}}, "partition.invalid", "participants.simulated"),
        ({"dataset": {"name": "jsonl", "train": "/nowhere.jsonl"}}, "dataset.invalid", "train"),
        ({"algorithm": {"name": "ferret", "bytes_per_round": 60}}, "spec.invalid", "bytes_per_round"),
    ],
)
def test_what_is_wrong_with_model_data_or_budget_fails_the_experiment_and_names_the_field(
    service: Service, plain_spec: SpecFactory, changes: dict[str, Any], code: str, field: str
) -> None:
    experiment_id = service.submit(plain_spec(**changes))
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.error["code"]) == (ExperimentState.FAILED, code)
    assert field in experiment.error["errors"][0]["field"]
    assert str(experiment.error["errors"][0]["value"]) in experiment.error["detail"]


def test_one_clients_infinite_loss_is_recorded_and_the_round_goes_on(
    service: Service, one_bad_client: ExperimentSpec
) -> None:
    experiment_id = service.submit(one_bad_client)
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(one_bad_client).digest)
    with service.database.read() as s:
        reports = assignments.of_round(s, rounds.latest(s, experiment_id).id)
    (rejected,) = [item for item in reports if item.state == AssignmentState.REJECTED]
    assert rejected.error["code"] == "training.non_finite"
    assert [item.state for item in reports].count(AssignmentState.ACCEPTED) == 3


def test_every_rounds_cost_stands_with_its_metrics(service: Service, plain_spec: SpecFactory) -> None:
    spec = plain_spec(rounds=2)
    experiment_id = service.submit(spec)
    service.run()
    oracle = simulate(spec)
    with service.database.read() as s:
        recorded = metrics.by_round(s, experiment_id, [1, 2])
        sent = contributions.of_round(s, rounds.latest(s, experiment_id).id)
        worked = assignments.of_round(s, rounds.latest(s, experiment_id).id)
    for done in oracle.rounds[1:]:
        found = recorded[done.number]
        assert set(done.cost) <= set(found)
        assert all(found[name] == done.cost[name] for name in ("numbers_sent", "numbers_received"))
    assert [item.seconds for item in worked] == [contribution.cost["seconds"] for contribution in sent]
    assert recorded[2]["local_seconds"] == pytest.approx(sum(item.seconds or 0 for item in worked) / 3)
    assert (
        recorded[2].get("peak_memory_bytes")
        == max(contribution.cost["peak_memory_bytes"] or 0 for contribution in sent)
        or None
    )


def test_a_rotten_contribution_is_noticed_and_made_again(service: Service, plain_spec: SpecFactory) -> None:
    experiment_id = service.submit(spec := plain_spec())
    while service.messages[0].task != TaskName.AGGREGATE:
        service.step()
    with service.database.read() as s:
        frozen = contributions.of_round(s, service.messages[0].argument)
    path = service.context.storage.path(blob_location(FileKind.CONTRIBUTION, frozen[0].digest))
    path.write_bytes(path.read_bytes()[:-1] + b"\x55")
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)


@usually_on("sqlite")
def test_a_lease_is_kept_while_a_contribution_is_stored(
    service: Service, plain_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.context.settings = service.settings.model_copy(update={"lease_seconds": 0.6})
    service.submit(plain_spec())
    while service.messages[0].task != TaskName.TRAIN:
        service.step()
    assignment = service.messages[0].argument

    def lease_until() -> datetime | None:
        with service.database.read() as s:
            return assignments.get(s, assignment).lease_until

    storage = service.context.storage
    store = storage.put_pieces

    def store_slowly(*given: Any) -> Any:
        first, patience = lease_until(), time.monotonic() + 10
        while lease_until() == first and time.monotonic() < patience:
            time.sleep(0.05)
        extended.append(lease_until() != first)
        return store(*given)

    extended = list[bool]()
    monkeypatch.setattr(storage, "put_pieces", store_slowly)
    service.step()
    assert set(extended) == {True}


def test_every_task_may_come_twice(service: Service, plain_spec: SpecFactory) -> None:
    """A broker delivers at least once: repeating every message changes nothing."""
    spec = plain_spec()
    experiment_id = service.submit(spec)
    while service.messages:
        service.messages.appendleft(service.messages[0])
        service.step()
        service.step()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)
    with service.database.read() as s:
        assert len(ledger.after(s, experiment_id, 0, 100)) == 3


def test_settings_are_chosen_on_the_validation_split_by_evaluation_and_guard_alike(
    service: Service, toy_spec: SpecFactory, toy_data: tuple[Path, Path], tmp_path: Path
) -> None:
    spec = toy_spec(
        rounds=1,
        dataset={"name": "jsonl", "train": str(toy_data[0]), "test": str(tmp_path / "never-read.jsonl")},
        evaluation={"split": "validation", "examples": 6, "generate_examples": 0},
    )
    oracle = simulate(spec)
    experiment_id = service.submit(spec)
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, oracle.digest)
    with service.database.read() as s:
        assert metrics.by_round(s, experiment_id, [1])[1]["eval_loss"] == oracle.rounds[1].metrics["eval_loss"]
