"""Codes: who may join, with which, how often, and what is seen of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_api.settings import ApiSettings
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.signatures import new_key, public_key
from ferret_db.tables import Enrolment
from tests.api.conftest import make_home, open_site

ANOTHER = "another-servers-admin-token"


def make(site: Any, experiment_id: str, **wanted: Any) -> Any:
    return site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json=wanted).json()


def join(site: Any, code: str, name: str) -> Any:
    return site.client().post("/api/v1/participants", json={"code": code, "display_name": name})


def listed(site: Any, experiment_id: str, what: str = "enrolments", **query: str) -> list[dict[str, Any]]:
    return site.admin.get(f"/api/v1/experiments/{experiment_id}/{what}", params=query).json()["items"]


def test_both_sides_are_told_of_a_code_that_is_used_twice(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 3})
    code = make(site, experiment_id)
    joined, refused = (join(site, code["code"], name) for name in ("site-a", "site-b"))
    assert (joined.status_code, refused.status_code, refused.json()["code"]) == (201, 403, "enrolment.used")
    assert "site-a" in refused.json()["detail"]
    (shown,) = listed(site, experiment_id)
    assert (shown["id"], shown["used_by"], shown["refused"]) == (code["id"], "site-a", 1)
    entries = site.audit(subject=code["id"])
    assert [entry["action"] for entry in entries] == ["enrolment.created", "enrolment.refused"]
    assert entries[1]["actor"] == "nobody"


def test_an_exchange_whose_answer_was_lost_is_repeated_by_the_holder_of_its_key_alone(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 1})
    code = make(site, experiment_id)["code"]
    keys = [new_key() for _ in range(2)]

    def exchange(key: str | None, signing: str = keys[0]) -> Any:
        asked = {"code": code, "display_name": "site-a", "public_key": public_key(signing)}
        headers = {} if key is None else {"Idempotency-Key": key}
        return site.client().post("/api/v1/participants", json=asked, headers=headers)

    lost, again = (exchange("k" * 32).json() for _ in range(2))
    assert again == lost | {"token": again["token"]}
    statuses = [site.client(each["token"]).get("/api/v1/participant/assignment").status_code for each in (lost, again)]
    assert (statuses[0], statuses[1] < 300) == (401, True)
    for other in (None, "o" * 32):
        assert exchange(other).json()["code"] == "enrolment.used"
    conflict = exchange("k" * 32, keys[1])
    assert (conflict.status_code, conflict.json()["code"]) == (422, "idempotency.conflict")
    assert len(listed(site, experiment_id, "participants")) == 1


def inspect(site: Any, code: str) -> Any:
    return site.client().post("/api/v1/enrolments:inspect", json={"code": code})


def test_a_code_is_inspected_without_being_used(site: Any) -> None:
    experiment_id = site.running(participants={"edge": 1})
    code = make(site, experiment_id, approval=True)
    for _ in range(2):
        found = inspect(site, code["code"])
        assert (found.status_code, found.json()["experiment"], found.json()["approval"]) == (200, experiment_id, True)
    assert found.json()["spec"]["participants"]["edge"] == 1
    (shown,) = listed(site, experiment_id)
    assert (shown["used_at"], shown["refused"]) == (None, 0)
    actions = ["enrolment.created", "enrolment.inspected", "enrolment.inspected"]
    assert [entry["action"] for entry in site.audit(subject=code["id"])] == actions
    assert join(site, code["code"], "site-a").status_code == 201


def test_inspecting_a_wrong_code_is_refused_and_counted_as_joining_is(
    make_settings: Callable[..., ApiSettings], tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> None:
    home = make_home(tmp_path_factory.mktemp("few"), migrated)
    with open_site(make_settings(home=home, failures_per_minute=4)) as site:
        experiment_id = site.running(participants={"edge": 2})
        used, gone = (make(site, experiment_id) for _ in range(2))
        join(site, used["code"], "site-a")
        site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments/{gone['id']}:revoke")
        unknown = used["code"].split(".")[0] + "." + "x" * 43
        answers = {used["code"]: "enrolment.used", gone["code"]: "enrolment.invalid", unknown: "enrolment.invalid"}
        for code, refusal in answers.items():
            refused = inspect(site, code)
            assert (refused.status_code, refused.json()["code"]) == (403, refusal)
        assert {each["id"]: each["refused"] for each in listed(site, experiment_id)} == {used["id"]: 1, gone["id"]: 0}
        assert inspect(site, unknown).status_code == 403
        assert inspect(site, unknown).status_code == 429


def test_a_code_is_shown_once_and_kept_nowhere(site: Any) -> None:
    experiment_id = site.running(participants={"edge": 1})
    code = make(site, experiment_id)
    assert code["code"] not in code["command"]
    assert "code" not in listed(site, experiment_id)[0]
    issuer, secret = code["code"].split(".")
    assert issuer == site.admin.get("/api/v1/info").json()["instance"][:4]
    assert len(secret) == 43, "256 bits, as without the issuer"
    assert secret.encode() not in (site.context.settings.home / "ferret.db").read_bytes()
    assert secret not in site.admin.get("/api/v1/audit").text
    with site.database.read() as s:
        assert s.get_one(Enrolment, code["id"]).code_hash == digest_bytes(secret.encode())


def test_a_code_of_another_server_is_told_so_and_stays_good_there(
    site: Any, make_settings: Callable[..., ApiSettings], tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> None:
    experiment_id = site.running(participants={"edge": 1})
    code = make(site, experiment_id)["code"]
    home = make_home(tmp_path_factory.mktemp("other"), migrated)
    with open_site(make_settings(home=home, admin_token=ANOTHER, failures_per_minute=3)) as elsewhere:
        for _ in range(3):
            refused = join(elsewhere, code, "clinic")
            assert (refused.status_code, refused.json()["code"]) == (403, "enrolment.other_server")
        ours, theirs = site.context.admin.fingerprint, elsewhere.context.admin.fingerprint
        assert f"(instance {ours[:4]}…)" in refused.json()["detail"]
        for secret in (ours, code.split(".")[1], theirs[:4]):
            assert secret not in refused.text
        assert join(elsewhere, code, "clinic").status_code == 429, "wrong codes are counted, of whichever server"
    for wrong in (code.split(".")[1], f"{ours[:4]}.{'x' * 43}"):
        assert join(site, wrong, "clinic").json()["code"] == "enrolment.invalid"
    assert join(site, code, "clinic").status_code == 201


def test_a_code_outlives_the_admin_token_under_which_it_was_made(
    site: Any, make_settings: Callable[..., ApiSettings]
) -> None:
    experiment_id = site.running(participants={"edge": 2})
    code, revoked = make(site, experiment_id), make(site, experiment_id)
    site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments/{revoked['id']}:revoke").raise_for_status()
    with open_site(make_settings(admin_token=ANOTHER)) as renewed:
        assert renewed.context.admin.fingerprint[:4] != code["code"][:4]
        assert join(renewed, code["code"], "clinic").status_code == 201
        assert join(renewed, code["code"], "clinic").json()["code"] == "enrolment.used"
        assert join(renewed, revoked["code"], "clinic").json()["code"] == "enrolment.invalid"


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


def test_a_group_of_codes_is_listed_and_revoked_as_one(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running(participants={"edge": 5})
    north = [make(site, experiment_id, group="קבוצת הצפון") for _ in range(3)]
    south = make(site, experiment_id, group="South", expires_seconds=1)
    alone = make(site, experiment_id)
    assert (south["group"], alone["group"]) == ("South", None)
    assert len({code["code"] for code in north}) == 3
    assert {row["id"] for row in listed(site, experiment_id, group="קבוצת הצפון")} == {code["id"] for code in north}
    token = join(site, north[0]["code"], "clinic-1").json()["token"]
    join(site, north[1]["code"], "clinic-2")
    join(site, alone["code"], "clinic-3")
    members = listed(site, experiment_id, "participants", group="קבוצת הצפון")
    assert [(row["name"], row["group"]) for row in members] == [
        ("clinic-1", "קבוצת הצפון"),
        ("clinic-2", "קבוצת הצפון"),
    ]

    address = f"/api/v1/experiments/{experiment_id}"
    for count in (1, 0):
        revoked = site.admin.post(f"{address}/enrolments:revoke", json={"group": "קבוצת הצפון"})
        assert (revoked.status_code, revoked.json()) == (200, {"revoked": count})
    assert join(site, north[2]["code"], "late").json()["code"] == "enrolment.invalid"
    assert site.client(token).get("/api/v1/participant/assignment").status_code == 200, "who has joined stays"

    for count in (2, 0):
        revoked = site.admin.post(f"{address}/participants:revoke", json={"group": "קבוצת הצפון", "reason": "left"})
        assert (revoked.status_code, revoked.json()) == (200, {"revoked": count})
    assert site.client(token).get("/api/v1/participant/assignment").json()["code"] == "participant.revoked"
    states = {row["name"]: row["revocation_reason"] for row in listed(site, experiment_id, "participants")}
    assert states == {"clinic-1": "left", "clinic-2": "left", "clinic-3": None}
    actions = [entry["action"] for entry in site.admin.get("/api/v1/audit", params={"limit": 3}).json()["items"]]
    assert actions == ["participant.revoked", "participant.revoked", "enrolment.revoked"]


@pytest.mark.parametrize(("what", "code"), [("enrolments", "enrolment"), ("participants", "participant")])
def test_an_unknown_group_is_told(site: Any, what: str, code: str) -> None:
    experiment_id = site.running(participants={"edge": 1})
    other = site.running(participants={"edge": 1})
    join(site, make(site, other, group="North")["code"], "clinic")
    answer = site.admin.post(f"/api/v1/experiments/{experiment_id}/{what}:revoke", json={"group": "North"})
    assert (answer.status_code, answer.json()["code"]) == (404, f"{code}.not_found")
    assert (answer.json()["errors"][0]["field"], answer.json()["errors"][0]["value"]) == ("group", "North")
    bad = site.admin.post(f"/api/v1/experiments/{experiment_id}/{what}:revoke", json={"group": "\u202e"})
    assert (bad.status_code, bad.json()["errors"][0]["field"]) == (422, "group")
