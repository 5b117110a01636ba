"""The whole way of a real participant: enrolment, lease, heartbeat, upload, and everything that is refused."""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from ferret_core.protocol.digest import digest_bytes
from ferret_core.storage import file
from ferret_db.tables import Assignment

BLOB = "application/octet-stream"


class Member(NamedTuple):
    """A participant with an open round ahead, its assignment in it, and the other participant's."""

    client: TestClient
    experiment_id: str
    assignment_id: str
    other_id: str
    make: Callable[..., bytes]


@pytest.fixture
def member(site: Any, make_blob: Callable[..., bytes]) -> Member:
    experiment_id = site.running(participants={"edge": 2})
    client = site.client(site.enrol(experiment_id, "site-a"))
    site.enrol(experiment_id, "site-b")
    first, second = site.open_round(experiment_id, edge=["site-a", "site-b"])
    return Member(client, experiment_id, first, second, make_blob)


def lease(member: Member) -> dict[str, Any]:
    return member.client.get("/api/v1/participant/assignment").json()["assignment"]


def upload(member: Member, blob: bytes, fence: int, **headers: str) -> Any:
    return member.client.put(
        f"/api/v1/participant/assignments/{member.assignment_id}/contribution",
        content=blob,
        headers={"Content-Type": BLOB, "Ferret-Fence": str(fence), "Ferret-Seconds": "2.5", **headers},
    )


def shown(site: Any, member: Member) -> dict[str, Any]:
    address = f"/api/v1/experiments/{member.experiment_id}/contributions"
    return site.admin.get(address).json()["items"][0]


def test_a_code_becomes_a_token_once(site: Any) -> None:
    experiment_id = site.submit(participants={"edge": 2})
    made = site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={"expires_seconds": 60})
    assert made.status_code == 201
    code = made.json()["code"]
    assert made.json()["command"] == "ferret join http://127.0.0.1:80 --data FILE.jsonl"
    joined = site.client().post("/api/v1/participants", json={"code": code, "display_name": "clinic-7"})
    assert joined.status_code == 201
    assert joined.json()["experiment"] == experiment_id
    asked = site.client(joined.json()["token"]).get("/api/v1/participant/assignment")
    poll = asked.json()
    pause = poll.pop("retry_after_seconds")
    assert 1 <= pause <= 3
    assert asked.headers["retry-after"] == str(math.ceil(pause))
    waiting = {"awaited": "participants", "round": 0, "done": 1, "total": 2}
    assert poll == {"experiment_state": "queued", "assignment": None, "waiting": waiting}
    again = site.client().post("/api/v1/participants", json={"code": code, "display_name": "clinic-8"})
    assert (again.status_code, again.json()["code"]) == (403, "enrolment.used")


def test_an_expired_code_is_refused(site: Any) -> None:
    experiment_id = site.submit(participants={"edge": 2})
    code = site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={"expires_seconds": 1}).json()[
        "code"
    ]
    time.sleep(1.1)
    answer = site.client().post("/api/v1/participants", json={"code": code, "display_name": "late"})
    assert answer.json()["code"] == "enrolment.invalid"


def test_a_taken_name_leaves_the_code_good(site: Any) -> None:
    experiment_id = site.submit(participants={"edge": 2})
    site.enrol(experiment_id, "clinic-7")
    code = site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={}).json()["code"]
    taken = site.client().post("/api/v1/participants", json={"code": code, "display_name": "clinic-7"})
    assert (taken.status_code, taken.json()["errors"][0]["field"]) == (422, "display_name")
    assert (
        site.client().post("/api/v1/participants", json={"code": code, "display_name": "clinic-8"}).status_code == 201
    )


@pytest.mark.parametrize("name", ["", " ", "x" * 201, "nul\x00", "two\nlines", "\u202eniffek", "\u2067x\u2069"])
def test_a_name_that_would_make_trouble_is_refused(site: Any, name: str) -> None:
    answer = site.client().post("/api/v1/participants", json={"code": "c", "display_name": name})
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
    assert answer.json()["errors"][0]["field"] == "display_name"


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
    refused = site.client(joined["token"]).get("/api/v1/participant/assignment")
    assert refused.json()["detail"].startswith(f"{name} was removed")


def test_the_whole_way_of_a_contribution(site: Any, member: Member) -> None:
    leased = lease(member)
    assert leased["id"] == member.assignment_id
    assert leased["lease_seconds"] == 60
    assert leased["task"]["participant"] == "site-a"
    beat = member.client.post(
        f"/api/v1/participant/assignments/{leased['id']}/heartbeat", json={"fence": leased["fence"]}
    )
    assert beat.json()["lease_until"] > leased["lease_until"]

    blob = member.make(leased)
    answer = upload(member, blob, leased["fence"])
    assert answer.status_code == 201
    assert answer.json() == {"digest": digest_bytes(blob), "size": len(blob), "round": 1, "accepted": True}
    stored = shown(site, member)
    assert stored["state"] == "accepted"
    assert stored["seconds"] == 2.5
    assert stored["kind"] == "edge"
    assert lease(member) is None


