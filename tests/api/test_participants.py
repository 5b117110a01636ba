"""The whole way of a real participant: enrolment, lease, heartbeat, upload, its failure, and its end."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.storage import file
from tests.api.conftest import ASSIGNMENT, Member


@pytest.fixture
def member(site: Any) -> Member:
    return site.member()


def test_a_code_becomes_a_token(site: Any) -> None:
    experiment_id = site.submit(participants={"edge": 2})
    made = site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={"expires_seconds": 60})
    assert made.status_code == 201
    assert made.json()["command"] == "ferret join http://127.0.0.1:80 --data FILE.jsonl"
    code = {"code": made.json()["code"], "display_name": "clinic-7"}
    joined = site.client().post("/api/v1/participants", json=code)
    assert (joined.status_code, joined.json()["experiment"]) == (201, experiment_id)
    asked = site.client(joined.json()["token"]).get(ASSIGNMENT)
    poll = asked.json()
    pause = poll.pop("retry_after_seconds")
    assert 1 <= pause <= 3
    assert asked.headers["retry-after"] == str(math.ceil(pause))
    waiting = {"awaited": "participants", "round": 0, "done": 1, "total": 2}
    assert poll == {"experiment_state": "queued", "assignment": None, "waiting": waiting}


@pytest.mark.parametrize("name", ["مستشفى الأمل", "בית חולים", "協和醫院 🏥", "é" * 200])
def test_a_name_in_any_script_leads_to_an_id(either_site: Any, name: str) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 1})
    code = site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={}).json()["code"]
    decomposed = unicodedata.normalize("NFD", name)
    joined = site.client().post("/api/v1/participants", json={"code": code, "display_name": decomposed}).json()
    assert joined["display_name"] == name
    assert re.fullmatch("[a-z0-9-]{1,64}", joined["name"])

    site.open_round(experiment_id, edge=[joined["name"]])
    address = f"/api/v1/experiments/{experiment_id}"
    (listed,) = site.admin.get(f"{address}/participants").json()["items"]
    (contribution,) = site.admin.get(f"{address}/contributions").json()["items"]
    (used,) = site.admin.get(f"{address}/enrolments").json()["items"]
    assert (listed["name"], listed["display_name"]) == (joined["name"], name)
    assert (contribution["participant"], contribution["display_name"]) == (joined["name"], name)
    assert used["used_by"] == name
    revoked = site.admin.post(f"{address}/participants/{joined['name']}:revoke", json={})
    assert revoked.json()["display_name"] == name
    refused = site.client(joined["token"]).get(ASSIGNMENT)
    assert refused.json()["detail"].startswith(f"{name} was removed")


def test_the_whole_way_of_a_contribution(member: Member) -> None:
    lease = member.lease
    assert (lease["lease_seconds"], lease["task"]["participant"]) == (60, "site-a")
    beat = member.client.post(f"{member.address}/heartbeat", json={"fence": lease["fence"]})
    assert beat.json()["lease_until"] > lease["lease_until"]
    stale = member.client.post(f"{member.address}/heartbeat", json={"fence": lease["fence"] - 1})
    assert stale.json()["code"] == "lease.lost"

    blob = member.blob()
    answer = member.upload(blob)
    assert answer.status_code == 201
    assert answer.json() == {"digest": digest_bytes(blob), "size": len(blob), "round": 1, "accepted": True}
    # Even under a wrong fence: the participant may have lost the answer, and then its memory.
    again = member.upload(blob, **{"Ferret-Fence": str(lease["fence"] + 7)})
    assert (again.status_code, again.json()) == (200, answer.json())
    shown = member.shown()
    assert (shown["state"], shown["seconds"], shown["kind"]) == ("accepted", 2.5, "edge")
    assert member.client.get(ASSIGNMENT).json()["assignment"] is None


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"algorithm": "ferret"}, "contribution.malformed", "metadata.algorithm"),
        ({"seed": 7}, "contribution.malformed", "metadata.seed"),
        ({"metrics": {"eval_loss": 0.0}}, "contribution.malformed", "metadata.metrics.eval_loss"),
        ({"size": 11}, "contribution.malformed", "update"),
        ({"value": math.nan}, "contribution.non_finite", "update"),
    ],
)
def test_the_third_that_cannot_be_used_rejects_the_assignment_with_the_reason(
    member: Member, changes: dict[str, Any], code: str, field: str
) -> None:
    for _ in range(2):
        member.upload(member.blob(**changes))
        assert member.shown()["state"] == "leased", "another one may be sent"
    answer = member.upload(member.blob(**changes))
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer.json()["errors"][0]["field"].startswith(field)
    rejected = member.shown()
    assert (rejected["state"], rejected["error"]["detail"]) == ("rejected", answer.json()["detail"])
    assert not list((member.site.context.settings.home / "storage").rglob("*"))


def test_a_full_disk_keeps_the_lease_so_that_the_upload_can_be_repeated(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(file, "RESERVE_BYTES", 1 << 60)
        answer = member.upload(member.blob())
    assert (answer.status_code, answer.json()["code"]) == (507, "storage.full")
    assert member.shown()["state"] == "leased"
    assert member.upload(member.blob()).status_code == 201


def test_a_participant_gives_up_with_a_reason(member: Member) -> None:
    """Which is kept without what a terminal or a page obeys."""
    detail = "\x1b]0;owned\x07Aßlar\u202e\n\u2066می\u200cخواهم"
    report = {"fence": member.lease["fence"], "code": "dataset.invalid", "detail": detail}
    address = f"{member.address}/failure"
    for wrong in ({"code": "bad.mood"}, {"detail": "\x1b\u202e"}):
        assert member.client.post(address, json=report | wrong).status_code == 422
    assert member.client.post(address, json=report | {"fence": 99}).json()["code"] == "lease.lost"
    assert member.client.post(address, json=report).status_code == 204
    rejected = member.shown()
    assert (rejected["state"], rejected["error"]["code"]) == ("rejected", "dataset.invalid")
    assert rejected["error"]["detail"] == "]0;ownedAßlar\nمی\u200cخواهم"


def test_anothers_assignment_is_as_unknown_as_none(member: Member) -> None:
    """Be it of the same experiment or of another one; and nobody fills another's record."""
    site = member.site
    for experiment_id in (member.experiment_id, site.running(participants={"edge": 1})):
        stranger = member._replace(client=site.client(site.enrol(experiment_id, "site-c")))
        fence = {"fence": member.lease["fence"]}
        for answer in (
            stranger.upload(member.blob()),
            stranger.client.post(f"{member.address}/heartbeat", json=fence),
            stranger.client.post(f"{member.address}/failure", json=fence | {"code": "internal", "detail": "sabotage"}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (404, "assignment.not_found")
    assert member.rejections() == []
    assert member.upload(member.blob()).status_code == 201


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Content-Type", "application/json"),
        ("Ferret-Fence", "first"),
        ("Ferret-Seconds", "nan"),
        ("Ferret-Seconds", "-1"),
        ("Ferret-Seconds", "1e300"),
    ],
)
def test_wrong_headers_are_named_and_cost_nothing(member: Member, header: str, value: str) -> None:
    answer = member.upload(member.blob(), **{header: value})
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
    assert answer.json()["errors"][0]["field"] == header
    assert member.shown()["state"] == "leased"


