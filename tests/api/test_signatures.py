"""A participant that joined with a key signs each contribution, and nobody else can in its place."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.signatures import Signed, new_key, public_key, sign
from ferret_db.repositories import contributions
from tests.api.conftest import ASSIGNMENT, Member

SECRET = new_key()


@pytest.fixture
def signer(either_site: Any) -> Member:
    """A participant that joined with a key."""
    experiment_id = either_site.running(participants={"edge": 1})
    code = either_site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={}).json()["code"]
    asked = {"code": code, "display_name": "site-a", "public_key": public_key(SECRET)}
    client = either_site.client(either_site.client().post("/api/v1/participants", json=asked).json()["token"])
    either_site.open_round(experiment_id, edge=["site-a"])
    return Member(either_site, client, experiment_id, client.get(ASSIGNMENT).json()["assignment"])


def signed(leased: dict[str, Any], blob: bytes, secret: str = SECRET, **changes: Any) -> str:
    task = leased["task"]
    context = {name: task[name] for name in ("experiment", "round", "participant", "base_digest")}
    return sign(
        secret, Signed(**{**context, "assignment": leased["id"], "contribution": digest_bytes(blob), **changes})
    )


def test_only_the_keys_holder_can_contribute(either_site: Any, signer: Member) -> None:
    leased, blob = signer.lease, signer.blob()
    wrong = [
        {},
        {"Ferret-Signature": signed(leased, blob, new_key())},
        {"Ferret-Signature": signed(leased, blob, round=2)},
        {"Ferret-Signature": signed(leased, b"another")},
        {"Ferret-Signature": signed(leased, blob, assignment="asg_ffffffffffffffff")},
    ]
    for headers in wrong:
        refused = signer.upload(blob, **headers)
        assert (refused.status_code, refused.json()["code"]) == (422, "signature.invalid")
    spelt = signer.upload(blob, **{"Ferret-Signature": "not hexadecimal"})
    assert (spelt.status_code, spelt.json()["code"]) == (422, "request.invalid")
    assert not either_site.files()

    signature = signed(leased, blob)
    assert signer.upload(blob, **{"Ferret-Signature": signature}).status_code == 201
    with either_site.database.read() as s:
        (row,) = contributions.of_experiment(s, signer.experiment_id)
    assert (row.public_key, row.signature) == (public_key(SECRET), signature)
    address = f"/api/v1/experiments/{signer.experiment_id}"
    (refusals,) = signer.rejections()
    assert (refusals["code"], refusals["count"]) == ("signature.invalid", len(wrong))
    (shown,) = either_site.admin.get(f"{address}/participants").json()["items"]
    assert shown["public_key"] == public_key(SECRET)


@pytest.mark.parametrize("key", ["", "zz" * 32, "ab" * 31])
def test_a_key_that_is_none_is_refused(site: Any, key: str) -> None:
    asked = {"code": "c", "display_name": "site-a", "public_key": key}
    answer = site.client().post("/api/v1/participants", json=asked)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "public_key")