def test_the_same_blob_again_gets_the_same_answer(member: Member) -> None:
    leased = lease(member)
    blob = member.make(leased)
    first = upload(member, blob, leased["fence"])
    # Even under a wrong fence: the participant may have lost the answer, and then its memory.
    for fence in (leased["fence"], leased["fence"] + 7):
        again = upload(member, blob, fence)
        assert again.status_code == 200
        assert again.json() == first.json()


def test_another_blob_after_the_accepted_one_is_refused_and_changes_nothing(site: Any, member: Member) -> None:
    leased = lease(member)
    accepted = upload(member, member.make(leased), leased["fence"]).json()
    other = upload(member, member.make(leased, value=0.25), leased["fence"])
    assert (other.status_code, other.json()["code"]) == (409, "contribution.duplicate")
    broken = upload(member, b"broken", leased["fence"])
    assert broken.status_code in {409, 422}
    assert shown(site, member)["state"] == "accepted"
    assert shown(site, member)["digest"] == accepted["digest"]


def test_a_wrong_fence_is_refused_and_leaves_the_lease(site: Any, member: Member) -> None:
    leased = lease(member)
    for blob in (member.make(leased), b"broken"):
        answer = upload(member, blob, leased["fence"] + 1)
        assert (answer.status_code, answer.json()["code"]) == (409, "lease.lost")
    beat = member.client.post(
        f"/api/v1/participant/assignments/{leased['id']}/heartbeat", json={"fence": leased["fence"] - 1}
    )
    assert beat.json()["code"] == "lease.lost"
    assert shown(site, member)["state"] == "leased"
    assert upload(member, member.make(leased), leased["fence"]).status_code == 201


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"participant": "site-b"}, "metadata.participant"),
        ({"round": 2}, "metadata.round"),
        ({"experiment": "exp_ffffffffffffffff"}, "metadata.experiment"),
        ({"algorithm": "ferret"}, "metadata.algorithm"),
        ({"seed": 7}, "metadata.seed"),
        ({"metrics": {"eval_loss": 0.0}}, "metadata.metrics.eval_loss"),
        ({"size": 11}, "update"),
    ],
)
def test_a_contribution_that_cannot_be_used_rejects_the_assignment_with_the_reason(
    site: Any, member: Member, changes: dict[str, Any], field: str
) -> None:
    leased = lease(member)
    check_rejected(site, member, thrice(site, member, member.make(leased, **changes), leased["fence"]), field)


@pytest.mark.parametrize(("spoil", "field"), [(lambda blob: blob[:-3], "update"), (lambda blob: blob + b"x", "body")])
def test_a_damaged_contribution_rejects_the_assignment_with_the_reason(
    site: Any, member: Member, spoil: Any, field: str
) -> None:
    leased = lease(member)
    check_rejected(site, member, thrice(site, member, spoil(member.make(leased)), leased["fence"]), field)


def thrice(site: Any, member: Member, blob: bytes, fence: int) -> Any:
    """Twice the participant may send another one."""
    for _ in range(2):
        upload(member, blob, fence)
        assert shown(site, member)["state"] == "leased"
    return upload(member, blob, fence)


def test_an_upload_that_was_cut_off_is_sent_again(site: Any, member: Member) -> None:
    leased = lease(member)
    assert upload(member, member.make(leased)[:-3], leased["fence"]).status_code == 422
    assert upload(member, member.make(leased), leased["fence"]).status_code == 201


