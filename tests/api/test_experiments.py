"""Submission, and one experiment as it is shown."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_db.engine import lifecycle
from tests.api.conftest import document

URL = "/api/v1/experiments"


def test_submitting_answers_202_with_the_address_of_a_queued_experiment(site: Any) -> None:
    answer = site.admin.post(URL, json=document(algorithm={"name": "ferret", "K": 64}))
    assert answer.status_code == 202
    found = site.admin.get(answer.headers["Location"]).json()
    assert found == answer.json()
    assert (found["state"], found["participants"]) == ("queued", 2)
    assert found["links"]["self"] == answer.headers["Location"]
    assert datetime.fromisoformat(found["created_at"]).utcoffset() is not None
    spec = found["spec"]  # with every default
    assert (spec["algorithm"]["K"], spec["algorithm"]["basis"], spec["round"]["quorum"]) == (64, "G", 1.0)
    assert spec["dataset"]["instruction"] == "instruction"
    site.move(found["id"], "cancel")
    for name, link in found["links"].items():
        assert site.admin.get(link).status_code == 200, name


@pytest.mark.parametrize(
    ("wrong", "fields"),
    [
        ({"rounds": 0, "speed": "fast", "round": {"quorum": 1.5}}, {"rounds": 0, "speed": "fast", "round.quorum": 1.5}),
        (
            {
                "algorithm": {"name": "ferret", "K": 0},
                "dataset": {"name": "imagenet"},
                "partition": {"name": "by-mood"},
            },
            {"algorithm.K": 0, "dataset.name": "imagenet", "partition.name": "by-mood"},
        ),
    ],
)
def test_every_wrong_field_is_named_with_its_value_at_once(
    site: Any, wrong: dict[str, Any], fields: dict[str, Any]
) -> None:
    answer = site.admin.post(URL, json=document(**wrong))
    assert (answer.status_code, answer.json()["code"]) == (422, "spec.invalid")
    assert {error["field"]: error["value"] for error in answer.json()["errors"]} == fields
    assert site.admin.get(URL).json()["items"] == []


def test_an_experiment_with_masked_sums_is_for_real_participants(site: Any) -> None:
    summed = {"name": "ferret", "seeds": "shared", "allocation": "fixed", "K": 100}
    masked = {"secure": {"aggregation": "masked"}, "participants": {"simulated": 3}}
    answer = site.admin.post(URL, json=document(algorithm=summed, **masked))
    assert (answer.status_code, answer.json()["code"]) == (422, "spec.invalid")
    assert [error["field"] for error in answer.json()["errors"]] == ["participants.simulated"]
    real = masked | {"participants": {"simulated": 0, "edge": 3}}
    assert site.admin.post(URL, json=document(algorithm=summed, **real)).status_code == 202


def test_what_failed_says_why(site: Any) -> None:
    experiment_id = site.running()
    with site.database.begin() as s:
        lifecycle.fail(s, experiment_id, FerretError("model.invalid", "/models/toy holds no config.json"))
    error = site.show(experiment_id)["error"]
    assert (error["code"], error["detail"]) == ("model.invalid", "/models/toy holds no config.json")


def test_an_experiment_sums_up_its_metrics_and_bytes(site: Any) -> None:
    experiment_id = site.running()
    for number, loss in enumerate([3.0, 1.0, 2.0], start=1):
        site.committed(experiment_id, number, metrics={"eval_loss": loss})
    shown = site.show(experiment_id)
    assert shown["metrics"]["eval_loss"] == {"first": 3.0, "last": 2.0, "best": 1.0}
    assert shown["metrics"]["bytes_down"] == {"first": 100.0, "last": 100.0, "best": None}
    assert (shown["round"], shown["bytes_down"], shown["bytes_up"] > 0) == (3, 300, True)
    assert shown["shapes"] == {"bias": [4], "weight": [2, 3]}
    (listed,) = site.admin.get(URL).json()["items"]
    assert {name: shown[name] for name in ("metrics", "round", "bytes_up", "bytes_down")}.items() <= listed.items()


@pytest.mark.parametrize(
    ("method", "below"),
    [
        *(("POST", f":{verb}") for verb in ("pause", "resume", "cancel", "clone", "archive", "unarchive")),
        *(("GET", f"/{path}") for path in ("rounds", "rounds/1", "contributions", "rejections", "participation")),
        *(("GET", f"/{path}") for path in ("participants/a/rounds", "metrics", "artifacts", "ledger", "events")),
        ("POST", "/participants/site-a:revoke"),
        ("GET", ""),
        ("DELETE", ""),
    ],
)
def test_nothing_is_found_below_an_unknown_experiment(site: Any, method: str, below: str) -> None:
    body = {} if method == "POST" else None
    answer = site.admin.request(method, f"{URL}/exp_nobody{below}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (404, "experiment.not_found")
    assert "exp_nobody" in answer.json()["detail"]
