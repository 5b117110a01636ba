"""Codes: who may join, with which, how often, and what is seen of it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytestmark = pytest.mark.heavy


def make(site: Any, experiment_id: str) -> Any:
    return site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={}).json()


def join(site: Any, code: str, name: str) -> Any:
    return site.client().post("/api/v1/participants", json={"code": code, "display_name": name})


def listed(site: Any, experiment_id: str) -> list[dict[str, Any]]:
    return site.admin.get(f"/api/v1/experiments/{experiment_id}/enrolments").json()["items"]


def test_one_code_used_twice_at_once_is_refused_and_both_sides_are_told(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 3})
    code = make(site, experiment_id)
    together = threading.Barrier(2)

    def at_once(name: str) -> Any:
        together.wait()
        return join(site, code["code"], name)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(at_once, ["site-a", "site-b"]))
    joined, refused = sorted(answers, key=lambda answer: answer.status_code)
    assert (joined.status_code, refused.status_code, refused.json()["code"]) == (201, 403, "enrolment.used")
    assert f"under the name {joined.json()['name']}" in refused.json()["detail"]

    (shown,) = listed(site, experiment_id)
    assert (shown["id"], shown["used_by"], shown["refused"]) == (code["id"], joined.json()["name"], 1)
    entries = site.admin.get("/api/v1/audit", params={"subject": code["id"]}).json()["items"]
    assert [entry["action"] for entry in entries] == ["enrolment.refused", "enrolment.created"]
    assert entries[0]["actor"] == "nobody"


def test_a_code_is_shown_once_and_kept_nowhere(site: Any) -> None:
    experiment_id = site.running(participants={"edge": 1})
    code = make(site, experiment_id)
    assert code["code"] not in code["command"]
    assert "code" not in listed(site, experiment_id)[0]
    assert code["code"].encode() not in (site.context.settings.home / "ferret.db").read_bytes()
    assert code["code"] not in site.admin.get("/api/v1/audit").text


def test_a_revoked_code_is_of_no_use(site: Any) -> None:
    experiment_id = site.running(participants={"edge": 2})
    unused, used = make(site, experiment_id), make(site, experiment_id)
    join(site, used["code"], "site-a")
    address = f"/api/v1/experiments/{experiment_id}/enrolments"
    for _ in range(2):
        revoked = site.admin.post(f"{address}/{unused['id']}:revoke")
        assert (revoked.status_code, revoked.json()["revoked_at"] is None) == (200, False)
    assert join(site, unused["code"], "site-b").json()["code"] == "enrolment.invalid"
    assert site.admin.post(f"{address}/{used['id']}:revoke").json()["revoked_at"] is None
    assert site.admin.post(f"{address}/enr_0/:revoke").status_code == 404
    other = site.running(participants={"edge": 1})
    foreign = site.admin.post(f"/api/v1/experiments/{other}/enrolments/{unused['id']}:revoke")
    assert (foreign.status_code, foreign.json()["code"]) == (404, "enrolment.not_found")
    assert [row["id"] for row in listed(site, experiment_id)] == [used["id"], unused["id"]]


def test_outsiders_never_change_what_the_specification_says(either_site: Any) -> None:
    site = either_site
    nobody = site.running(participants={"simulated": 2})
    refused = site.admin.post(f"/api/v1/experiments/{nobody}/enrolments", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "experiment.conflict")
    assert "participants.edge = 0" in refused.json()["detail"]

    one = site.running(participants={"edge": 1})
    first, second = make(site, one), make(site, one)
    assert join(site, first["code"], "site-a").status_code == 201
    full = join(site, second["code"], "site-b")
    assert (full.status_code, full.json()["code"]) == (409, "experiment.conflict")
    names = site.admin.get(f"/api/v1/experiments/{one}/participants").json()["items"]
    assert [row["name"] for row in names] == ["site-a"]
    site.admin.post(f"/api/v1/experiments/{one}/participants/site-a:revoke", json={})
    assert join(site, second["code"], "site-b").status_code == 201, "the code stayed good"
