from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def experiment(site: Any) -> tuple[str, list[bytes]]:
    experiment_id = site.running()
    return f"/api/v1/experiments/{experiment_id}", [site.committed(experiment_id, number) for number in (1, 2, 3)]


def test_the_ledger_in_order_and_from_a_round_on(site: Any, experiment: tuple[str, list[bytes]]) -> None:
    address, updates = experiment
    items = site.admin.get(f"{address}/ledger").json()["items"]
    assert [item["record"]["round"] for item in items] == [1, 2, 3]
    assert [item["update_size"] for item in items] == [len(update) for update in updates]
    assert all(len(item["hash"]) == 64 for item in items)
    assert site.admin.get(f"{address}/ledger", params={"after": 1, "limit": 1}).json()["items"] == items[1:2]
    assert site.admin.get(f"{address}/ledger", params={"after": 3}).json()["items"] == []


def test_the_update_of_each_round(site: Any, experiment: tuple[str, list[bytes]]) -> None:
    address, updates = experiment
    for number, update in enumerate(updates, start=1):
        answer = site.admin.get(f"{address}/updates/{number}")
        assert answer.content == update
        assert answer.headers["Content-Type"] == "application/octet-stream"
        head = site.admin.head(f"{address}/updates/{number}")
        assert (head.status_code, head.content) == (200, b"")
        for name in ("Content-Length", "Content-Type", "ETag"):
            assert head.headers[name] == answer.headers[name]


def test_a_round_that_is_not_committed_has_no_update(site: Any, experiment: tuple[str, list[bytes]]) -> None:
    answer = site.admin.get(f"{experiment[0]}/updates/4")
    assert answer.status_code == 404
    assert answer.json()["code"] == "round.not_found"


def test_a_damaged_update_is_never_handed_out(site: Any, experiment: tuple[str, list[bytes]]) -> None:
    digest = site.admin.get(f"{experiment[0]}/updates/1").headers["ETag"].strip('"')
    (path,) = (site.context.settings.home / "storage").rglob(digest)
    path.write_bytes(b"something else")
    answer = site.admin.get(f"{experiment[0]}/updates/1")
    assert answer.status_code == 500
    assert answer.json()["code"] == "storage.corrupt"


def test_a_participant_follows_its_own_experiment(site: Any, experiment: tuple[str, list[bytes]]) -> None:
    address, updates = experiment
    member = site.client(site.enrol(address.rsplit("/", 1)[-1]))
    assert len(member.get(f"{address}/ledger").json()["items"]) == 3
    assert member.get(f"{address}/updates/3").content == updates[2]
