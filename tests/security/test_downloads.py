"""The audit log says who took a model, an update or a held-out example out of the service, and is not flooded."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.roles import Role
from tests.api.people import a_user

URL = "/api/v1"


@pytest.fixture
def experiment_id(site: Any) -> str:
    """Two committed rounds, each with a checkpoint of two files."""
    made = site.running(participants={"simulated": 2, "edge": 2}, rounds=2)
    site.enrol(made, "site-b")
    for number in (1, 2):
        files = [site.store(name, f"{name} of {number}".encode()) for name in ("config.json", "model.safetensors")]
        (assignment_id,) = site.open_round(made, edge=["site-b"], number=number)
        site.deliver(assignment_id)
        site.commit(made, number, files=files)
    return made


def told(site: Any, action: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [(entry["actor"], entry["subject"], entry["detail"]) for entry in site.audit(action=action)]


def test_downloads_of_checkpoints_are_audited_once_for_each_caller(site: Any, experiment_id: str) -> None:
    one, other = a_user(site, Role.VIEWER), a_user(site, Role.VIEWER)
    base = f"{URL}/experiments/{experiment_id}"
    rows = one.client.get(f"{base}/artifacts").json()["items"]
    assert told(site, "checkpoint.downloaded") == [], "a list takes nothing out"
    one.client.head(rows[0]["href"]).raise_for_status()
    assert told(site, "checkpoint.downloaded") == [], "HEAD sends no bytes"
    for _ in range(5):
        for row in rows:
            one.client.get(row["href"], headers={"Range": "bytes=0-3"}).raise_for_status()
    other.client.get(rows[0]["href"]).raise_for_status()
    assert told(site, "checkpoint.downloaded") == [
        (one.id, experiment_id, {"round": 1}),
        (one.id, experiment_id, {"round": 2}),
        (other.id, experiment_id, {"round": 1}),
    ]


def test_downloads_of_updates_are_audited_and_a_participants_count_as_one(site: Any, experiment_id: str) -> None:
    reader = a_user(site, Role.VIEWER)
    member = site.client(site.enrol(experiment_id))
    for client in (reader.client, member):
        for number in (1, 2, 1):
            client.get(f"{URL}/experiments/{experiment_id}/updates/{number}").raise_for_status()
    first, second, third = told(site, "update.downloaded")
    assert [first, second] == [(reader.id, experiment_id, {"round": number}) for number in (1, 2)]
    assert third[0].startswith("par_")
    assert third[1:] == (experiment_id, {"round": 1})


def test_what_is_refused_is_not_audited(site: Any, experiment_id: str) -> None:
    stranger = a_user(site, Role.RESEARCHER, project=None)
    for path in ("updates/1", "artifacts/art_1"):
        assert stranger.client.get(f"{URL}/experiments/{experiment_id}/{path}").status_code == 404
    assert told(site, "update.downloaded") == told(site, "checkpoint.downloaded") == []


def test_after_an_hour_a_download_is_told_again(site: Any, experiment_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in (3600.0, 0.0):
        monkeypatch.setattr("ferret_api.downloads.PAUSE_SECONDS", seconds)
        site.admin.get(f"{URL}/experiments/{experiment_id}/updates/1").raise_for_status()
    assert len(told(site, "update.downloaded")) == 2
