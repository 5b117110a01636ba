"""Groups of experiments over HTTP: mean and deviation over seeds, pages, and what is in one."""

from __future__ import annotations

from statistics import stdev
from typing import Any

from ferret_core.protocol.roles import Role
from ferret_db.repositories import metrics
from tests.api.people import a_user

URL = "/api/v1/experiments"
GROUPS = f"{URL}/groups"


def measured(site: Any, losses: dict[int, float], **changes: Any) -> list[str]:
    """Ids of experiments with these seeds, each with its loss."""
    ids = [site.submit(seed=seed, name=f"seed {seed}", **changes) for seed in losses]
    with site.database.begin() as s:
        for id, loss in zip(ids, losses.values(), strict=True):
            metrics.add(s, id, 0, {"eval_loss": loss})
    return ids


def test_a_group_tells_mean_and_deviation_and_leads_to_its_experiments(site: Any) -> None:
    ids = measured(site, {1: 2.0, 2: 2.5, 3: 4.0})
    measured(site, {1: 7.0}, rounds=9)
    nine, three = site.admin.get(GROUPS).json()["items"]
    assert (nine["count"], three["count"], three["states"]) == (1, 3, {"queued": 3})
    assert three["metrics"]["eval_loss"]["last"] == {"mean": 8.5 / 3, "sd": stdev([2.0, 2.5, 4.0]), "count": 3}
    assert nine["metrics"]["eval_loss"]["best"] == {"mean": 7.0, "sd": None, "count": 1}
    assert three["newest"]["id"] == ids[-1]
    inside = site.admin.get(URL, params={"seed_group": three["key"], "sort": "seed"}).json()["items"]
    assert [item["id"] for item in inside] == ids
    assert {item["seed_group"] for item in inside} == {three["key"]}


def test_pages_follow_each_other_in_the_order_of_the_mean(site: Any) -> None:
    for rounds, losses in ((4, {1: 1.0, 2: 9.0}), (5, {1: 4.0}), (6, {1: 2.0, 2: 3.0})):
        measured(site, losses, rounds=rounds)
    found: list[int] = []
    query: dict[str, Any] = {"sort": "-eval_loss", "limit": 1}
    while True:
        page = site.admin.get(GROUPS, params=query).json()
        found += [group["newest"]["rounds"] for group in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert found == [4, 5, 6]


def test_members_see_groups_of_their_projects_alone(site: Any) -> None:
    site.admin.post("/api/v1/projects", json={"name": "lungs"}).raise_for_status()
    measured(site, {1: 1.0, 2: 2.0})
    measured(site, {3: 3.0}, project="lungs")
    person = a_user(site, Role.VIEWER, "lungs")
    (group,) = person.client.get(GROUPS).json()["items"]
    assert (group["newest"]["project"], group["count"]) == ("lungs", 1)
    assert len(site.admin.get(GROUPS).json()["items"]) == 2


def test_the_bytes_of_an_upload_are_those_of_the_last_round(site: Any) -> None:
    experiment_id = site.running()
    assert site.admin.get(URL).json()["items"][0]["bytes_per_upload"] is None
    site.committed(experiment_id)
    (item,) = site.admin.get(URL, params={"sort": "-bytes_per_upload"}).json()["items"]
    assert item["bytes_per_upload"] == item["bytes_up"] > 0, "of one round with one participant"