def check_rejected(site: Any, member: Member, answer: Any, field: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (422, "contribution.malformed")
    assert answer.json()["errors"][0]["field"].startswith(field)
    rejected = shown(site, member)
    assert rejected["state"] == "rejected"
    assert rejected["error"]["detail"] == answer.json()["detail"]
    assert not list((site.context.settings.home / "storage").rglob("*"))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_contribution_that_is_no_number_rejects_the_assignment(site: Any, member: Member, value: float) -> None:
    leased = lease(member)
    answer = thrice(site, member, member.make(leased, value=value), leased["fence"])
    assert (answer.status_code, answer.json()["code"]) == (422, "contribution.non_finite")
    assert shown(site, member)["state"] == "rejected"


def test_a_contribution_to_another_model_asks_to_catch_up_and_keeps_the_lease(site: Any, member: Member) -> None:
    leased = lease(member)
    answer = upload(member, member.make(leased, base_digest="cd" * 32), leased["fence"])
    assert (answer.status_code, answer.json()["code"]) == (409, "contribution.wrong_base")
    assert shown(site, member)["state"] == "leased"


def test_a_full_disk_keeps_the_lease_so_that_the_upload_can_be_repeated(
    site: Any, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    leased = lease(member)
    with monkeypatch.context() as full:
        full.setattr(file, "RESERVE_BYTES", 1 << 60)
        answer = upload(member, member.make(leased), leased["fence"])
    assert (answer.status_code, answer.json()["code"]) == (507, "storage.full")
    assert shown(site, member)["state"] == "leased"
    assert upload(member, member.make(leased), leased["fence"]).status_code == 201


def test_a_late_contribution_finds_the_round_closed(site: Any, member: Member) -> None:
    leased = lease(member)
    site.admin.post(f"/api/v1/experiments/{member.experiment_id}:cancel")
    answer = upload(member, member.make(leased), leased["fence"])
    assert (answer.status_code, answer.json()["code"]) == (410, "round.closed")
    poll = member.client.get("/api/v1/participant/assignment").json()
    assert (poll["experiment_state"], poll["assignment"]) == ("cancelled", None)


def test_a_leased_assignment_is_not_handed_out_twice_until_its_lease_ran_out(site: Any, member: Member) -> None:
    first = lease(member)
    assert lease(member) is None
    site.expire(Assignment, "lease_until", member.assignment_id)
    second = lease(member)
    assert second["id"] == first["id"]
    assert second["fence"] > first["fence"]
    assert upload(member, member.make(first), first["fence"]).json()["code"] == "lease.lost"


def test_a_participant_gives_up_with_a_reason(site: Any, member: Member) -> None:
    leased = lease(member)
    address = f"/api/v1/participant/assignments/{leased['id']}/failure"
    report = {"fence": leased["fence"], "code": "dataset.invalid", "detail": "line 3 of data.jsonl is cut off"}
    assert member.client.post(address, json=report | {"code": "bad.mood"}).status_code == 422
    assert member.client.post(address, json=report | {"fence": 99}).json()["code"] == "lease.lost"
    assert member.client.post(address, json=report).status_code == 204
    rejected = shown(site, member)
    assert rejected["state"] == "rejected"
    assert rejected["error"]["code"] == "dataset.invalid"
    assert rejected["error"]["detail"] == "line 3 of data.jsonl is cut off"


def test_a_reason_is_kept_without_what_a_terminal_or_a_page_obeys(site: Any, member: Member) -> None:
    leased = lease(member)
    report = {
        "fence": leased["fence"],
        "code": "internal",
        "detail": "\x1b]0;owned\x07Aßlar\u202e\n\u2066می\u200cخواهم",
    }
    address = f"/api/v1/participant/assignments/{leased['id']}/failure"
    assert member.client.post(address, json=report | {"detail": "\x1b\u202e"}).status_code == 422
    assert member.client.post(address, json=report).status_code == 204
    assert shown(site, member)["error"]["detail"] == "]0;ownedAßlar\nمی\u200cخواهم"


def test_another_participants_assignment_is_as_unknown_as_none(site: Any, member: Member) -> None:
    leased = lease(member)
    stranger = member._replace(client=site.client(site.enrol(member.experiment_id, "site-c")))
    address = f"/api/v1/participant/assignments/{member.assignment_id}"
    for answer in (
        upload(stranger, member.make(leased), leased["fence"]),
        stranger.client.post(f"{address}/heartbeat", json={"fence": leased["fence"]}),
        stranger.client.post(
            f"{address}/failure", json={"fence": leased["fence"], "code": "internal", "detail": "sabotage"}
        ),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "assignment.not_found")
    assert upload(member, member.make(leased), leased["fence"]).status_code == 201


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"Content-Type": "application/json"}, "Content-Type"),
        ({"Ferret-Fence": "first"}, "Ferret-Fence"),
        ({"Ferret-Seconds": "nan"}, "Ferret-Seconds"),
        ({"Ferret-Seconds": "-1"}, "Ferret-Seconds"),
        ({"Ferret-Seconds": "1e300"}, "Ferret-Seconds"),
    ],
)
def test_wrong_headers_are_named_and_cost_nothing(
    site: Any, member: Member, headers: dict[str, str], field: str
) -> None:
    leased = lease(member)
    answer = upload(member, member.make(leased), leased["fence"], **headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
    assert answer.json()["errors"][0]["field"] == field
    assert shown(site, member)["state"] == "leased"


def test_the_last_contribution_freezes_the_round(site: Any, member: Member) -> None:
    address = f"/api/v1/experiments/{member.experiment_id}/rounds/1"
    leased = lease(member)
    upload(member, member.make(leased), leased["fence"])
    round_ = site.admin.get(address).json()
    assert (round_["state"], round_["accepted"]) == ("open", 1)
    site.deliver(member.other_id)
    round_ = site.admin.get(address).json()
    assert (round_["state"], round_["accepted"]) == ("frozen", 2)
