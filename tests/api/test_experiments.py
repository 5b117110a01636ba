from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

BODY: dict[str, Any] = {
    "name": "first",
    "rounds": 2,
    "model": {"source": "/models/toy"},
    "dataset": {"name": "jsonl", "train": "/data/train.jsonl"},
    "participants": {"simulated": 3},
    "algorithm": {"name": "ferret", "K": 64},
}


def test_submitting_answers_202_with_the_address_of_a_queued_experiment(site: Any) -> None:
    answer = site.admin.post("/api/v1/experiments", json=BODY)
    assert answer.status_code == 202
    found = site.admin.get(answer.headers["Location"])
    assert found.json() == answer.json()
    assert found.json()["state"] == "queued"
    assert found.json()["participants"] == 3
    assert found.json()["links"]["self"] == answer.headers["Location"]
    assert datetime.fromisoformat(found.json()["created_at"]).utcoffset() is not None


def test_the_stored_specification_has_every_default_filled_in(site: Any) -> None:
    spec = site.admin.post("/api/v1/experiments", json=BODY).json()["spec"]
    assert spec["algorithm"]["K"] == 64
    assert spec["algorithm"]["basis"] == "G"
    assert spec["dataset"]["instruction"] == "instruction"
    assert spec["round"]["quorum"] == 1.0


def test_the_links_of_an_experiment_lead_somewhere(site: Any) -> None:
    experiment_id = site.submit()
    site.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    for name, link in site.admin.get(f"/api/v1/experiments/{experiment_id}").json()["links"].items():
        assert site.admin.get(link).status_code == 200, name


def test_the_same_key_and_body_submit_once(site: Any) -> None:
    headers = {"Idempotency-Key": "run-1"}
    first = site.admin.post("/api/v1/experiments", json=BODY, headers=headers)
    again = site.admin.post("/api/v1/experiments", json=BODY, headers=headers)
    assert again.status_code == 202
    assert again.json()["id"] == first.json()["id"]
    assert len(site.admin.get("/api/v1/experiments").json()["items"]) == 1


