"""A pending participant may ask whether it still is, and nothing else; a decision reaches it at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from ferret_db.engine import membership
from tests.api.conftest import ASSIGNMENT, bearer
from tests.api.receiver import eventually


def make(site: Any, experiment_id: str) -> str:
    made = site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={"approval": True})
    assert made.json()["approval"] is True
    return made.json()["code"]


def join(site: Any, experiment_id: str, name: str) -> str:
    asked = {"code": make(site, experiment_id), "display_name": name}
    return site.client().post("/api/v1/participants", json=asked).json()["token"]


def decide(site: Any, experiment_id: str, name: str, verb: str, **body: Any) -> Any:
    return site.admin.post(f"/api/v1/experiments/{experiment_id}/participants/{name}:{verb}", json=body)


def test_a_pending_participant_can_only_ask_for_its_approval(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 2})
    client = site.client(join(site, experiment_id, "site-a"))
    poll = client.get(ASSIGNMENT).json()
    assert (poll["assignment"], poll["waiting"]) == (None, {"awaited": "approval", "round": 0, "done": 0, "total": 0})
    address = f"/api/v1/experiments/{experiment_id}"
    for path in ("", "/ledger", "/updates/1", "/artifacts", "/artifacts/art_1"):
        refused = client.get(f"{address}{path}")
        assert (refused.status_code, refused.json()["code"]) == (403, "participant.pending")
    beat = client.post("/api/v1/participant/assignments/asg_1/heartbeat", json={"fence": 1})
    assert (beat.status_code, beat.json()["code"]) == (403, "participant.pending")

    assert site.admin.get(f"{address}/participants").json()["items"][0]["state"] == "pending"
    approved = decide(site, experiment_id, "site-a", "approve")
    assert (approved.status_code, approved.json()["state"]) == (200, "active")
    assert client.get(address).status_code == 200
    assert client.get(ASSIGNMENT).json()["waiting"]["awaited"] == "participants"
    actions = [entry["action"] for entry in site.audit(order="newest", limit=2)]
    assert actions == ["participant.approved", "participant.enrolled"]


def test_a_refused_participant_is_told_why_and_leaves_its_place(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 1})
    client = site.client(join(site, experiment_id, "site-a"))
    late = {"code": make(site, experiment_id), "display_name": "site-b"}
    full = site.client().post("/api/v1/participants", json=late)
    assert (full.status_code, full.json()["code"]) == (409, "experiment.conflict")
    refused = decide(site, experiment_id, "site-a", "refuse", reason="no contract")
    assert (refused.json()["state"], refused.json()["revocation_reason"]) == ("refused", "no contract")
    told = client.get(ASSIGNMENT)
    assert (told.status_code, told.json()["code"]) == (403, "participant.refused")
    assert "no contract" in told.json()["detail"]
    assert site.client().post("/api/v1/participants", json=late).status_code == 201


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("verb", ["approve", "refuse"])
def test_a_held_question_is_answered_by_the_decision(live: Any, verb: str, elsewhere: bool) -> None:
    experiment_id = live.site.running(participants={"edge": 2})
    token = join(live.site, experiment_id, "site-a")
    with (
        httpx.Client(base_url=live.url, headers=bearer(token), timeout=30) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        tag = client.get(ASSIGNMENT).headers["etag"]
        held = pool.submit(client.get, ASSIGNMENT, headers={"Prefer": "wait=20", "If-None-Match": tag})
        eventually(lambda: live.app.state.long_poll_groups.held or held.done())
        if elsewhere:  # another process of the service, whose events are all that this one hears of
            with live.site.database.begin() as s:
                getattr(membership, verb)(s, "admin", experiment_id, "site-a")
        else:
            decide(live.site, experiment_id, "site-a", verb).raise_for_status()
        answer = held.result(10)
        if verb == "refuse":
            assert (answer.status_code, answer.json()["code"]) == (403, "participant.refused")
            return
        assert answer.json()["waiting"]["awaited"] == "participants"
        again = client.get(ASSIGNMENT, headers={"Prefer": "wait=1", "If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
        live.site.enrol(experiment_id, "site-b")
        live.site.open_round(experiment_id, edge=["site-a", "site-b"])
        assert client.get(ASSIGNMENT).json()["assignment"] is not None


def test_others_news_leave_a_pending_participant_waiting_for_approval(live: Any) -> None:
    experiment_id = live.site.running(participants={"edge": 3})
    token = join(live.site, experiment_id, "site-a")
    join(live.site, experiment_id, "site-b")
    with httpx.Client(base_url=live.url, headers=bearer(token), timeout=30) as client:
        tag = client.get(ASSIGNMENT).headers["etag"]
        decide(live.site, experiment_id, "site-b", "approve").raise_for_status()
        live.site.enrol(experiment_id, "site-c")
        for _ in range(3):
            answer = client.get(ASSIGNMENT, headers={"Prefer": "wait=1", "If-None-Match": tag})
            tag = answer.headers["etag"]
            assert answer.status_code == 304 or answer.json()["waiting"]["awaited"] == "approval"
        live.site.move(experiment_id, "cancel")
        answer = client.get(ASSIGNMENT, headers={"Prefer": "wait=10", "If-None-Match": tag})
        assert (answer.json()["experiment_state"], answer.json()["waiting"]) == ("cancelled", None)
