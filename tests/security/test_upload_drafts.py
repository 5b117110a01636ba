"""Parts of an upload: bounded by the contribution, silent about what others stored, deleted with the participant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from ferret_core.protocol.digest import digest_bytes
from ferret_core.storage import FileKind
from ferret_db.tables import Participant
from tests.api.test_parts import PART, Uploader
from tests.api.test_parts import make_uploader as make_uploader
from tests.api.test_parts import uploader as uploader

OTHERS = b"a contribution that somebody else has sent" * 1000


def bytes_of(uploader: Uploader) -> int:
    return sum(path.stat().st_size for path in uploader.drafts())


@pytest.fixture
def named(uploader: Uploader) -> dict[str, str]:
    """Headers that name a contribution which is stored already, and is not this participant's."""
    uploader.site.context.storage.put_bytes(OTHERS, FileKind.CONTRIBUTION)
    return {"Ferret-Digest": digest_bytes(OTHERS)}


def test_a_draft_grows_no_further_than_a_contribution_whatever_digest_it_names(
    uploader: Uploader, named: dict[str, str]
) -> None:
    most = len(uploader.blob)
    for _ in range(30):
        arrived = uploader.arrived(**named).json().get("offset", 0)
        for offset in (arrived, len(OTHERS)):
            uploader.patch(offset, b"x" * min(PART, most - offset), **named)
    assert bytes_of(uploader) <= most


def test_a_stored_contribution_of_others_is_as_unknown_as_none(uploader: Uploader, named: dict[str, str]) -> None:
    unknown = {"Ferret-Digest": "ab" * 32}
    assert uploader.arrived(**named).json() == uploader.arrived(**unknown).json() == {"offset": 0}
    for offset, body in ((len(OTHERS), b""), (len(OTHERS), b"x"), (0, b"x"), (1, b"")):
        answers = [uploader.patch(offset, body, **digest) for digest in (named, unknown)]
        first, second = [(answer.status_code, answer.headers.get("Upload-Offset")) for answer in answers]
        assert first == second


def test_the_same_contribution_is_accepted_where_its_bytes_are_stored(uploader: Uploader) -> None:
    uploader.site.context.storage.put_bytes(uploader.blob, FileKind.CONTRIBUTION)
    assert uploader.arrived().json() == {"offset": 0}
    assert uploader.send().status_code == 201
    assert uploader.drafts() == []


def revoke(uploader: Uploader) -> Any:
    return uploader.site.admin.post(
        f"/api/v1/experiments/{uploader.member.experiment_id}/participants/site-a:revoke", json={}
    )


def revoke_group(uploader: Uploader) -> Any:
    with uploader.site.database.begin() as s:
        s.execute(update(Participant).values(group="north"))
    experiment = f"/api/v1/experiments/{uploader.member.experiment_id}"
    return uploader.site.admin.post(f"{experiment}/participants:revoke", json={"group": "north"})


def delete(uploader: Uploader) -> Any:
    uploader.site.move(uploader.member.experiment_id, "cancel").raise_for_status()
    return uploader.site.admin.delete(f"/api/v1/experiments/{uploader.member.experiment_id}")


@pytest.mark.parametrize("end", [revoke, revoke_group, delete])
def test_what_has_arrived_goes_with_its_participant(uploader: Uploader, end: Callable[[Uploader], Any]) -> None:
    uploader.part(0)
    assert bytes_of(uploader) == PART
    end(uploader).raise_for_status()
    assert uploader.drafts() == []
