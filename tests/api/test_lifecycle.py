"""Pause and resume, extend, clone, delete: each counts once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ferret_core.rounds.early_stopping import BestRound, EarlyStop
from ferret_db.engine import lifecycle
from ferret_db.tables import Experiment
from tests.api.conftest import ASSIGNMENT

ADDRESS = "/api/v1/experiments"


def completed(site: Any, **changes: Any) -> str:
    """Id of an experiment with its one round committed."""
    experiment_id: str = site.running(rounds=1, **changes)
    site.committed(experiment_id)
    with site.database.begin() as s:
        lifecycle.complete(s, experiment_id)
    return experiment_id


def test_pausing_takes_work_back_and_resuming_hands_it_out_again(either_site: Any) -> None:
    member = either_site.member()
    for _ in range(2):
        answer = either_site.move(member.experiment_id, "pause")
        assert (answer.status_code, answer.json()["state"]) == (200, "paused")
    beat = member.client.post(f"{member.address}/heartbeat", json={"fence": member.lease["fence"]})
    assert (beat.status_code, beat.json()["code"]) == (409, "lease.lost")
    poll = member.client.get(ASSIGNMENT).json()
    assert (poll["experiment_state"], poll["assignment"]) == ("paused", None)

    for _ in range(2):
        assert either_site.move(member.experiment_id, "resume").json()["state"] == "running"
    again = member.client.get(ASSIGNMENT).json()["assignment"]
    assert (again["id"], again["fence"] > member.lease["fence"]) == (member.assignment_id, True)


def test_more_rounds_make_a_completed_experiment_run_again(either_site: Any) -> None:
    experiment_id = completed(either_site)
    for _ in range(2):  # sent twice it counts once
        answer = either_site.move(experiment_id, "extend", json={"rounds": 2, "expected_rounds": 1})
        assert answer.status_code == 200
        found = answer.json()
        assert (found["state"], found["rounds"], found["finished_at"]) == ("running", 3, None)
    stale = either_site.move(experiment_id, "extend", json={"rounds": 4, "expected_rounds": 1})
    assert (stale.status_code, stale.json()["code"]) == (409, "experiment.conflict")
    assert stale.json()["errors"][0]["field"] == "expected_rounds"
    assert either_site.move(experiment_id, "extend", json={"rounds": 1}).json()["spec"]["rounds"] == 4


def test_an_experiment_that_stopped_early_is_extended_once_too(site: Any) -> None:
    """It has three rounds and stopped after one: two more are three again."""
    experiment_id = site.running(rounds=3)
    site.committed(experiment_id)
    with site.database.begin() as s:
        lifecycle.complete(s, experiment_id, EarlyStop(1, BestRound("eval_loss", 0, 0.5), "no improvement"))
    for rounds, total in ((2, 3), (2, 3)):
        answer = site.move(experiment_id, "extend", json={"rounds": rounds, "expected_rounds": 1})
        assert (answer.status_code, answer.json()["state"], answer.json()["rounds"]) == (200, "running", total)


@pytest.mark.parametrize("body", [{}, {"rounds": 0}, {"rounds": -1}, {"rounds": 1, "really": True}])
def test_an_extension_by_nothing_is_refused(site: Any, body: dict[str, Any]) -> None:
    assert site.move(site.running(), "extend", json=body).json()["code"] == "request.invalid"


def test_a_clone_is_the_same_experiment_with_changes(either_site: Any) -> None:
    """Null takes a value back to its default."""
    site = either_site
    original = site.submit(seed=7, algorithm={"name": "ferret", "K": 64})
    patch = {"name": "wider", "algorithm": {"K": 128}, "round": {"quorum": 0.5}, "seed": None}
    answer = site.move(original, "clone", json=patch, headers={"Content-Type": "application/merge-patch+json"})
    assert answer.status_code == 202
    clone = site.admin.get(answer.headers["Location"]).json()
    assert clone["id"] != original
    assert (clone["state"], clone["cloned_from"], clone["name"]) == ("queued", original, "wider")
    spec = clone["spec"]
    assert (spec["algorithm"]["K"], spec["round"]["quorum"], spec["seed"]) == (128, 0.5, 0)
    assert spec["dataset"]["train"] == "/data/train.jsonl"
    assert site.show(original)["cloned_from"] is None


def test_a_clone_is_made_once_under_its_key(site: Any) -> None:
    original = site.submit()
    headers = {"Idempotency-Key": "again"}
    first = site.move(original, "clone", json={"seed": 1}, headers=headers)
    assert site.move(original, "clone", json={"seed": 1}, headers=headers).json()["id"] == first.json()["id"]
    reused = site.move(original, "clone", json={"seed": 2}, headers=headers)
    assert (reused.status_code, reused.json()["code"]) == (422, "idempotency.conflict")
    assert len(site.admin.get(ADDRESS).json()["items"]) == 2


@pytest.mark.parametrize(
    ("patch", "field"),
    [({"rouns": 3}, "rouns"), ({"model": None}, "model"), ({"algorithm": {"name": "magic"}}, "algorithm.name")],
)
def test_a_clone_that_cannot_run_is_refused_field_by_field(site: Any, patch: dict[str, Any], field: str) -> None:
    answer = site.move(site.submit(), "clone", json=patch)
    assert (answer.status_code, answer.json()["code"]) == (422, "spec.invalid")
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert len(site.admin.get(ADDRESS).json()["items"]) == 1


def test_an_experiment_that_nothing_can_move_says_why(either_site: Any) -> None:
    """It waits for an hour, and no worker was ever seen."""
    experiment_id = either_site.running()
    either_site.expire(Experiment, "created_at", experiment_id, 3600)
    shown = either_site.show(experiment_id)
    assert (shown["state"], shown["stalled"]["code"]) == ("running", "aggregation_worker.missing")
    assert datetime.fromisoformat(shown["stalled"]["since"]) < datetime.now(UTC) - timedelta(minutes=59)
