"""An upload costs nothing that its assignment does not allow: it is judged before its body, and by what is expected."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ferret_core.protocol.wire import encode
from ferret_db.tables import Assignment
from tests.api.conftest import Member

HUGE = 100 << 20
MOST = 8 + (64 << 10) + 10 * 4
"""FedAvg's contribution for ten parameters: the header's length, the longest header, the update."""


@pytest.fixture
def member(site: Any) -> Member:
    return site.member()


def unread() -> Iterator[bytes]:
    """A body that the server must not ask for."""
    yield b"x"
    raise AssertionError("the server read on")


def rejected(who: Member) -> str:
    for _ in range(3):
        assert who.upload(b"garbage").json()["code"] == "contribution.malformed"
    return "lease.lost"


def expired(who: Member) -> str:
    who.site.expire(Assignment, "lease_until", who.assignment_id)
    return "lease.lost"


def closed(who: Member) -> str:
    who.site.move(who.experiment_id, "cancel").raise_for_status()
    return "round.closed"


@pytest.mark.parametrize("how", [rejected, expired, closed])
def test_what_cannot_be_accepted_is_not_read(member: Member, how: Callable[[Member], str]) -> None:
    code = how(member)
    for _ in range(12):
        assert member.upload(unread(), **{"Content-Length": str(HUGE)}).json()["code"] == code
    assert member.upload(unread()).json()["code"] == code
    unknown = member._replace(lease=member.lease | {"id": "asg_1"})
    assert unknown.upload(unread()).json()["code"] == "assignment.not_found"


def test_another_fence_reads_nothing(member: Member) -> None:
    assert member.upload(unread(), **{"Ferret-Fence": "7"}).json()["code"] == "lease.lost"


def test_no_more_is_read_than_the_algorithms_layout_takes(member: Member) -> None:
    for size in (MOST + 1, HUGE):
        answer = member.upload(unread(), **{"Content-Length": str(size)})
        assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")
        assert f"at most {MOST} bytes" in answer.json()["detail"]
    assert member.upload(bytes(MOST)).json()["code"] == "contribution.malformed", "so many are read"


def test_after_an_accepted_one_only_the_same_again_is_read(member: Member) -> None:
    blob = member.blob()
    assert member.upload(blob).status_code == 201
    assert member.upload(blob).status_code == 200
    assert member.upload(unread(), **{"Content-Length": str(len(blob) + 1)}).status_code == 413


def test_few_uploads_of_one_participant_are_received_at_once(member: Member) -> None:
    gate = member.site.context.uploads
    with member.site.database.read() as s:
        participant = s.get(Assignment, member.assignment_id).participant_id
    with gate.entered(participant), gate.entered(participant):
        refused = member.upload(unread())
        assert (refused.status_code, refused.json()["code"]) == (429, "request.too_many")
        assert int(refused.headers["Retry-After"]) >= 1
    assert member.upload(member.blob()).status_code == 201


def test_metadata_of_many_fields_make_a_small_answer_and_a_small_record(member: Member) -> None:
    """8,000 fields still fit the header; 400,000 are refused by its length alone."""
    fields = {f"{n:x}": 0 for n in range(6_000)}
    answer = member.upload(encode({}, fields))
    assert (answer.status_code, answer.json()["code"]) == (422, "contribution.malformed")
    assert len(answer.content) < 10_000
    assert answer.json()["errors_omitted"] > 5_900
    for listed in ("contributions", "rejections", "events"):
        assert len(member.site.admin.get(f"/api/v1/experiments/{member.experiment_id}/{listed}").content) < 5_000


def test_a_long_header_is_not_parsed(member: Member) -> None:
    header = json.dumps({"__metadata__": {"ferret": "x" * 65_530}}).encode()
    answer = member.upload(struct.pack("<Q", len(header)) + header)
    assert "header length" in answer.json()["detail"]


def test_long_reasons_are_kept_in_short(member: Member) -> None:
    failure = {"fence": member.lease["fence"], "code": "dataset.invalid", "detail": "x" * 2_000}
    assert member.client.post(f"{member.address}/failure", json=failure).status_code == 204
    shown = member.site.admin.get(f"/api/v1/experiments/{member.experiment_id}/contributions")
    assert len(shown.content) < 2_000
