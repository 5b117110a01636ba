"""A full disk at a site: a message that names the file, and nothing lost once there is room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_sdk import Participant
from ferret_sdk.http import safe_paths
from ferret_sdk.participant import local_training
from ferret_sdk.participant.egress_log import SentLog, verify
from ferret_sdk.service.progress import RoundReport
from tests import small_disk
from tests.refusals import refused
from tests.small_disk import SmallDisk

pytestmark = [pytest.mark.timeout(120), pytest.mark.heavy]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDisk]:
    monkeypatch.setattr(safe_paths, "DISK_MARGIN", 0)
    with small_disk.mounted(tmp_path / "disk", 16) as disk:
        yield disk


@pytest.fixture
def home(disk: SmallDisk) -> Path:
    return disk.path / "home"


def test_a_code_is_exchanged_again_once_the_membership_has_room(
    api, service, toy_spec, disk: SmallDisk, home: Path
) -> None:
    run = service.submit(toy_spec(participants={"edge": 1}))
    code = run.create_code().code
    disk.fill()
    with refused("storage.full", str(home)):
        Participant.enrol(api.url, code, "site-a", home)
    disk.make_room()
    assert Participant.enrol(api.url, code, "site-a", home).member.experiment == run.id


@pytest.mark.parametrize("moment", ["download", "participant.trained"])
def test_it_goes_on_once_there_is_room(
    api, worker, service, toy_spec, toy_data, disk: SmallDisk, home: Path, monkeypatch, moment: str
) -> None:
    run = service.submit(toy_spec(participants={"simulated": 1, "edge": 1}, rounds=3))
    code = run.create_code().code
    site = Participant.enrol(api.url, code, "site-a", home)
    told: list[FerretError] = []
    filled: list[bool] = []

    def full(name: str) -> None:
        if name == moment and not filled:
            filled.append(True)
            disk.fill()

    def report(done: RoundReport) -> None:
        if done.error is not None:
            told.append(done.error)
            disk.make_room()

    monkeypatch.setattr(local_training, "failpoint", full)
    full("download")
    state = None
    while state is None:
        try:
            state = site.run(toy_data[0], on_round=report)
        except FerretError as error:
            told.append(error)
            disk.make_room()
            site = Participant.enrol(api.url, code, "site-a", home)
    assert state == "completed"
    assert {error.code for error in told} == {"storage.full"}
    assert all("free some space" in error.detail for error in told)
    assert verify(SentLog(home)).number > 5
    accepted = {
        found.round for found in run.contributions() if (found.participant, found.state) == ("site-a", "accepted")
    }
    assert 3 in accepted
    assert not list(home.rglob(".tmp-*"))
