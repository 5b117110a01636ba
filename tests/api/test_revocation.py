"""An administrator removes a participant, whose next request says so."""

from __future__ import annotations

from typing import Any

import pytest


def test_the_next_request_is_refused_and_says_why(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 2})
    client = site.client(site.enrol(experiment_id, "site-a"))
    site.enrol(experiment_id, "site-b")
    site.open_round(experiment_id, edge=["site-a", "site-b"])
    leased = client.get("/api/v1/participant/assignment").json()["assignment"]

    address = f"/api/v1/experiments/{experiment_id}/participants"
    revoked = site.admin.post(f"{address}/site-a:revoke", json={"reason": "left the study"})
    assert (revoked.status_code, revoked.json()["revocation_reason"]) == (200, "left the study")

    for path in (
        "/api/v1/participant/assignment",
        f"/api/v1/experiments/{experiment_id}",
        f"/api/v1/experiments/{experiment_id}/ledger",
    ):
        refused = client.get(path)
        assert (refused.status_code, refused.json()["code"]) == (403, "participant.revoked")
        assert "left the study" in refused.json()["detail"]
    beat = client.post(f"/api/v1/participant/assignments/{leased['id']}/heartbeat", json={"fence": leased["fence"]})
    assert beat.json()["code"] == "participant.revoked"

    listed = site.admin.get(address).json()["items"]
    assert [(row["name"], row["revoked_at"] is not None) for row in listed] == [("site-a", True), ("site-b", False)]
    again = site.admin.post(f"{address}/site-a:revoke", json={})
    assert again.json() == revoked.json()


def test_pages_of_participants_by_name(site: Any) -> None:
    experiment_id = site.running(participants={"edge": 3})
    for name in ("c", "a", "b"):
        site.enrol(experiment_id, name)
    address = f"/api/v1/experiments/{experiment_id}/participants"
    first = site.admin.get(address, params={"limit": 2}).json()
    second = site.admin.get(address, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [row["name"] for row in first["items"] + second["items"]] == ["a", "b", "c"]
    assert "token_hash" not in first["items"][0]


@pytest.mark.parametrize(("experiment", "name"), [("ours", "nobody"), ("exp_ffffffffffffffff", "site-a")])
def test_unknown_names_and_experiments(site: Any, experiment: str, name: str) -> None:
    ours = site.running(participants={"edge": 1})
    site.enrol(ours, "site-a")
    address = f"/api/v1/experiments/{ours if experiment == 'ours' else experiment}/participants/{name}:revoke"
    answer = site.admin.post(address, json={})
    expected = "participant.not_found" if experiment == "ours" else "experiment.not_found"
    assert (answer.status_code, answer.json()["code"]) == (404, expected)
