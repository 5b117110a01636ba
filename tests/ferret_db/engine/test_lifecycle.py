"""An experiment from submission to its end."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import artifacts, events, experiment_list
from ferret_db.repositories.experiment_list import ExperimentFilter
from tests.refusals import refused


def finish(database: Database, how: str, experiment_id: str) -> Any:
    with database.begin() as s:
        if how == "fail":
            return lifecycle.fail(s, experiment_id, FerretError("model.invalid", "it is no model"))
        return getattr(lifecycle, how)(s, experiment_id)


def test_submission_queues_and_calls_for_coordination(database: Database, lab: Any, sent: list[Any]) -> None:
    experiment = lab.submit(participants={"simulated": 3, "edge": 2}, rounds=5)
    assert (experiment.state, experiment.participants, experiment.rounds) == (ExperimentState.QUEUED, 5, 5)
    assert (experiment.algorithm, experiment.dataset, experiment.round) == ("ferret", "gsm8k", 0)
    assert sent == [("ferret.coordinate", experiment.id)]
    assert lab.events(experiment.id) == ["experiment.queued"]


@pytest.mark.about_database
def test_the_same_key_and_body_submit_once(database: Database, lab: Any, sent: list[Any]) -> None:
    def submit(thread: int) -> tuple[str, bool]:
        with database.begin() as s:
            experiment, created = lifecycle.submit(s, lab.spec(), idempotency_key="k1")
            return experiment.id, created

    found = lab.race(submit)
    assert len({experiment_id for experiment_id, _ in found}) == 1
    assert sum(created for _, created in found) == 1
    assert len(sent) == 1
    with database.read() as s:
        assert len(experiment_list.list_page(s, ExperimentFilter(), 10).items) == 1


def test_the_same_key_with_another_body_is_a_conflict(database: Database, lab: Any) -> None:
    with database.begin() as s:
        lifecycle.submit(s, lab.spec(), idempotency_key="k1")
    with refused("idempotency.conflict", "another specification"), database.begin() as s:
        lifecycle.submit(s, lab.spec(seed=1), idempotency_key="k1")


def test_start_stores_the_base_model_and_calls_for_its_evaluation(
    database: Database, lab: Any, sent: list[Any]
) -> None:
    experiment = lab.start()
    assert (experiment.state, experiment.digest, experiment.shapes) == (
        "running",
        lab.base_digest,
        {"a": [4], "b": [2]},
    )
    assert experiment.started_at is not None
    assert sent[1:] == [("ferret.evaluate", experiment.id)]
    assert lab.events(experiment.id) == ["experiment.queued", "experiment.running", "checkpoint.written"]
    with database.read() as s:
        assert [(row.round, row.name) for row in artifacts.of_experiment(s, experiment.id)] == [
            (0, "model.safetensors")
        ]


@pytest.mark.about_database
def test_starting_at_once_starts_once(database: Database, lab: Any) -> None:
    experiment = lab.submit()

    def start(thread: int) -> str | None:
        with database.begin() as s:
            return lifecycle.start(s, experiment.id, f"{thread}" * 64, {"a": [1]}, [lab.file(0)]).base_digest

    assert len(set(lab.race(start))) == 1
    assert lab.events(experiment.id).count("experiment.running") == 1


def test_a_frozen_round_is_abandoned_too(database: Database, lab: Any) -> None:
    experiment = lab.start()
    round_ = lab.freeze(experiment)
    finish(database, "cancel", experiment.id)
    assert lab.get(round_).state == RoundState.ABANDONED
    assert lab.commit(round_) is False
    assert lab.get(experiment).round == 0


@pytest.mark.parametrize("how", ["cancel", "complete", "fail"])
def test_ending_twice_is_once(database: Database, lab: Any, how: str) -> None:
    experiment = lab.start()
    first = finish(database, how, experiment.id)
    again = finish(database, how, experiment.id)
    assert (again.finished_at, again.version) == (first.finished_at, first.version)
    assert lab.events(experiment.id).count(f"experiment.{first.state}") == 1


def test_the_reason_of_a_failure_is_kept(database: Database, lab: Any) -> None:
    experiment = finish(database, "fail", lab.submit().id)
    assert lab.get(experiment).error["code"] == "model.invalid"
    with database.read() as s:
        assert events.after(s, experiment.id, 1, 1)[0].data == {"code": "model.invalid", "detail": "it is no model"}


@pytest.mark.parametrize(
    ("first", "then"),
    [("complete", "cancel"), ("cancel", "complete"), ("cancel", "fail"), ("fail", "cancel"), ("fail", "complete")],
)
def test_an_end_is_final(database: Database, lab: Any, first: str, then: str) -> None:
    experiment = finish(database, first, lab.start().id)
    with refused("experiment.conflict", f"is {experiment.state}"):
        finish(database, then, experiment.id)


def test_a_queued_experiment_cannot_complete(database: Database, lab: Any) -> None:
    with refused("experiment.conflict", "is queued: it cannot become completed"):
        finish(database, "complete", lab.submit().id)
