"""An upload costs nothing that its assignment does not allow: it is judged before its body, and by what is expected."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from ferret_core.protocol.wire import encode
from ferret_db.tables import Assignment

HUGE = 100 << 20


class Uploader(NamedTuple):
    """A participant that holds the lease on its assignment."""

    site: Any
    client: Any
    experiment_id: str
    assignment_id: str
    lease: dict[str, Any]

    def put(self, content: Any, **headers: str) -> Any:
        return self.client.put(
            f"/api/v1/participant/assignments/{self.assignment_id}/contribution",
            content=content,
            headers={
                "Content-Type": "application/octet-stream",
                "Ferret-Fence": str(self.lease["fence"]),
                "Ferret-Seconds": "1",
                **headers,
            },
        )


@pytest.fixture
def uploader(site: Any) -> Uploader:
    experiment_id = site.running(participants={"edge": 1, "simulated": 1}, round={"quorum": 0.5})
    client = site.client(site.enrol(experiment_id))
    _, assignment_id = site.open_round(experiment_id, edge=["site-a"], simulated=["client-001"])
    lease = client.get("/api/v1/participant/assignment").json()["assignment"]
    return Uploader(site, client, experiment_id, assignment_id, lease)


def unread() -> Iterator[bytes]:
    """A body that the server must not ask for."""
    yield b"x"
    raise AssertionError("the server read on")


def rejected(who: Uploader) -> str:
    for _ in range(3):
        assert who.put(b"garbage").json()["code"] == "contribution.malformed"
    return "lease.lost"


def expired(who: Uploader) -> str:
    who.site.expire(Assignment, "lease_until", who.assignment_id)
    return "lease.lost"


def closed(who: Uploader) -> str:
    who.site.move(who.experiment_id, "cancel").raise_for_status()
    return "round.closed"


@pytest.mark.parametrize("how", [rejected, expired, closed])
def test_what_cannot_be_accepted_is_not_read(uploader: Uploader, how: Callable[[Uploader], str]) -> None:
    code = how(uploader)
    for _ in range(12):
        assert uploader.put(unread(), **{"Content-Length": str(HUGE)}).json()["code"] == code
    assert uploader.put(unread()).json()["code"] == code


def test_another_fence_reads_nothing(uploader: Uploader) -> None:
    assert uploader.put(unread(), **{"Ferret-Fence": "7"}).json()["code"] == "lease.lost"


def test_no_more_is_read_than_the_algorithms_layout_takes(uploader: Uploader) -> None:
    answer = uploader.put(unread(), **{"Content-Length": str(HUGE)})
    assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")
    assert "at most 65584 bytes" in answer.json()["detail"]


def test_after_an_accepted_one_only_the_same_again_is_read(uploader: Uploader, make_blob: Any) -> None:
    blob = make_blob(uploader.lease)
    assert uploader.put(blob).status_code == 201
    assert uploader.put(blob).status_code == 200
    assert uploader.put(unread(), **{"Content-Length": str(len(blob) + 1)}).status_code == 413


def test_few_uploads_of_one_participant_are_received_at_once(uploader: Uploader, make_blob: Any) -> None:
    gate = uploader.site.context.uploads
    with uploader.site.database.read() as s:
        participant = s.get(Assignment, uploader.assignment_id).participant_id
    with gate.entered(participant), gate.entered(participant):
        refused = uploader.put(unread())
        assert (refused.status_code, refused.json()["code"]) == (429, "request.too_many")
        assert int(refused.headers["Retry-After"]) >= 1
    assert uploader.put(make_blob(uploader.lease)).status_code == 201


def test_metadata_of_many_fields_make_a_small_answer_and_a_small_record(uploader: Uploader) -> None:
    """8,000 fields still fit the header; 400,000 are refused by its length alone."""
    fields = {f"{n:x}": 0 for n in range(6_000)}
    answer = uploader.put(encode({}, fields))
    assert (answer.status_code, answer.json()["code"]) == (422, "contribution.malformed")
    assert len(answer.content) < 10_000
    assert answer.json()["errors_omitted"] > 5_900
    for listed in ("contributions", "rejections", "events"):
        assert len(uploader.site.admin.get(f"/api/v1/experiments/{uploader.experiment_id}/{listed}").content) < 5_000


def test_a_long_header_is_not_parsed(uploader: Uploader) -> None:
    header = json.dumps({"__metadata__": {"ferret": "x" * 65_530}}).encode()
    answer = uploader.put(struct.pack("<Q", len(header)) + header)
    assert "header length" in answer.json()["detail"]


def test_long_reasons_are_kept_in_short(uploader: Uploader) -> None:
    failure = {"fence": uploader.lease["fence"], "code": "dataset.invalid", "detail": "x" * 2_000}
    address = f"/api/v1/participant/assignments/{uploader.assignment_id}/failure"
    assert uploader.client.post(address, json=failure).status_code == 204
    shown = uploader.site.admin.get(f"/api/v1/experiments/{uploader.experiment_id}/contributions")
    assert len(shown.content) < 2_000
