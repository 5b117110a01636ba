"""A contribution in parts is the one that it would have been in one piece, whatever comes in between."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_db.engine.garbage_collection import collect
from ferret_db.tables import Assignment
from tests.api.conftest import contribution, open_site

PART = 128 << 10
WEIGHTS = 200_000  # 800 kB: seven parts


class Uploader(NamedTuple):
    """A participant with a contribution to an experiment whose contributions are sent in parts."""

    site: Any
    client: Any
    experiment_id: str
    assignment_id: str
    lease: dict[str, Any]
    blob: bytes

    @property
    def digest(self) -> str:
        return digest_bytes(self.blob)

    @property
    def address(self) -> str:
        return f"/api/v1/participant/assignments/{self.assignment_id}/contribution"

    def headers(self, **changes: str) -> dict[str, str]:
        return {"Ferret-Fence": str(self.lease["fence"]), "Ferret-Digest": self.digest, **changes}

    def patch(self, offset: int, body: Any, **changes: str) -> Any:
        of_part = {
            "Content-Type": "application/octet-stream",
            "Ferret-Seconds": "2.5",
            "Idempotency-Key": "k",
            "Upload-Offset": str(offset),
            "Upload-Length": str(len(self.blob)),
        }
        return self.client.patch(self.address, content=body, headers=self.headers(**{**of_part, **changes}))

    def part(self, offset: int, **changes: str) -> Any:
        return self.patch(offset, self.blob[offset : offset + PART], **changes)

    def arrived(self, **changes: str) -> Any:
        return self.client.get(self.address, headers=self.headers(**changes))

    def send(self, offset: int = 0) -> Any:
        """All parts from the offset on; the last answer."""
        while (answer := self.part(offset)).status_code == 204:
            offset = int(answer.headers["Upload-Offset"])
        return answer

    def drafts(self) -> list[Path]:
        return [path for path in (self.site.context.settings.home / "storage/.drafts").rglob("*") if path.is_file()]

    def codes(self) -> list[str]:
        listed = self.site.admin.get(f"/api/v1/experiments/{self.experiment_id}/rejections").json()["items"]
        return [item["code"] for item in listed]


@pytest.fixture
def make_uploader(make_settings: Callable[..., Any]) -> Any:
    with open_site(make_settings(part_bytes=PART)) as site:

        def make(**changes: Any) -> Uploader:
            experiment_id = site.running(shapes={"weight": (WEIGHTS,)}, participants={"edge": 1, "simulated": 1})
            client = site.client(site.enrol(experiment_id))
            _, assignment_id = site.open_round(experiment_id, edge=["site-a"], simulated=["client-001"])
            lease = client.get("/api/v1/participant/assignment").json()["assignment"]
            task = RoundTask.model_validate(lease["task"])
            blob = contribution(task, **{"size": WEIGHTS, **changes}).encode()
            return Uploader(site, client, experiment_id, assignment_id, lease, blob)

        yield make


@pytest.fixture
def uploader(make_uploader: Callable[[], Uploader]) -> Uploader:
    return make_uploader()


def test_a_lease_says_how_large_parts_are_and_only_where_there_are_any(site: Any, uploader: Uploader) -> None:
    assert uploader.lease["part_bytes"] == PART
    experiment_id = site.running(participants={"edge": 1})
    client = site.client(site.enrol(experiment_id))
    site.open_round(experiment_id, edge=["site-a"])
    assert "part_bytes" not in client.get("/api/v1/participant/assignment").json()["assignment"]


def test_parts_give_the_receipt_of_the_whole(uploader: Uploader) -> None:
    assert uploader.arrived().json() == {"offset": 0}
    first = uploader.part(0)
    assert (first.status_code, first.headers["Upload-Offset"], first.content) == (204, str(PART), b"")
    assert uploader.arrived().json() == {"offset": PART}
    answer = uploader.send(PART)
    assert answer.status_code == 201
    assert answer.json() == {"digest": uploader.digest, "size": len(uploader.blob), "round": 1, "accepted": True}
    assert [path.read_bytes() for path in uploader.site.files()] == [uploader.blob]
    assert uploader.drafts() == []
    assert uploader.codes() == []


def test_after_the_acceptance_every_request_gives_the_receipt(uploader: Uploader) -> None:
    receipt = uploader.send().json()
    assert uploader.arrived().json() == {"offset": len(uploader.blob)}
    for offset in (len(uploader.blob), 0):
        again = uploader.part(offset)
        assert (again.status_code, again.json()) == (200, receipt)
    other = uploader._replace(blob=uploader.blob[:-1] + b"\x40")
    assert other.arrived().json()["code"] == "contribution.duplicate"
    assert other.part(0).json()["code"] == "contribution.duplicate"
    whole = uploader.client.put(uploader.address, content=uploader.blob, headers=uploader.patch(0, b"").request.headers)
    assert (whole.status_code, whole.json()) == (200, receipt)


@pytest.mark.parametrize("offset", [PART, 1, 0])
def test_a_part_that_does_not_follow_is_refused_and_nothing_is_lost(uploader: Uploader, offset: int) -> None:
    arrived = 0 if offset else PART
    if arrived:
        uploader.part(0)
    problem = uploader.part(offset).json()
    assert (problem["status"], problem["code"]) == (409, "upload.offset")
    assert f"{arrived} bytes have arrived" in problem["detail"]
    assert uploader.codes() == [], "no contribution was refused"
    assert uploader.send(arrived).status_code == 201


def test_parts_of_another_size_add_up_too(uploader: Uploader) -> None:
    offset = 0
    for size in (1, PART, 17, 50_000):
        offset = int(uploader.patch(offset, uploader.blob[offset : offset + size]).headers["Upload-Offset"])
    assert offset == 1 + PART + 17 + 50_000
    assert uploader.send(offset).status_code == 201


def test_a_part_is_no_larger_than_allowed_and_ends_with_the_contribution(uploader: Uploader) -> None:
    assert uploader.patch(0, uploader.blob[: PART + 1]).status_code == 413
    last = 0
    for offset in range(0, len(uploader.blob) - PART, PART):
        last = int(uploader.part(offset).headers["Upload-Offset"])
    over = uploader.patch(last, uploader.blob[last:] + b"x")
    assert (over.status_code, over.json()["code"]) == (413, "request.too_large")
    assert uploader.send(last).status_code == 201


@pytest.mark.parametrize(("offset", "length"), [(0, 1 << 30), (2, 1)])
def test_no_more_is_announced_than_the_algorithm_sends(uploader: Uploader, offset: int, length: int) -> None:
    answer = uploader.part(offset, **{"Upload-Length": str(length)})
    assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")
    assert uploader.drafts() == []


def test_a_wrong_digest_is_found_at_the_end_and_the_right_parts_may_come_again(uploader: Uploader) -> None:
    wrong = {"Ferret-Digest": "ab" * 32}
    offset = 0
    while (answer := uploader.part(offset, **wrong)).status_code == 204:
        offset = int(answer.headers["Upload-Offset"])
    assert (answer.status_code, answer.json()["code"]) == (422, "upload.corrupt")
    assert uploader.digest in answer.json()["detail"]
    assert uploader.arrived(**wrong).json() == {"offset": 0}
    assert uploader.drafts() == []
    assert uploader.codes() == ["upload.corrupt"]
    assert uploader.send().status_code == 201


def test_the_third_wrong_digest_ends_the_assignment(uploader: Uploader) -> None:
    for _ in range(3):
        offset = 0
        while (answer := uploader.part(offset, **{"Ferret-Digest": "ab" * 32})).status_code == 204:
            offset = int(answer.headers["Upload-Offset"])
        assert answer.json()["code"] == "upload.corrupt"
    assert uploader.arrived().json()["code"] == "lease.lost"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_wrong_with_the_whole_is_told_after_the_last_part(make_uploader: Any, value: float) -> None:
    uploader = make_uploader(value=value)
    answer = uploader.send()
    assert (answer.status_code, answer.json()["code"]) == (422, "contribution.non_finite")
    assert uploader.drafts() == []
    assert uploader.site.files() == []


def test_under_a_new_lease_the_parts_go_on(uploader: Uploader) -> None:
    uploader.part(0)
    uploader.site.expire(Assignment, "lease_until", uploader.assignment_id)
    assert uploader.arrived().json()["code"] == "lease.lost"
    assert uploader.part(PART).json()["code"] == "lease.lost"
    lease = uploader.client.get("/api/v1/participant/assignment").json()["assignment"]
    later = uploader._replace(lease=lease)
    assert later.arrived().json() == {"offset": PART}
    assert later.send(PART).status_code == 201


def test_a_participant_has_one_upload_at_a_time(make_uploader: Any) -> None:
    uploader = make_uploader()
    uploader.part(0)
    task = RoundTask.model_validate(uploader.lease["task"])
    other = uploader._replace(blob=contribution(task, size=WEIGHTS, value=0.25).encode())
    assert other.arrived().json() == {"offset": 0}
    assert other.part(0).status_code == 204
    assert len(uploader.drafts()) == 1
    assert uploader.arrived().json() == {"offset": 0}


def test_another_participant_cannot_reach_it(uploader: Uploader) -> None:
    stranger = uploader._replace(client=uploader.site.client(uploader.site.enrol(uploader.experiment_id, "site-b")))
    for answer in (stranger.arrived(), stranger.part(0)):
        assert (answer.status_code, answer.json()["code"]) == (404, "assignment.not_found")


def test_an_upload_that_is_given_up_is_collected_and_begins_anew(uploader: Uploader) -> None:
    uploader.part(0)
    (draft,) = uploader.drafts()
    context = uploader.site.context
    collect(context.database, context.storage)
    assert uploader.drafts() == [draft], "somebody may yet go on with it"
    os.utime(draft, (long_ago := time.time() - 25 * 3600, long_ago))
    collect(context.database, context.storage)
    assert uploader.drafts() == []
    assert uploader.part(PART).json()["code"] == "upload.offset"
    assert uploader.arrived().json() == {"offset": 0}
    assert uploader.send().status_code == 201


def test_a_full_disk_takes_nothing_of_a_part_and_all_once_there_is_room(
    uploader: Uploader, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploader.part(0)

    def full(size: int) -> None:
        raise FerretError("storage.full", "no room")

    with monkeypatch.context() as while_full:
        while_full.setattr(uploader.site.context.storage, "require_room", full)
        assert uploader.part(PART).json()["code"] == "storage.full"
    assert uploader.arrived().json() == {"offset": PART}
    assert uploader.send(PART).status_code == 201
    assert uploader.codes() == []


def test_while_one_request_grows_the_file_another_one_waits(uploader: Uploader) -> None:
    from ferret_api.participants.resumable_upload import _Growing

    with uploader.site.database.read() as s:
        assignment = s.get(Assignment, uploader.assignment_id)
    with _Growing(uploader.site.context.storage, assignment, uploader.digest).held():
        answer = uploader.part(0)
        assert (answer.status_code, answer.json()["code"]) == (429, "request.too_many")
        assert int(answer.headers["Retry-After"]) >= 1
    assert uploader.send().status_code == 201
