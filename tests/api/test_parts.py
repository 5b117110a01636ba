"""A contribution in parts is the one that it would have been in one piece, whatever comes in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ferret_api.participants.resumable_upload import _Growing
from ferret_core.protocol.digest import digest_bytes
from ferret_db.tables import Assignment
from tests.api.conftest import ASSIGNMENT, Member, open_site, upload_headers

PART = 128 << 10
WEIGHTS = 200_000  # 800 kB: seven parts


class Uploader(NamedTuple):
    """A participant of an experiment whose contributions are sent in parts, and its contribution."""

    member: Member
    blob: bytes

    @property
    def site(self) -> Any:
        return self.member.site

    @property
    def digest(self) -> str:
        return digest_bytes(self.blob)

    @property
    def address(self) -> str:
        return f"{self.member.address}/contribution"

    def patch(self, offset: int, body: Any, **changes: str) -> Any:
        place = {"Upload-Offset": str(offset), "Upload-Length": str(len(self.blob))}
        headers = {**upload_headers(self.member.lease), "Idempotency-Key": "k", "Ferret-Digest": self.digest, **place}
        return self.member.client.patch(self.address, content=body, headers=headers | changes)

    def part(self, offset: int, **changes: str) -> Any:
        return self.patch(offset, self.blob[offset : offset + PART], **changes)

    def arrived(self, **changes: str) -> Any:
        headers = {"Ferret-Fence": str(self.member.lease["fence"]), "Ferret-Digest": self.digest, **changes}
        return self.member.client.get(self.address, headers=headers)

    def send(self, offset: int = 0, **changes: str) -> Any:
        """All parts from the offset on; the last answer."""
        while (answer := self.part(offset, **changes)).status_code == 204:
            offset = int(answer.headers["Upload-Offset"])
        return answer

    def drafts(self) -> list[Path]:
        return [path for path in (self.site.context.settings.home / "storage/.drafts").rglob("*") if path.is_file()]

    def codes(self) -> list[str]:
        return [item["code"] for item in self.member.rejections()]


@pytest.fixture
def make_uploader(make_settings: Callable[..., Any]) -> Any:
    with open_site(make_settings(part_bytes=PART)) as site:

        def make(**changes: Any) -> Uploader:
            member = site.member(shapes={"weight": (WEIGHTS,)})
            return Uploader(member, member.blob(**{"size": WEIGHTS, **changes}))

        yield make


@pytest.fixture
def uploader(make_uploader: Callable[[], Uploader]) -> Uploader:
    return make_uploader()


def test_a_lease_says_how_large_parts_are_and_only_where_there_are_any(site: Any, uploader: Uploader) -> None:
    assert uploader.member.lease["part_bytes"] == PART
    assert "part_bytes" not in site.member().lease


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
    whole = uploader.member.upload(uploader.blob)
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
    answer = uploader.send(**wrong)
    assert (answer.status_code, answer.json()["code"]) == (422, "upload.corrupt")
    assert uploader.digest in answer.json()["detail"]
    assert uploader.arrived(**wrong).json() == {"offset": 0}
    assert uploader.drafts() == []
    assert uploader.codes() == ["upload.corrupt"]
    assert uploader.send().status_code == 201


def test_under_a_new_lease_the_parts_go_on(uploader: Uploader) -> None:
    uploader.part(0)
    uploader.site.expire(Assignment, "lease_until", uploader.member.assignment_id)
    assert uploader.arrived().json()["code"] == "lease.lost"
    assert uploader.part(PART).json()["code"] == "lease.lost"
    lease = uploader.member.client.get(ASSIGNMENT).json()["assignment"]
    later = uploader._replace(member=uploader.member._replace(lease=lease))
    assert later.arrived().json() == {"offset": PART}
    assert later.send(PART).status_code == 201


def test_a_participant_has_one_upload_at_a_time(uploader: Uploader) -> None:
    uploader.part(0)
    other = uploader._replace(blob=uploader.member.blob(size=WEIGHTS, value=0.25))
    assert other.arrived().json() == {"offset": 0}
    assert other.part(0).status_code == 204
    assert len(uploader.drafts()) == 1
    assert uploader.arrived().json() == {"offset": 0}


def test_another_participant_cannot_reach_it(uploader: Uploader) -> None:
    site, member = uploader.site, uploader.member
    other = site.client(site.enrol(member.experiment_id, "site-b"))
    stranger = uploader._replace(member=member._replace(client=other))
    for answer in (stranger.arrived(), stranger.part(0)):
        assert (answer.status_code, answer.json()["code"]) == (404, "assignment.not_found")


def test_while_one_request_grows_the_file_another_one_waits(uploader: Uploader) -> None:
    with uploader.site.database.read() as s:
        assignment = s.get(Assignment, uploader.member.assignment_id)
    with _Growing(uploader.site.context.storage, assignment, uploader.digest).held():
        answer = uploader.part(0)
        assert (answer.status_code, answer.json()["code"]) == (429, "request.too_many")
        assert int(answer.headers["Retry-After"]) >= 1
    assert uploader.send().status_code == 201


def test_what_is_wrong_with_the_whole_is_told_after_the_last_part(make_uploader: Any) -> None:
    uploader = make_uploader(value=np.nan)
    answer = uploader.send()
    assert (answer.status_code, answer.json()["code"]) == (422, "contribution.non_finite")
    assert uploader.drafts() == []
    assert uploader.site.files() == []