def test_the_same_key_with_another_body_is_refused(site: Any) -> None:
    headers = {"Idempotency-Key": "run-1"}
    site.admin.post("/api/v1/experiments", json=BODY, headers=headers)
    answer = site.admin.post("/api/v1/experiments", json=BODY | {"rounds": 9}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["code"] == "idempotency.conflict"


def wrong(**changes: Any) -> dict[str, Any]:
    return BODY | changes


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        (wrong(algorithm={"name": "ferret", "K": 0}), "algorithm.K", 0),
        (wrong(algorithm={"name": "ferret", "k": 4}), "algorithm.k", 4),
        (wrong(algorithm={"name": "gradient-descent"}), "algorithm.name", "gradient-descent"),
        (wrong(dataset={"name": "imagenet"}), "dataset.name", "imagenet"),
        (wrong(partition={"name": "dirichlet", "alpha": -1}), "partition.alpha", -1),
        (wrong(rounds=0), "rounds", 0),
        (wrong(round={"quorum": 1.5}), "round.quorum", 1.5),
        (wrong(speed="fast"), "speed", "fast"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(site: Any, body: dict[str, Any], field: str, value: Any) -> None:
    answer = site.admin.post("/api/v1/experiments", json=body)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "spec.invalid"
    assert [(error["field"], error["value"]) for error in problem["errors"]] == [(field, value)]
    assert field in problem["detail"]
    assert site.admin.get("/api/v1/experiments").json()["items"] == []


def test_every_wrong_option_is_reported_at_once(site: Any) -> None:
    body = wrong(algorithm={"name": "ferret", "K": 0}, dataset={"name": "imagenet"}, partition={"name": "by-mood"})
    errors = site.admin.post("/api/v1/experiments", json=body).json()["errors"]
    assert {error["field"] for error in errors} == {"algorithm.K", "dataset.name", "partition.name"}


def test_an_unknown_experiment_is_named(site: Any) -> None:
    answer = site.admin.get("/api/v1/experiments/exp_nobody")
    assert answer.status_code == 404
    assert answer.json()["code"] == "experiment.not_found"
    assert "exp_nobody" in answer.json()["detail"]


def test_pages_follow_each_other_without_gaps(site: Any) -> None:
    submitted = [site.submit(name=f"run {number}") for number in range(5)]
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = site.admin.get(
            "/api/v1/experiments", params={"limit": 2} | ({"cursor": cursor} if cursor else {})
        ).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert sorted(seen) == sorted(submitted)
    shown = [site.admin.get(f"/api/v1/experiments/{experiment_id}").json() for experiment_id in seen]
    times = [datetime.fromisoformat(experiment["created_at"]) for experiment in shown]
    assert times == sorted(times, reverse=True)
    assert cursor is None


def test_a_made_up_cursor_is_refused(site: Any) -> None:
    answer = site.admin.get("/api/v1/experiments", params={"cursor": "3"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "cursor"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=queued", {"plain", "other data"}),
        ("state=queued&state=cancelled", {"plain", "other data", "stopped"}),
        ("algorithm=ferret", {"stopped"}),
        ("dataset=gsm8k", {"other data"}),
        ("name=PLA", {"plain"}),
        ("name=%25", set()),
    ],
)
def test_filters(site: Any, query: str, names: set[str]) -> None:
    site.submit(name="plain")
    site.submit(name="other data", dataset={"name": "gsm8k"})
    stopped = site.submit(name="stopped", algorithm={"name": "ferret"})
    site.admin.post(f"/api/v1/experiments/{stopped}:cancel")
    items = site.admin.get(f"/api/v1/experiments?{query}").json()["items"]
    assert {item["name"] for item in items} == names


def test_cancelling_stops_the_experiment_and_twice_is_no_error(site: Any) -> None:
    experiment_id = site.running()
    (assignment_id,) = site.open_round(experiment_id, simulated=["client-001"])
    for _ in range(2):
        answer = site.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
        assert answer.status_code == 200
        assert answer.json()["state"] == "cancelled"
        assert answer.json()["finished_at"] is not None
    assert site.assignment(assignment_id).state == "expired"


def test_what_failed_cannot_be_cancelled_and_says_why_it_failed(site: Any) -> None:
    from ferret_core.protocol.errors import FerretError
    from ferret_db.engine import lifecycle

    experiment_id = site.running()
    with site.database.begin() as s:
        lifecycle.fail(s, experiment_id, FerretError("model.invalid", "/models/toy holds no config.json"))
    answer = site.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    assert answer.status_code == 409
    assert answer.json()["code"] == "experiment.conflict"
    shown = site.admin.get(f"/api/v1/experiments/{experiment_id}").json()
    assert shown["error"]["code"] == "model.invalid"
    assert shown["error"]["detail"] == "/models/toy holds no config.json"


def test_an_experiment_sums_up_its_metrics_and_bytes(site: Any) -> None:
    experiment_id = site.running()
    for number, loss in enumerate([3.0, 1.0, 2.0], start=1):
        site.committed(experiment_id, number, metrics={"eval_loss": loss, "rouge_l": 10.0 * loss})
    shown = site.admin.get(f"/api/v1/experiments/{experiment_id}").json()
    assert shown["metrics"]["eval_loss"] == {"first": 3.0, "last": 2.0, "best": 1.0}
    assert shown["metrics"]["rouge_l"] == {"first": 30.0, "last": 20.0, "best": 30.0}
    assert shown["metrics"]["bytes_down"] == {"first": 100.0, "last": 100.0, "best": None}
    assert shown["round"] == 3
    assert shown["bytes_up"] > 0
    assert shown["bytes_down"] == 300
    assert shown["shapes"] == {"bias": [4], "weight": [2, 3]}
    listed = site.admin.get("/api/v1/experiments").json()["items"][0]
    assert {name: shown[name] for name in ("metrics", "round", "bytes_up", "bytes_down")}.items() <= listed.items()
