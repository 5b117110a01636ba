"""A damaged file is never handed out as if it were whole, and a worker is told to rebuild it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from sqlalchemy import select

from ferret_api.settings import ApiSettings
from ferret_core.protocol.task_names import TaskName
from ferret_core.storage import FileKind, blob_location
from ferret_db.repositories import ledger
from ferret_db.tables import OutboxMessage

DATA = bytes(range(256)) * 4096


class Asked(NamedTuple):
    """What there is to download, whose it is, and where its file lies."""

    experiment: str
    href: str
    path: Path


@pytest.fixture
def live(serve: Callable[[ApiSettings], Any], settings: ApiSettings) -> Any:
    """A real server: what breaks off in the middle must look so to a client."""
    return serve(settings)


@pytest.fixture
def artifact(live: Any) -> Asked:
    experiment_id = live.site.submit()
    stored = live.site.store("model.safetensors", DATA)
    live.site.start(experiment_id, [stored])
    (item,) = live.admin.get(f"/api/v1/experiments/{experiment_id}/artifacts").json()["items"]
    return Asked(experiment_id, item["href"], live.site.context.storage.path(stored.location))


@pytest.fixture
def update(live: Any) -> Asked:
    experiment_id = live.site.running()
    live.site.committed(experiment_id)
    with live.site.database.read() as s:
        location = blob_location(FileKind.UPDATE, ledger.get(s, experiment_id, 1).update_digest)
    href = f"/api/v1/experiments/{experiment_id}/updates/1"
    return Asked(experiment_id, href, live.site.context.storage.path(location))


@pytest.fixture(params=["artifact", "update"])
def asked(request: pytest.FixtureRequest) -> Asked:
    return request.getfixturevalue(request.param)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def repairs(live: Any, experiment_id: str) -> int:
    query = select(OutboxMessage).where(OutboxMessage.task == TaskName.REPAIR, OutboxMessage.argument == experiment_id)
    with live.site.database.read() as s:
        return len(s.scalars(query).all())


@pytest.mark.parametrize(
    ("damage", "code"), [(Path.unlink, "storage.missing"), (lambda path: path.write_bytes(b"x"), "storage.corrupt")]
)
def test_a_missing_or_cut_file_is_an_error_and_a_repair(
    live: Any, asked: Asked, damage: Callable[[Path], object], code: str
) -> None:
    whole = live.admin.get(asked.href).content
    damage(asked.path)
    for _ in range(2):
        answer = live.admin.get(asked.href)
        assert (answer.status_code, answer.json()["code"]) == (500, code)
        assert "try again in a minute" in answer.json()["detail"]
    assert repairs(live, asked.experiment) == 1, "one repair at a time"
    asked.path.write_bytes(whole)
    assert live.admin.get(asked.href).content == whole


def test_a_flipped_bit_in_a_download_breaks_it_off_before_its_end(live: Any, artifact: Asked) -> None:
    flip(artifact.path)
    with pytest.raises(httpx.RemoteProtocolError, match="complete message body"):
        live.admin.get(artifact.href)
    assert repairs(live, artifact.experiment) == 1


def test_a_flipped_bit_in_an_update_is_an_error(live: Any, update: Asked) -> None:
    flip(update.path)
    answer = live.admin.get(update.href)
    assert (answer.status_code, answer.json()["code"]) == (500, "storage.corrupt")
    assert repairs(live, update.experiment) == 1


def test_an_unknown_artifact_calls_for_no_repair(live: Any) -> None:
    experiment_id = live.site.running()
    assert live.admin.get(f"/api/v1/experiments/{experiment_id}/artifacts/art_none").status_code == 404
    assert repairs(live, experiment_id) == 0
