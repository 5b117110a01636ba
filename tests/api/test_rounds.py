"""Rounds, contributions and metrics, as the round engine left them."""

from __future__ import annotations

import csv
from typing import Any

import pytest


@pytest.fixture
def experiment_id(site: Any) -> str:
    """Two committed rounds, and a third one open with a delivered, a rejected and a pending assignment."""
    experiment_id = site.running()
    site.committed(experiment_id, 1, metrics={"train_loss": 2.0})
    site.committed(experiment_id, 2, metrics={"train_loss": 1.0})
    done, rejected, _ = site.open_round(experiment_id, simulated=["a", "b", "c"], number=3)
    site.deliver(done)
    site.reject(rejected)
    return experiment_id


def test_rounds_tell_what_became_of_them(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/rounds"
    found = site.admin.get(address, params={"limit": 2}).json()
    rest = site.admin.get(address, params={"limit": 2, "cursor": found["next_cursor"]}).json()
    first, second, third = found["items"] + rest["items"]
    assert rest["next_cursor"] is None
    assert [item["state"] for item in (first, second, third)] == ["committed", "committed", "open"]
    assert second["base_digest"] == first["digest"]
    assert first["metrics"]["train_loss"] == 2.0
    assert first["metrics"]["bytes_up"] == first["bytes_up"] > 0
    assert first["committed_at"] >= first["opened_at"]
    assert (third["participants"], third["accepted"], third["rejected"]) == (3, 1, 1)
    assert (third["attempt"], third["required_contributions"], third["digest"], third["bytes_down"]) == (
        1,
        None,
        None,
        300,
    )
    assert site.admin.get(f"{address}/2").json() == second
    missing = site.admin.get(f"{address}/4")
    assert (missing.status_code, missing.json()["code"]) == (404, "round.not_found")


def test_contributions_show_the_accepted_the_rejected_and_the_pending(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/contributions"
    accepted, rejected, pending = site.admin.get(address, params={"round": 3}).json()["items"]
    figures = {"state": "accepted", "examples": 8, "seconds": 1.5, "bytes_down": 100, "attempt": 1}
    assert figures.items() <= accepted.items()
    assert (accepted["size"] > 0, accepted["metrics"]) == (True, {"train_loss": 2.0})
    assert (rejected["state"], rejected["error"]["code"]) == ("rejected", "training.non_finite")
    assert (pending["state"], pending["digest"], pending["metrics"]) == ("pending", None, {})


def test_metrics_are_thinned_out_to_as_many_points_as_asked_for(site: Any, experiment_id: str) -> None:
    address = f"/api/v1/experiments/{experiment_id}/metrics"
    thin = site.admin.get(address, params={"name": "train_loss", "points": 1}).json()
    (point,) = thin["series"][0]["points"]
    assert (thin["rounds_per_point"], point["first"], point["round"], point["count"]) == (2, 1, 2, 2)
    (later,) = site.admin.get(address, params={"name": "train_loss", "from": 2, "to": 2}).json()["series"]
    assert [point["round"] for point in later["points"]] == [2]
    assert site.admin.get(address, params={"points": 0}).json()["errors"][0]["field"] == "points"


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
