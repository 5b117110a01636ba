"""A participant that joined with a key signs each contribution, and nobody else can in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.signatures import Signed, new_key, public_key, sign
from ferret_db.repositories import contributions

SECRET = new_key()


@pytest.fixture
def signer(either_site: Any) -> Any:
    """A client that joined with a key, in an open round."""
    experiment_id = either_site.running(participants={"edge": 1})
    code = either_site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={}).json()["code"]
    asked = {"code": code, "display_name": "site-a", "public_key": public_key(SECRET)}
    joined = either_site.client().post("/api/v1/participants", json=asked).json()
    either_site.open_round(experiment_id, edge=["site-a"])
    return either_site.client(joined["token"])


def signed(leased: dict[str, Any], blob: bytes, secret: str = SECRET, **changes: Any) -> str:
    task = leased["task"]
    context = {name: task[name] for name in ("experiment", "round", "participant", "base_digest")}
    return sign(
        secret, Signed(**{**context, "assignment": leased["id"], "contribution": digest_bytes(blob), **changes})
    )


def upload(client: Any, leased: dict[str, Any], blob: bytes, **headers: str) -> Any:
    said = {"Content-Type": "application/octet-stream", "Ferret-Fence": str(leased["fence"]), "Ferret-Seconds": "1"}
    path = f"/api/v1/participant/assignments/{leased['id']}/contribution"
    return client.put(path, content=blob, headers={**said, **headers})


def test_only_the_keys_holder_can_contribute(either_site: Any, signer: Any, make_blob: Callable[..., bytes]) -> None:
    leased = signer.get("/api/v1/participant/assignment").json()["assignment"]
    blob = make_blob(leased)
    wrong = [
        {},
        {"Ferret-Signature": signed(leased, blob, new_key())},
        {"Ferret-Signature": signed(leased, blob, round=2)},
        {"Ferret-Signature": signed(leased, b"another")},
        {"Ferret-Signature": signed(leased, blob, assignment="asg_ffffffffffffffff")},
    ]
    for headers in wrong:
        refused = upload(signer, leased, blob, **headers)
        assert (refused.status_code, refused.json()["code"]) == (422, "signature.invalid")
    spelt = upload(signer, leased, blob, **{"Ferret-Signature": "not hexadecimal"})
    assert (spelt.status_code, spelt.json()["code"]) == (422, "request.invalid")
    assert not either_site.files()

    signature = signed(leased, blob)
    assert upload(signer, leased, blob, **{"Ferret-Signature": signature}).status_code == 201
    with either_site.database.read() as s:
        (row,) = contributions.of_experiment(s, leased["task"]["experiment"])
    assert (row.public_key, row.signature) == (public_key(SECRET), signature)
    address = f"/api/v1/experiments/{leased['task']['experiment']}"
    (refusals,) = either_site.admin.get(f"{address}/rejections").json()["items"]
    assert (refusals["code"], refusals["count"]) == ("signature.invalid", len(wrong))
    (shown,) = either_site.admin.get(f"{address}/participants").json()["items"]
    assert shown["public_key"] == public_key(SECRET)


@pytest.mark.parametrize("key", ["", "zz" * 32, "ab" * 31])
def test_a_key_that_is_none_is_refused(site: Any, key: str) -> None:
    asked = {"code": "c", "display_name": "site-a", "public_key": key}
    answer = site.client().post("/api/v1/participants", json=asked)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "public_key")
