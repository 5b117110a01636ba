"""Groups of experiments over HTTP: mean and deviation over seeds, pages, and what is in one."""

from __future__ import annotations

from statistics import stdev
from typing import Any

from ferret_db.repositories import metrics

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
    page = site.admin.get(GROUPS, params={"limit": 1}).json()
    assert page["items"] == [nine]
    assert site.admin.get(GROUPS, params={"limit": 1, "cursor": page["next_cursor"]}).json()["items"] == [three]
    assert (nine["count"], three["count"], three["states"]) == (1, 3, {"queued": 3})
    assert three["metrics"]["eval_loss"]["last"] == {"mean": 8.5 / 3, "sd": stdev([2.0, 2.5, 4.0]), "count": 3}
    assert nine["metrics"]["eval_loss"]["best"] == {"mean": 7.0, "sd": None, "count": 1}
    assert three["newest"]["id"] == ids[-1]
    inside = site.admin.get(URL, params={"seed_group": three["key"], "sort": "seed"}).json()["items"]
    assert [item["id"] for item in inside] == ids
    assert {item["seed_group"] for item in inside} == {three["key"]}


def test_the_bytes_of_an_upload_are_those_of_the_last_round(site: Any) -> None:
    experiment_id = site.running()
    assert site.admin.get(URL).json()["items"][0]["bytes_per_upload"] is None
    site.committed(experiment_id)
    (item,) = site.admin.get(URL, params={"sort": "-bytes_per_upload"}).json()["items"]
    assert item["bytes_per_upload"] == item["bytes_up"] > 0, "of one round with one participant"
