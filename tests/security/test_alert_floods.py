"""Alerts without end, and addresses that never answer: they cost their own project alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from ferret_api.alerts import webhook
from ferret_api.limits.rate_limits import ALERT_TESTS_PER_MINUTE
from ferret_api.routers import alerts
from ferret_db.engine import alerts as engine
from ferret_db.repositories.alerts import AT_A_TURN, MOST_WAITING
from ferret_db.tables import FIRST_PROJECT, Alert, AlertDelivery
from tests.api.conftest import Site, open_site
from tests.api.receiver import Receiver, eventually
from tests.api.test_alerts import NEVER, turn
from tests.api.test_alerts import quiet as quiet
from tests.api.test_alerts import receiver as receiver

DEAD = "http://127.0.0.1:1/"


def url(project: str = FIRST_PROJECT) -> str:
    return f"/api/v1/projects/{project}/alerts"


def add(site: Site, address: str, project: str = FIRST_PROJECT) -> str:
    answer = site.admin.post(url(project), json={"kind": "webhook", "address": address})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def announce(site: Site, alert_id: str, count: int) -> None:
    """Messages of the alert, as events of experiments make them."""
    for _ in range(count):
        with site.database.begin() as s:
            engine.test(s, s.get(Alert, alert_id))


def deliveries(site: Site) -> list[AlertDelivery]:
    with site.database.read() as s:
        return list(s.scalars(select(AlertDelivery).order_by(AlertDelivery.created_at, AlertDelivery.id)))


def test_a_tarpit_keeps_no_other_projects_messages_back(
    make_settings: Callable[..., Any], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "SECONDS", NEVER)
    settings = make_settings(alert_networks="127.0.0.0/8", alert_seconds=0.05)
    with open_site(settings) as site:
        site.admin.post("/api/v1/projects", json={"name": "other"}).raise_for_status()
        announce(site, add(site, f"{receiver.url}/hang"), 50)
        eventually(lambda: receiver.got)
        announce(site, add(site, f"{receiver.url}/good", "other"), 3)
        eventually(lambda: [got.path for got in receiver.got].count("/good") == 3, seconds=15)
        assert [got.path for got in receiver.got].count("/hang") == AT_A_TURN
        receiver.closing.set()


def test_projects_take_turns_however_much_one_has_to_say(quiet: Site, receiver: Receiver) -> None:
    quiet.admin.post("/api/v1/projects", json={"name": "other"}).raise_for_status()
    announce(quiet, add(quiet, f"{receiver.url}/many"), 40)
    announce(quiet, add(quiet, f"{receiver.url}/few", "other"), 1)
    turn(quiet)
    assert sorted(got.path for got in receiver.got) == ["/few", *["/many"] * AT_A_TURN]


def test_a_project_has_a_bounded_number_of_alerts(quiet: Site) -> None:
    for _ in range(alerts.MOST):
        add(quiet, DEAD)
    answer = quiet.admin.post(url(), json={"kind": "webhook", "address": DEAD})
    assert (answer.status_code, answer.json()["code"]) == (409, "alert.too_many")
    (alert, *_) = quiet.admin.get(url()).json()["items"]
    quiet.admin.delete(f"{url()}/{alert['id']}").raise_for_status()
    add(quiet, DEAD)


def test_alerts_are_tested_a_few_times_a_minute(quiet: Site) -> None:
    tests = [f"{url()}/{add(quiet, DEAD)}:test" for _ in range(2)]
    answers = [quiet.admin.post(tests[number % 2]) for number in range(ALERT_TESTS_PER_MINUTE + 2)]
    assert [answer.status_code for answer in answers] == [202] * ALERT_TESTS_PER_MINUTE + [429] * 2
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert len(deliveries(quiet)) == ALERT_TESTS_PER_MINUTE


def test_the_newest_messages_wait_and_the_oldest_are_given_up(quiet: Site) -> None:
    announce(quiet, add(quiet, DEAD), MOST_WAITING + 5)
    found = deliveries(quiet)
    assert [row.due_at is None for row in found].count(True) == 5
    assert {row.error for row in found if row.due_at is None} == {
        f"more than {MOST_WAITING} messages waited to be sent"
    }
    assert found[-1].due_at is not None


def test_a_dead_address_is_tried_once_for_all_of_its_messages(quiet: Site) -> None:
    announce(quiet, add(quiet, DEAD), 20)
    for _ in range(5):
        turn(quiet)
    found = deliveries(quiet)
    assert sum(row.attempts for row in found) <= AT_A_TURN
    assert all(row.due_at and row.due_at > row.created_at for row in found), "all of them wait for the next try"


def test_what_has_been_tried_for_a_day_is_given_up(quiet: Site) -> None:
    announce(quiet, add(quiet, DEAD), 20)
    with quiet.database.begin() as s:
        s.execute(update(AlertDelivery).values(created_at=quiet.database.now(s) - timedelta(hours=25)))
    turn(quiet)
    assert {row.due_at for row in deliveries(quiet)} == {None}
