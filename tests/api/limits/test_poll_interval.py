"""How long idle participants are told to wait: however many there are, they ask a bounded number of times a second."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean
from typing import Any

import pytest

from ferret_api.limits import poll_interval
from ferret_api.limits.poll_interval import PollInterval
from ferret_core.protocol.states import WaitReason
from ferret_db.engine.wait_reason import WaitStatus
from ferret_db.tables import Participant

SOON, LATER = WaitStatus(WaitReason.MODEL, 3), WaitStatus(WaitReason.CONTRIBUTIONS, 3, 100, 1000)


def pauses(site: Any, enrolled: int, waiting: WaitStatus | None = SOON, **sizes: Any) -> list[float]:
    """A thousand, of an experiment with so many participants."""
    experiment_id = site.submit(participants={"edge": 2})
    rows = [
        Participant(
            experiment_id=experiment_id, name=f"site-{n}", display_name=f"site-{n}", token_hash=f"{experiment_id}-{n}"
        )
        for n in range(enrolled)
    ]
    with site.database.begin() as s:
        s.add_all(rows)
    chosen = PollInterval(replace(site.context.settings.sizing, **sizes))
    with site.database.read() as s:
        chosen.count(s)
    return [chosen.seconds(waiting) for _ in range(1000)]


def test_a_few_ask_every_two_seconds_and_not_all_at_one_moment(site: Any) -> None:
    found = pauses(site, 3)
    assert mean(found) == pytest.approx(2, rel=0.1)
    assert 1 <= min(found) < 1.2
    assert 2.8 < max(found) <= 3


def test_many_make_a_bounded_number_of_requests(site: Any) -> None:
    found = pauses(site, 500, polls_per_second=5.0)
    assert 500 / mean(found) == pytest.approx(5, rel=0.1)


def test_they_wait_longer_while_no_round_is_about_to_open(site: Any) -> None:
    found = pauses(site, 500, LATER, polls_per_second=20.0)
    assert mean(found) == pytest.approx(poll_interval.PATIENCE * 500 / 20, rel=0.1)


def test_no_pause_is_longer_than_allowed(site: Any) -> None:
    found = pauses(site, 100, LATER, polls_per_second=0.1, longest_poll_seconds=60.0)
    assert 50 < max(found) <= 60
    assert min(found) < 30


def test_participants_of_experiments_that_are_over_do_not_count(site: Any) -> None:
    pauses(site, 500)
    (experiment,) = site.admin.get("/api/v1/experiments").json()["items"]
    site.move(experiment["id"], "cancel").raise_for_status()
    assert mean(pauses(site, 1, polls_per_second=5.0)) == pytest.approx(2, rel=0.1)


def test_newcomers_are_counted_after_a_while(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poll_interval, "COUNT_SECONDS", 0.0)
    site.submit(participants={"edge": 2})
    chosen = PollInterval(replace(site.context.settings.sizing, polls_per_second=1.0))
    with site.database.read() as s:
        chosen.count(s)
    assert chosen.seconds(SOON) <= 3
    pauses(site, 100)
    with site.database.read() as s:
        chosen.count(s)
    assert chosen.seconds(SOON) >= 50
    assert chosen.seconds_before_hold() >= 50


@pytest.mark.parametrize(
    ("waiting", "near"),
    [
        (WaitStatus(WaitReason.MODEL, 1), True),
        (WaitStatus(WaitReason.ROUND, 2), True),
        (WaitStatus(WaitReason.CONTRIBUTIONS, 1, 90, 100), True),
        (WaitStatus(WaitReason.CONTRIBUTIONS, 1, 89, 100), False),
        (WaitStatus(WaitReason.PARTICIPANTS, 0, 1, 2), False),
        (WaitStatus(WaitReason.RESUMPTION, 4), False),
        (WaitStatus(WaitReason.END, 9), False),
        (None, False),
    ],
)
def test_a_round_is_near_once_nearly_all_is_there(waiting: WaitStatus | None, near: bool) -> None:
    assert poll_interval.is_near(waiting) is near
