"""What was made and was not acknowledged yet survives everything but damage, and damage is noticed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ferret_core.contribution import SealedContribution
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.resources.participants import Lease
from ferret_core.protocol.signatures import new_key
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Contribution, ContributionMeta
from ferret_sdk.participant.spool import Spool, Upload

BLOB = b"first line\nsecond line\x00\xff"
META = ContributionMeta(
    format=1,
    experiment="exp_0000000000000001",
    round=4,
    participant="clinic",
    algorithm="fedavg",
    base_digest="ba" * 32,
    examples=3,
    metrics={"train_loss": 1.25},
)
KEY = new_key()
SEALED = SealedContribution((BLOB,), digest_bytes(BLOB), Contribution(META, {}))


@pytest.fixture
def upload() -> Upload:
    seeds = {"data_seed": 1, "seed": 2, "round_seed": 3, "population": 1, "rounds": 9}
    task = RoundTask(experiment="exp_0000000000000001", round=4, participant="clinic", base_digest="ba" * 32, **seeds)
    return Upload.of(
        Lease(id="asg_0000000000000001", fence=7, lease_seconds=60, lease_until=datetime.now(UTC), task=task),
        SEALED,
        2.5,
        KEY,
    )


def test_an_upload_waits_whole_and_under_its_key_until_it_is_cleared(tmp_path: Path, upload: Upload) -> None:
    Spool(tmp_path / "upload").keep(upload, (BLOB[:3], BLOB[3:]))
    again = Spool(tmp_path / "upload")
    assert again.waiting() == upload
    assert (upload.assignment, upload.fence, upload.round, upload.size, upload.loss) == (
        "asg_0000000000000001",
        7,
        4,
        len(BLOB),
        1.25,
    )
    assert again.read(0, upload.size) == BLOB
    assert (again.read(3, 5), again.read(len(BLOB), 5)) == (BLOB[3:8], b"")
    again.clear()
    again.clear()
    assert again.waiting() is None


def test_every_upload_has_a_key_of_its_own(upload: Upload) -> None:
    lease = Lease.model_construct(id="asg_0000000000000001", fence=7, task=type("Task", (), {"round": 4}))
    assert Upload.of(lease, SEALED, 2.5, KEY).key != upload.key


def test_a_later_upload_takes_the_place_of_the_one_before_and_of_drafts(tmp_path: Path, upload: Upload) -> None:
    spool = Spool(tmp_path / "upload")
    spool.keep(upload, (BLOB,))
    (tmp_path / "upload" / ".draft-of-a-killed-process").write_bytes(b"half")
    spool.keep(upload._replace(key="another"), (BLOB,))
    spool.note(upload._replace(key="another", fence=None))
    waiting = spool.waiting()
    assert waiting is not None
    assert (waiting.key, waiting.fence) == ("another", None)
    assert sorted(path.name for path in (tmp_path / "upload").iterdir()) == ["contribution", "upload.json"]


@pytest.mark.parametrize("position", [3, -1])
@pytest.mark.parametrize("name", ["upload.json", "contribution"])
def test_a_damaged_upload_is_not_sent(tmp_path: Path, upload: Upload, name: str, position: int) -> None:
    spool = Spool(tmp_path / "upload")
    spool.keep(upload, (BLOB,))
    path = tmp_path / "upload" / name
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))
    assert spool.waiting() is None
    assert list((tmp_path / "upload").iterdir()) == []


@pytest.mark.parametrize("name", ["upload.json", "contribution"])
def test_half_of_an_upload_is_none(tmp_path: Path, upload: Upload, name: str) -> None:
    spool = Spool(tmp_path / "upload")
    spool.keep(upload, (BLOB,))
    (tmp_path / "upload" / name).unlink()
    assert spool.waiting() is None
