"""Rounds, contributions and metrics, as the round engine left them."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_db.engine import assignments


@pytest.fixture
def experiment_id(site: Any) -> str:
    """Two committed rounds, and a third one open with a delivered, a rejected and a pending assignment."""
    experiment_id = site.running()
    site.committed(experiment_id, 1, metrics={"train_loss": 2.0})
    site.committed(experiment_id, 2, metrics={"train_loss": 1.0})
    done, rejected, _ = site.open_round(experiment_id, simulated=["a", "b", "c"], number=3)
    site.deliver(done)
    with site.database.begin() as s:
        leased = assignments.lease(s, rejected, 60)
        assert leased is not None
        assignments.reject(s, rejected, leased.fence, FerretError("training.non_finite", "the loss is nan"))
    return experiment_id


def test_rounds_tell_what_became_of_them(site: Any, experiment_id: str) -> None:
    found = site.admin.get(f"/api/v1/experiments/{experiment_id}/rounds").json()
    first, second, third = found["items"]
    assert found["next_cursor"] is None
    assert [item["state"] for item in found["items"]] == ["committed", "committed", "open"]
    assert second["base_digest"] == first["digest"]
    assert first["metrics"]["train_loss"] == 2.0
    assert first["metrics"]["bytes_up"] == first["bytes_up"] > 0
    assert first["committed_at"] >= first["opened_at"]
    assert (third["participants"], third["accepted"], third["rejected"]) == (3, 1, 1)
    assert (third["attempt"], third["required_contributions"]) == (1, None)
    assert third["digest"] is None
    assert third["bytes_down"] == 300


def test_rounds_come_in_pages(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/rounds"
    first = site.admin.get(address, params={"limit": 2}).json()
    rest = site.admin.get(address, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [item["number"] for item in first["items"] + rest["items"]] == [1, 2, 3]
    assert rest["next_cursor"] is None


def test_one_round(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/rounds"
    assert site.admin.get(f"{address}/2").json() == site.admin.get(address).json()["items"][1]
    missing = site.admin.get(f"{address}/4")
    assert missing.status_code == 404
    assert missing.json()["code"] == "round.not_found"


def test_contributions_show_the_accepted_the_rejected_and_the_pending(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/contributions"
    accepted, rejected, pending = site.admin.get(address, params={"round": 3}).json()["items"]
    assert accepted["state"] == "accepted"
    assert accepted["size"] > 0
    assert accepted["examples"] == 8
    assert accepted["metrics"] == {"train_loss": 2.0}
    assert accepted["seconds"] == 1.5
    assert accepted["bytes_down"] == 100
    assert accepted["attempt"] == 1
    assert rejected["state"] == "rejected"
    assert rejected["error"]["code"] == "training.non_finite"
    assert (pending["state"], pending["digest"], pending["metrics"]) == ("pending", None, {})


def test_every_attempt_at_a_round_shows_who_took_part_in_it(site: Any) -> None:
    experiment_id = site.running(rounds=1, participants={"simulated": 2})
    for attempt in (1, 2):
        for assignment_id in site.open_round(experiment_id, simulated=["a", "b"]):
            if attempt == 1:
                with site.database.begin() as s:
                    leased = assignments.lease(s, assignment_id, 60)
                    assert leased is not None
                    assignments.reject(s, assignment_id, leased.fence, FerretError("training.non_finite", "nan"))
    address = f"/api/v1/experiments/{experiment_id}"
    items = site.admin.get(f"{address}/contributions", params={"round": 1}).json()["items"]
    assert [(item["attempt"], item["participant"], item["state"]) for item in items] == [
        (1, "a", "rejected"),
        (1, "b", "rejected"),
        (2, "a", "pending"),
        (2, "b", "pending"),
    ]
    found = site.admin.get(f"{address}/rounds").json()["items"]
    assert [(item["attempt"], item["state"]) for item in found] == [(1, "abandoned"), (2, "open")]
    assert site.admin.get(f"{address}/rounds/1").json()["attempt"] == 2


def test_contributions_come_in_pages(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/contributions"
    first = site.admin.get(address, params={"limit": 3}).json()
    rest = site.admin.get(address, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [item["round"] for item in first["items"] + rest["items"]] == [1, 2, 3, 3, 3]


def test_metrics_are_series_with_the_bytes_sent_until_then(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/metrics"
    series = {curve["name"]: curve["points"] for curve in site.admin.get(address).json()["series"]}
    assert set(series) == {"train_loss", "bytes_up", "bytes_down"}
    first, second = series["train_loss"]
    assert (first["round"], first["value"]) == (1, 2.0)
    assert second["bytes_up"] == 2 * first["bytes_up"] > 0
    assert second["time"] >= first["time"]
    only = site.admin.get(address, params={"name": "train_loss"}).json()["series"]
    assert [curve["name"] for curve in only] == ["train_loss"]
    assert site.admin.get(address, params={"name": "nothing"}).json()["series"] == []


def test_metrics_are_thinned_out_to_as_many_points_as_asked_for(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/metrics"
    thin = site.admin.get(address, params={"name": "train_loss", "points": 1}).json()
    assert thin["rounds_per_point"] == 2
    (point,) = thin["series"][0]["points"]
    every = site.admin.get(address, params={"name": "train_loss"}).json()
    assert every["rounds_per_point"] == 1
    values = [point["value"] for point in every["series"][0]["points"]]
    assert (point["first"], point["round"], point["count"], point["lost"]) == (1, 2, 2, 0)
    assert (point["least"], point["value"], point["greatest"]) == (min(values), sum(values) / 2, max(values))
    (later,) = site.admin.get(address, params={"name": "train_loss", "from": 2, "to": 2}).json()["series"]
    assert [point["round"] for point in later["points"]] == [2]


@pytest.mark.parametrize(
    ("parameter", "value"), [("points", 0), ("points", 2001), ("from", -1), ("to", "x"), ("point", 3)]
)
def test_what_metrics_cannot_be_asked_for_is_refused(
    site: Any, experiment_id: str, parameter: str, value: object
) -> None:
    answer = site.admin.get(f"/api/v1/experiments/{experiment_id}/metrics", params={parameter: value})
    assert answer.status_code == 422
    assert parameter in answer.text


def test_metrics_are_a_table_where_csv_is_asked_for(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/metrics"
    answer = site.admin.get(address, headers={"Accept": "text/csv, */*;q=0.1"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert list(rows[0]) == ["round", "time", "bytes_up_so_far", "bytes_down", "bytes_up", "train_loss"]
    series = {curve["name"]: curve["points"] for curve in site.admin.get(address).json()["series"]}
    assert [float(row["train_loss"]) for row in rows] == [point["value"] for point in series["train_loss"]]
    assert [int(row["bytes_up_so_far"]) for row in rows] == [point["bytes_up"] for point in series["bytes_up"]]
    assert site.admin.get(address, headers={"Accept": "*/*"}).json()["series"]


@pytest.mark.parametrize(
    "resource",
    [
        "rounds",
        "rounds/1",
        "contributions",
        "rejections",
        "participation",
        "participants/a/rounds",
        "metrics",
        "artifacts",
        "ledger",
        "events",
    ],
)
def test_nothing_is_found_below_an_unknown_experiment(site: Any, resource: str) -> None:
    answer = site.admin.get(f"/api/v1/experiments/exp_nobody/{resource}")
    assert answer.status_code == 404
    assert answer.json()["code"] == "experiment.not_found"
