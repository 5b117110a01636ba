"""Pause and resume, extend, clone, archive, delete: each counts once, and never in a state that forbids it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ferret_db.engine import lifecycle
from ferret_db.tables import Experiment

ADDRESS = "/api/v1/experiments"


def finished(site: Any) -> str:
    experiment_id: str = site.running()
    site.move(experiment_id, "cancel").raise_for_status()
    return experiment_id


def completed(site: Any, rounds: int = 1, **changes: Any) -> str:
    """Id of an experiment with all its rounds committed."""
    experiment_id: str = site.running(rounds=rounds, **changes)
    for number in range(1, rounds + 1):
        site.committed(experiment_id, number)
    with site.database.begin() as s:
        lifecycle.complete(s, experiment_id)
    return experiment_id


def conflict(answer: Any, code: str = "experiment.conflict") -> None:
    assert (answer.status_code, answer.json()["code"]) == (409, code)


def test_pausing_takes_work_back_and_resuming_hands_it_out_again(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 1})
    participant = site.client(site.enrol(experiment_id))
    site.open_round(experiment_id, edge=["site-a"])
    held = participant.get("/api/v1/participant/assignment").json()["assignment"]
    for _ in range(2):
        answer = site.move(experiment_id, "pause")
        assert (answer.status_code, answer.json()["state"]) == (200, "paused")
    beat = participant.post(f"/api/v1/participant/assignments/{held['id']}/heartbeat", json={"fence": held["fence"]})
    conflict(beat, "lease.lost")
    poll = participant.get("/api/v1/participant/assignment").json()
    assert (poll["experiment_state"], poll["assignment"]) == ("paused", None)

    for _ in range(2):
        assert site.move(experiment_id, "resume").json()["state"] == "running"
    again = participant.get("/api/v1/participant/assignment").json()["assignment"]
    assert again["id"] == held["id"]
    assert again["fence"] > held["fence"]
    told = [event["type"] for event in site.admin.get(f"{ADDRESS}/{experiment_id}/events").json()["items"]]
    assert [type_ for type_ in told if type_ in {"experiment.paused", "experiment.resumed"}] == [
        "experiment.paused",
        "experiment.resumed",
    ]


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_is_over_neither_pauses_nor_resumes(site: Any, verb: str) -> None:
    conflict(site.move(finished(site), verb))


def test_more_rounds_make_a_completed_experiment_run_again(either_site: Any) -> None:
    site = either_site
    experiment_id = completed(site)
    answer = site.move(experiment_id, "extend", json={"rounds": 2})
    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["rounds"], answer.json()["finished_at"]) == ("running", 3, None)
    assert answer.json()["spec"]["rounds"] == 3
    site.committed(experiment_id, 2)
    assert site.show(experiment_id)["round"] == 2


def test_an_extension_that_is_sent_twice_counts_once(site: Any) -> None:
    experiment_id = site.running(rounds=3)
    for _ in range(2):
        answer = site.move(experiment_id, "extend", json={"rounds": 2, "expected_rounds": 3})
        assert (answer.status_code, answer.json()["rounds"]) == (200, 5)
    stale = site.move(experiment_id, "extend", json={"rounds": 4, "expected_rounds": 3})
    conflict(stale)
    assert stale.json()["errors"][0]["field"] == "expected_rounds"
    assert site.move(experiment_id, "extend", json={"rounds": 1}).json()["rounds"] == 6


def test_a_schedule_over_the_rounds_forbids_more_of_them(site: Any) -> None:
    experiment_id = site.running(server={"schedule": "cosine"})
    answer = site.move(experiment_id, "extend", json={"rounds": 1})
    conflict(answer, "extension.refused")
    assert "clone it" in answer.json()["detail"]
    assert site.show(experiment_id)["rounds"] == 3


@pytest.mark.parametrize("body", [{}, {"rounds": 0}, {"rounds": -1}, {"rounds": 1, "really": True}])
def test_an_extension_by_nothing_is_refused(site: Any, body: dict[str, Any]) -> None:
    assert site.move(site.running(), "extend", json=body).json()["code"] == "request.invalid"


def test_a_clone_is_the_same_experiment_with_changes(either_site: Any) -> None:
    site = either_site
    original = site.submit(algorithm={"name": "ferret", "K": 64})
    patch = {"name": "wider", "algorithm": {"K": 128}, "round": {"quorum": 0.5}}
    answer = site.move(original, "clone", json=patch, headers={"Content-Type": "application/merge-patch+json"})
    assert answer.status_code == 202
    clone = site.admin.get(answer.headers["Location"]).json()
    assert clone["id"] != original
    assert (clone["state"], clone["cloned_from"], clone["name"]) == ("queued", original, "wider")
    assert (clone["spec"]["algorithm"]["K"], clone["spec"]["round"]["quorum"]) == (128, 0.5)
    assert clone["spec"]["dataset"]["train"] == site.show(original)["spec"]["dataset"]["train"]
    assert site.show(original)["cloned_from"] is None


def test_null_takes_a_value_back_to_its_default(site: Any) -> None:
    original = site.submit(seed=7, algorithm={"name": "ferret", "K": 64, "basis": "R"})
    spec = site.move(original, "clone", json={"seed": None, "algorithm": {"basis": None}}).json()["spec"]
    assert (spec["seed"], spec["algorithm"]["K"], spec["algorithm"]["basis"]) == (0, 64, "G")


def test_a_clone_by_another_algorithm_keeps_the_training_and_drops_the_rest(site: Any) -> None:
    original = site.submit(algorithm={"name": "ferret", "K": 64, "local": {"learning_rate": 0.5}})
    algorithm = site.move(original, "clone", json={"algorithm": {"name": "fedavg"}}).json()["spec"]["algorithm"]
    assert (algorithm["name"], algorithm["local"]["learning_rate"]) == ("fedavg", 0.5)
    assert "K" not in algorithm


def test_a_clone_with_a_misspelt_field_is_refused_with_the_right_one(site: Any) -> None:
    answer = site.move(site.submit(), "clone", json={"rouns": 3})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "rouns = 3: is unknown; did you mean rounds?"


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
    [
        ({"rounds": 0}, "rounds"),
        ({"model": None}, "model"),
        ({"algorithm": {"name": "gradient-descent"}}, "algorithm.name"),
        ({"speed": "fast"}, "speed"),
    ],
)
def test_a_clone_that_cannot_run_is_refused_field_by_field(site: Any, patch: dict[str, Any], field: str) -> None:
    answer = site.move(site.submit(), "clone", json=patch)
    assert (answer.status_code, answer.json()["code"]) == (422, "spec.invalid")
    assert field in [error["field"] for error in answer.json()["errors"]]
    assert len(site.admin.get(ADDRESS).json()["items"]) == 1


def test_what_is_put_away_is_listed_only_when_asked_for(either_site: Any) -> None:
    site = either_site
    experiment_id = finished(site)

    def listed(**query: str) -> bool:
        items = site.admin.get(ADDRESS, params={"limit": 200, **query}).json()["items"]
        return experiment_id in [item["id"] for item in items]

    assert listed()
    assert not listed(archived="true")
    first = site.move(experiment_id, "archive").json()["archived_at"]
    assert first is not None
    assert site.move(experiment_id, "archive").json()["archived_at"] == first
    assert not listed()
    assert listed(archived="true")
    for _ in range(2):
        assert site.move(experiment_id, "unarchive").json()["archived_at"] is None
    assert listed()


def test_only_what_is_over_is_put_away_or_deleted(site: Any) -> None:
    experiment_id = site.running()
    conflict(site.move(experiment_id, "archive"))
    refused = site.admin.delete(f"{ADDRESS}/{experiment_id}")
    conflict(refused)
    assert "cancel it first" in refused.json()["detail"]


def test_what_is_deleted_is_gone_with_all_that_belongs_to_it(either_site: Any) -> None:
    site = either_site
    experiment_id = completed(site, participants={"simulated": 1, "edge": 1})
    participant = site.client(site.enrol(site.running(), "stays"))
    clone = site.move(experiment_id, "clone", json={}).json()
    assert site.admin.delete(f"{ADDRESS}/{experiment_id}").status_code == 204
    for below in ("", "/rounds", "/ledger", "/events", "/rejections"):
        answer = site.admin.get(f"{ADDRESS}/{experiment_id}{below}")
        assert (answer.status_code, answer.json()["code"]) == (404, "experiment.not_found"), below
    assert site.admin.delete(f"{ADDRESS}/{experiment_id}").status_code == 404
    assert site.show(clone["id"])["cloned_from"] == experiment_id
    assert participant.get("/api/v1/participant/assignment").status_code == 200


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "clone", "archive", "unarchive"])
def test_an_unknown_experiment_cannot_be_moved(site: Any, verb: str) -> None:
    answer = site.move("exp_nobody", verb, json={})
    assert (answer.status_code, answer.json()["code"]) == (404, "experiment.not_found")


def test_an_experiment_that_nothing_can_move_says_why(either_site: Any) -> None:
    """It waits for an hour, and no worker was ever seen."""
    site = either_site
    experiment_id = site.running()
    site.expire(Experiment, "created_at", experiment_id, 3600)
    shown = site.show(experiment_id)
    assert (shown["state"], shown["stalled"]["code"]) == ("running", "aggregation_worker.missing")
    assert "start one" in shown["stalled"]["detail"]
    assert datetime.fromisoformat(shown["stalled"]["since"]) < datetime.now(UTC) - timedelta(minutes=59)
    site.move(experiment_id, "cancel")
    assert site.show(experiment_id)["stalled"] is None