def test_who_is_revoked_is_told_why_whatever_it_asks(either_site: Any) -> None:
    member = either_site.member()
    experiment = f"/api/v1/experiments/{member.experiment_id}"
    revoke = f"{experiment}/participants/site-a:revoke"
    revoked = either_site.admin.post(revoke, json={"reason": "left the study"})
    assert (revoked.status_code, revoked.json()["revocation_reason"]) == (200, "left the study")
    for path in (ASSIGNMENT, experiment, f"{experiment}/ledger"):
        refused = member.client.get(path)
        assert (refused.status_code, refused.json()["code"]) == (403, "participant.revoked")
        assert "left the study" in refused.json()["detail"]
    assert either_site.admin.post(revoke, json={}).json() == revoked.json()
    unknown = either_site.admin.post(revoke.replace("site-a", "nobody"), json={})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "participant.not_found")


def test_pages_of_participants_by_name(site: Any) -> None:
    experiment_id = site.running(participants={"edge": 3})
    for name in ("c", "a", "b"):
        site.enrol(experiment_id, name)
    address = f"/api/v1/experiments/{experiment_id}/participants"
    first = site.admin.get(address, params={"limit": 2}).json()
    second = site.admin.get(address, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [row["name"] for row in first["items"] + second["items"]] == ["a", "b", "c"]
    assert "token_hash" not in first["items"][0]
