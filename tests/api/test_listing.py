"""What the list of experiments tells of each, and how it is filtered and sorted over HTTP."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from sqlalchemy import update

from ferret_core.protocol.errors import FerretError
from ferret_db.engine import lifecycle, stalls
from ferret_db.tables import Experiment, Round

URL = "/api/v1/experiments"
START = datetime(2026, 1, 1, tzinfo=UTC)
FERRET = {"name": "ferret", "K": 64, "local": {"learning_rate": 0.5}}


def items(site: Any, **query: Any) -> list[dict[str, Any]]:
    answer = site.admin.get(URL, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def took(site: Any, experiment_id: str, *seconds: float, after: int = 0) -> None:
    """Commits one round for each of ``seconds``, which is how long the round took."""
    for number, each in enumerate(seconds, start=after + 1):
        site.committed(experiment_id, number)
        times = {"opened_at": START, "committed_at": START + timedelta(seconds=each)}
        with site.database.begin() as s:
            of = Round.experiment_id == experiment_id, Round.number == number
            s.execute(update(Round).where(*of).values(**times))


def test_an_item_has_what_people_compare_and_not_the_rest(site: Any) -> None:
    site.submit(name="plain")
    site.submit(name="ours", algorithm=FERRET, seed=7)
    item, plain = items(site)
    compared = {"K": 64, "bytes_per_round": None, "learning_rate": 0.5, "seed": 7, "participants": 2, "tags": []}
    assert compared.items() <= item.items()
    assert {"spec", "shapes", "notes", "links"}.isdisjoint(item)
    assert item["estimated_seconds_left"] is None
    assert (plain["K"], plain["bytes_per_round"]) == (None, None), "options that the algorithm does not have"


def test_a_failed_one_says_why_in_a_few_words(site: Any) -> None:
    experiment_id = site.running()
    with site.database.begin() as s:
        lifecycle.fail(s, experiment_id, FerretError("model.invalid", "/models/toy holds no config.json"))
    (item,) = items(site)
    assert item["error"] == {"code": "model.invalid", "title": "The model cannot be loaded"}


def test_those_that_nothing_can_move_are_found_one_by_one_and_in_groups(
    either_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls, "BROKER_SECONDS", 3600)  # no broker runs here, however long the requests take
    site = either_site
    tag = f"stalls-{secrets.token_hex(4)}"  # other tests' experiments in the same database have stalled as well
    stalled, waiting = site.running(name="waits"), site.submit(name="has just come", seed=7)
    for each in (stalled, waiting):
        site.admin.patch(f"{URL}/{each}", json={"tags": [tag]}).raise_for_status()
    site.expire(Experiment, "created_at", stalled, 3600)  # an hour, and no worker was ever seen
    assert [item["name"] for item in items(site, stalled=True, tag=tag)] == ["waits"]
    assert items(site, stalled=True, tag=tag, name="come") == []
    groups = site.admin.get(f"{URL}/groups", params={"stalled": True, "tag": tag}).json()["items"]
    assert [(group["count"], group["newest"]["name"]) for group in groups] == [(1, "waits")]


def test_the_seconds_left_follow_the_last_rounds(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "stall", Mock(return_value=None))
    experiment_id = site.running(rounds=9)
    assert items(site)[0]["estimated_seconds_left"] is None
    took(site, experiment_id, 1000, 10, 20, 30)
    assert items(site)[0]["estimated_seconds_left"] == pytest.approx(5 * 25)
    took(site, experiment_id, 40, 50, after=4)
    assert items(site)[0]["estimated_seconds_left"] == pytest.approx(3 * 30)
    site.admin.post(f"{URL}/{experiment_id}:cancel").raise_for_status()
    assert items(site)[0]["estimated_seconds_left"] is None


def test_those_that_end_first_come_first_and_those_without_an_estimate_last(site: Any) -> None:
    slow, quick, new = (site.running(rounds=rounds) for rounds in (9, 3, 9))
    took(site, slow, 7)
    took(site, quick, 7)
    assert [item["id"] for item in items(site, sort="left")] == [quick, slow, new]
    assert [item["id"] for item in items(site, sort="-left")] == [slow, quick, new]
    page = site.admin.get(URL, params={"sort": "left", "limit": 1}).json()
    assert [item["id"] for item in items(site, sort="left", cursor=page["next_cursor"])] == [slow, new]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("sort=name", ["a", "b", "c"]),
        ("sort=-name", ["c", "b", "a"]),
        ("tag=hearts", ["a"]),
        ("created_before=2020-01-01T00:00:00Z", []),
        ("created_after=2020-01-01T00:00:00Z&sort=name", ["a", "b", "c"]),
        ("state=queued&sort=name", ["a", "b"]),
        ("state=queued&state=cancelled&sort=name", ["a", "b", "c"]),
        ("algorithm=ferret", ["c"]),
        ("dataset=gsm8k", ["b"]),
        ("name=B", ["b"]),
        ("where=rounds>=1&where=seed<0", []),
        ("where=bytes_up<=0&sort=name", ["a", "b", "c"]),
    ],
)
def test_filters_and_orders_over_http(site: Any, query: str, names: list[str]) -> None:
    site.submit(name="b", dataset={"name": "gsm8k"})
    tagged, over = site.submit(name="a"), site.submit(name="c", algorithm=FERRET)
    site.admin.patch(f"{URL}/{tagged}", json={"tags": ["Hearts"]}).raise_for_status()
    site.move(over, "cancel").raise_for_status()
    assert [item["name"] for item in site.admin.get(f"{URL}?{query}").json()["items"]] == names


def test_the_cursor_of_the_longest_name_comes_back(site: Any) -> None:
    for _ in range(2):
        site.submit(name="\U0001f9ea" * 120)
    cursor = site.admin.get(URL, params={"sort": "name", "limit": 1}).json()["next_cursor"]
    assert len(items(site, sort="name", limit=1, cursor=cursor)) == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"sort": "rouge"}, "sort"),
        ({"sort": "--name"}, "sort"),
        ({"created_after": "2026-01-01T00:00:00"}, "created_after"),
        ({"tag": " "}, "tag.0"),
        ({"cursor": "3"}, "cursor"),
    ],
)
def test_what_is_wrong_is_named(site: Any, query: dict[str, str], field: str) -> None:
    answer = site.admin.get(URL, params=query)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
