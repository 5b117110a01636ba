from __future__ import annotations

from typing import Any


def test_the_ledger_in_order_and_the_update_of_each_round(site: Any) -> None:
    experiment_id = site.running()
    updates = [site.committed(experiment_id, number) for number in (1, 2, 3)]
    address = f"/api/v1/experiments/{experiment_id}"
    items = site.admin.get(f"{address}/ledger").json()["items"]
    assert [item["record"]["round"] for item in items] == [1, 2, 3]
    assert [item["update_size"] for item in items] == [len(update) for update in updates]
    assert site.admin.get(f"{address}/ledger", params={"after": 1, "limit": 1}).json()["items"] == items[1:2]
    for number, update in enumerate(updates, start=1):
        answer, head = (site.admin.request(method, f"{address}/updates/{number}") for method in ("GET", "HEAD"))
        assert (answer.content, answer.headers["Content-Type"]) == (update, "application/octet-stream")
        assert (head.status_code, head.content) == (200, b"")
        for name in ("Content-Length", "Content-Type", "ETag"):
            assert head.headers[name] == answer.headers[name]
    assert site.admin.get(f"{address}/updates/4").json()["code"] == "round.not_found"
