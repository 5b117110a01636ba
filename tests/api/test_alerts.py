"""Alerts: real posts to a real receiver, and what becomes of them when it fails."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from ferret_api.alerts import webhook
from ferret_api.alerts.addresses import Allowed
from ferret_api.alerts.dispatcher import BACK_OFF_SECONDS, STALL_LOOK_SECONDS, Dispatcher
from ferret_core.protocol.errors import FerretError
from ferret_core.rounds.early_stopping import BestRound, EarlyStop
from ferret_db.engine import lifecycle, stalls
from ferret_db.repositories import alerts
from ferret_db.repositories.alerts import Claimed
from ferret_db.tables import AlertDelivery, Experiment
from tests.api.conftest import Site, open_site
from tests.api.receiver import Receiver, eventually, is_signed

URL = "/api/v1/projects/default/alerts"
NEVER = 3600.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


@pytest.fixture
def open_to_loopback(make_settings: Callable[..., Any]) -> Iterator[Site]:
    """A service whose operator lets webhooks lead to this machine."""
    settings = make_settings(alert_networks="127.0.0.0/8", alert_seconds=0.05, public_url="https://ferret.example.org")
    with open_site(settings) as opened:
        yield opened


@pytest.fixture
def quiet(make_settings: Callable[..., Any]) -> Iterator[Site]:
    """One that sends nothing by itself within a test."""
    with open_site(make_settings(alert_networks="127.0.0.0/8", alert_seconds=NEVER)) as opened:
        yield opened


def add(site: Site, address: str, kind: str = "webhook", **body: Any) -> dict[str, Any]:
    answer = site.admin.post(URL, json={"kind": kind, "address": address, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


def deliveries(site: Site) -> list[dict[str, Any]]:
    (alert,) = site.admin.get(URL).json()["items"]
    return alert["deliveries"]


def cancelled(site: Site, **changes: Any) -> str:
    experiment_id = site.submit(**changes)
    assert site.move(experiment_id, "cancel").status_code == 200
    return experiment_id


def test_an_end_is_posted_once_signed_with_what_people_want_to_know(open_to_loopback: Site, receiver: Receiver) -> None:
    site = open_to_loopback
    alert = add(site, f"{receiver.url}/hook?key=1")
    experiment_id = cancelled(site, name="hearts")
    (got,) = eventually(lambda: receiver.got)
    assert is_signed(got, alert["secret"])
    assert not is_signed(got._replace(body=got.body + b" "), alert["secret"])
    assert not is_signed(got, webhook.new_secret())
    message = got.message
    assert (message["version"], message["type"]) == (1, "experiment.cancelled")
    told = {name: message["data"][name] for name in ("id", "name", "project", "state", "round", "rounds", "url")}
    assert told == {
        "id": experiment_id,
        "name": "hearts",
        "project": "default",
        "state": "cancelled",
        "round": 0,
        "rounds": 3,
        "url": f"https://ferret.example.org/experiments/{experiment_id}",
    }
    (delivery,) = eventually(lambda: [each for each in deliveries(site) if each["state"] == "delivered"])
    assert (delivery["id"], delivery["status"], delivery["attempts"]) == (got.headers["webhook-id"], 204, 1)
    site.move(experiment_id, "cancel")
    time.sleep(0.5)
    assert len(receiver.got) == 1


def test_each_end_has_its_event_and_only_those_asked_for_are_told(quiet: Site, receiver: Receiver) -> None:
    add(quiet, receiver.url)
    add(quiet, receiver.url, events=["failed", "failed"])
    ids = [quiet.running() for _ in range(3)]
    stop = EarlyStop(
        2, BestRound("eval_loss", 1, 0.5), "stopped early: eval_loss has not improved for 1 round; best in round 1"
    )
    with quiet.database.begin() as s:
        lifecycle.complete(s, ids[0])
        lifecycle.complete(s, ids[1], stop)
        lifecycle.fail(s, ids[2], FerretError("model.invalid", "no such model"))
    every, failed = quiet.admin.get(URL).json()["items"]
    assert {each["event"] for each in every["deliveries"]} == {"completed", "stopped", "failed"}
    assert [each["event"] for each in failed["deliveries"]] == ["failed"]
    assert failed["events"] == ["failed"]
    with quiet.database.read() as s:
        details = {row.event: row.message["data"]["detail"] for row in s.scalars(select(AlertDelivery))}
    assert details == {"completed": None, "stopped": stop.detail, "failed": "no such model"}


def test_a_refused_post_is_repeated_under_its_id(open_to_loopback: Site, receiver: Receiver) -> None:
    site = open_to_loopback
    receiver.answers.append(500)
    add(site, receiver.url)
    cancelled(site)
    (delivery,) = eventually(lambda: [each for each in deliveries(site) if each["error"]])
    assert (delivery["state"], delivery["status"], delivery["error"]) == ("waiting", 500, "answered 500")
    hurry(site)
    eventually(lambda: deliveries(site)[0]["state"] == "delivered")
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert len(receiver.got) == 2
    assert deliveries(site)[0]["error"] is None


def test_messages_are_kept_for_a_month_and_until_they_are_sent(quiet: Site) -> None:
    add(quiet, "https://hooks.example.org/ferret")
    for _ in range(3):
        cancelled(quiet)
    old, waiting, _ = deliveries(quiet)
    with quiet.database.begin() as s:
        month_ago = quiet.database.now(s) - timedelta(days=31)
        either = AlertDelivery.id.in_([old["id"], waiting["id"]])
        s.execute(update(AlertDelivery).where(either).values(created_at=month_ago))
        s.execute(update(AlertDelivery).where(AlertDelivery.id == old["id"]).values(due_at=None))
    cancelled(quiet)
    left = {each["id"] for each in deliveries(quiet)}
    assert len(left) == 3
    assert waiting["id"] in left
    assert old["id"] not in left


def hurry(site: Site) -> None:
    """What waits is due now."""
    with site.database.begin() as s:
        now = site.database.now(s)
        s.execute(update(AlertDelivery).where(AlertDelivery.due_at.is_not(None)).values(due_at=now))


def test_it_is_given_up_after_a_day(quiet: Site) -> None:
    alert = add(quiet, "http://127.0.0.1:1/")
    assert 23 * 3600 < sum(BACK_OFF_SECONDS) < 25 * 3600
    cancelled(quiet)
    with quiet.database.begin() as s:
        s.execute(update(AlertDelivery).values(attempts=len(BACK_OFF_SECONDS)))
    turn(quiet)
    (delivery,) = deliveries(quiet)
    assert (delivery["state"], delivery["due_at"]) == ("failed", None)
    assert "ConnectError" in delivery["error"]
    assert alert["deliveries"] == []


def turn(site: Site) -> None:
    """One turn of the dispatcher of another process, which starts from nothing but the database."""

    async def once() -> None:
        dispatcher = Dispatcher(site.context)
        for claimed in dispatcher._claim():
            await dispatcher._deliver(claimed)

    asyncio.run(once())


def test_who_is_killed_between_commit_and_delivery_leaves_it_to_the_next(quiet: Site, receiver: Receiver) -> None:
    add(quiet, receiver.url)
    cancelled(quiet)
    with quiet.database.begin() as s:
        (claimed,) = alerts.claim(s, 10, 60)  # and then nothing: the process is gone
    turn(quiet)
    assert receiver.got == [], "somebody may still be at it"
    hurry(quiet)
    turn(quiet)
    assert [got.headers["webhook-id"] for got in receiver.got] == [claimed.delivery.id]
    turn(quiet)
    assert len(receiver.got) == 1


def test_a_claim_lasts_as_long_as_its_attempt(quiet: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail waits for a thread, and a slow server answers each of many exchanges in time."""
    add(quiet, receiver.url)
    cancelled(quiet)
    renewed = list[bool]()

    async def send(self: Dispatcher, claimed: Claimed) -> int:
        hurry(quiet)  # as if the attempt had taken a minute
        self._renewed = 0.0
        for _ in range(200):
            await asyncio.sleep(0.02)
            with quiet.database.read() as s:
                if not alerts.due(s):
                    break
        else:
            renewed.append(False)
        renewed.append(True)
        return 200

    async def run() -> None:
        own = Dispatcher(quiet.context)
        own._pause = lambda: asyncio.sleep(0.02)  # type: ignore[method-assign]
        task = asyncio.create_task(own.run())
        while not renewed:
            await asyncio.sleep(0.02)
        task.cancel()

    monkeypatch.setattr(Dispatcher, "_send", send)
    asyncio.run(run())
    assert renewed == [True]


def test_a_late_result_of_an_attempt_that_was_taken_over_does_not_count(quiet: Site, receiver: Receiver) -> None:
    add(quiet, receiver.url)
    cancelled(quiet)
    with quiet.database.begin() as s:
        (first,) = alerts.claim(s, 10, -1)
    with quiet.database.begin() as s:
        alerts.claim(s, 10, 60)
        alerts.settle(s, first.delivery, status=None, error="late", again_seconds=None)
    assert deliveries(quiet)[0]["error"] is None


def test_an_alert_disabled_during_an_attempt_is_not_tried_again(quiet: Site, receiver: Receiver) -> None:
    alert = add(quiet, receiver.url)
    cancelled(quiet)
    with quiet.database.begin() as s:
        (claimed,) = alerts.claim(s, 10, 60)
        alerts.switch(s, alert["id"], enabled=False)
    with quiet.database.begin() as s:
        alerts.settle(s, claimed.delivery, status=None, error="no answer", again_seconds=0)
    hurry(quiet)
    with quiet.database.begin() as s:
        assert alerts.claim(s, 10, 60) == []


@pytest.mark.parametrize("path", ["/hang", "/slow"])
def test_who_does_not_answer_holds_up_nobody(
    open_to_loopback: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(webhook, "SECONDS", 1.0)
    site = open_to_loopback
    add(site, receiver.url + path)
    experiment_id = site.running()
    cancelled(site)
    eventually(lambda: receiver.got)
    site.committed(experiment_id)  # rounds go on meanwhile
    (delivery,) = eventually(lambda: [each for each in deliveries(site) if each["error"]])
    assert delivery["error"] == "no answer within 1 s"
    assert delivery["state"] == "waiting"


def test_redirections_are_not_followed(quiet: Site, receiver: Receiver) -> None:
    add(quiet, f"{receiver.url}/elsewhere")
    cancelled(quiet)
    turn(quiet)
    assert [got.path for got in receiver.got] == ["/elsewhere"]
    assert deliveries(quiet)[0]["error"] == "answered 307, and redirections are not followed"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.5", "192.168.1.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "fd00::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.5", "64:ff9b::7f00:1", "2002:7f00:1::1", "100.64.0.1",
        "64:ff9b:1::7f00:1", "::127.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8", "fec0::1",
    ],
)  # fmt: skip
def test_private_addresses_are_refused(address: str) -> None:
    assert not Allowed("").holds(ip_address(address))


def test_public_and_allowed_addresses_are_not() -> None:
    assert Allowed("").holds(ip_address("93.184.216.34"))
    assert Allowed("").holds(ip_address("2606:2800:220:1:248:1893:25c8:1946"))
    allowed = Allowed("10.1.0.0/16, fd00::/8")
    assert allowed.holds(ip_address("10.1.2.3"))
    assert allowed.holds(ip_address("::ffff:10.1.2.3"))
    assert allowed.holds(ip_address("fd00::1"))
    assert not allowed.holds(ip_address("10.2.0.1"))


def test_a_name_is_looked_up_when_it_is_used(site: Site, receiver: Receiver) -> None:
    """Whatever it led to when it was added, and whatever else looks it up."""
    add(site, receiver.url.replace("127.0.0.1", "localhost"))
    cancelled(site)
    turn(site)
    assert receiver.got == []
    assert "localhost': has no public address" in deliveries(site)[0]["error"]


def test_nobody_learns_which_internal_names_exist(site: Site) -> None:
    for name in ("localhost", "no-such-name.invalid"):
        add(site, f"http://{name}/")
    cancelled(site)
    turn(site)
    alerts = site.admin.get(URL).json()["items"]
    errors = {each["error"].partition(": ")[2] for alert in alerts for each in alert["deliveries"]}
    assert len(errors) == 1, errors


@pytest.mark.parametrize(
    "address",
    [
        *("ftp://example.org", "https://", "https://a:b@example.org", "https://x:99999", "x"),
        *("http://127.0.0.1:9/", "http://[::1]/", "http://169.254.169.254/latest/"),
    ],
)
def test_what_is_no_webhook_or_a_private_one_is_refused_at_once(site: Site, address: str) -> None:
    answer = site.admin.post(URL, json={"kind": "webhook", "address": address})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "address")


def test_secrets_are_told_once(quiet: Site, receiver: Receiver) -> None:
    alert = add(quiet, f"{receiver.url}/services/TEAM/secret?token=x")
    cancelled(quiet)
    shown = quiet.admin.get(URL).text
    assert f"{receiver.url}/…" in shown
    for secret in (alert["secret"], "TEAM", "token=x"):
        assert secret not in shown
        assert secret not in quiet.admin.get("/api/v1/audit").text


def test_a_test_message_and_an_end_to_it(quiet: Site, receiver: Receiver) -> None:
    alert = add(quiet, receiver.url)
    sent = quiet.admin.post(f"{URL}/{alert['id']}:test")
    assert (sent.status_code, sent.json()["state"]) == (202, "waiting")
    turn(quiet)
    assert receiver.got[0].message["type"] == "test"
    assert is_signed(receiver.got[0], alert["secret"])
    quiet.admin.post(f"{URL}/{alert['id']}:test")
    assert quiet.admin.delete(f"{URL}/{alert['id']}").status_code == 204
    turn(quiet)
    assert len(receiver.got) == 1
    assert quiet.admin.delete(f"{URL}/{alert['id']}").json()["code"] == "alert.not_found"
    actions = [entry["action"] for entry in quiet.audit(subject=alert["id"])]
    assert actions == ["alert.created", "alert.tested", "alert.tested", "alert.deleted"]


def test_one_experiment_alone_can_be_told_of(quiet: Site, receiver: Receiver) -> None:
    mine, other = quiet.submit(), quiet.submit()
    made = add(quiet, receiver.url, experiment_id=mine)
    assert (made["experiment_id"], made["project"], made["enabled"]) == (mine, "default", True)
    quiet.move(other, "cancel")
    assert deliveries(quiet) == []
    quiet.move(mine, "cancel")
    assert [each["event"] for each in deliveries(quiet)] == ["cancelled"]
    assert quiet.admin.delete(f"/api/v1/experiments/{other}").status_code == 204
    assert len(quiet.admin.get(URL).json()["items"]) == 1
    assert quiet.admin.delete(f"/api/v1/experiments/{mine}").status_code == 204
    assert quiet.admin.get(URL).json()["items"] == [], "an alert ends with what it is about"


def test_an_experiment_that_the_project_has_not_is_none_to_be_told_of(quiet: Site, receiver: Receiver) -> None:
    quiet.admin.post("/api/v1/projects", json={"name": "hearts"}).raise_for_status()
    theirs = quiet.submit(project="hearts")
    for unknown in (theirs, "exp_0000000000000000"):
        body = {"kind": "webhook", "address": receiver.url, "experiment_id": unknown}
        answer = quiet.admin.post(URL, json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "experiment.not_found")


def test_one_that_is_off_is_told_nothing_and_keeps_its_key(quiet: Site, receiver: Receiver) -> None:
    alert = add(quiet, receiver.url)
    address = f"{URL}/{alert['id']}"
    cancelled(quiet)
    off = quiet.admin.patch(address, json={"enabled": False}).json()
    assert (off["id"], off["enabled"]) == (alert["id"], False)
    (given_up,) = deliveries(quiet)
    assert (given_up["state"], given_up["due_at"]) == ("failed", None)
    cancelled(quiet)
    assert len(deliveries(quiet)) == 1
    quiet.admin.post(f"{address}:test").raise_for_status()
    turn(quiet)
    assert quiet.admin.patch(address, json={"enabled": True}).json()["enabled"] is True
    cancelled(quiet)
    turn(quiet)
    assert [got.message["type"] for got in receiver.got] == ["test", "experiment.cancelled"]
    assert all(is_signed(got, alert["secret"]) for got in receiver.got)


def test_an_alert_of_another_project_is_not_found_in_ours(quiet: Site, receiver: Receiver) -> None:
    alert = add(quiet, receiver.url)
    quiet.admin.post("/api/v1/projects", json={"name": "hearts"}).raise_for_status()
    cancelled(quiet, project="hearts")
    assert deliveries(quiet) == []
    elsewhere = URL.replace("default", "hearts")
    assert quiet.admin.post(f"{elsewhere}/{alert['id']}:test").json()["code"] == "alert.not_found"
    body = {"kind": "webhook", "address": receiver.url}
    assert quiet.admin.post(elsewhere, json=body).status_code == 201
    quiet.admin.post(f"{elsewhere}/{quiet.admin.get(elsewhere).json()['items'][0]['id']}:test")
    refused = quiet.admin.delete("/api/v1/projects/hearts")
    assert refused.status_code == 409
    assert quiet.admin.get(elsewhere).json()["items"], "nothing went with a project that stayed"


def test_a_standstill_is_told_once_until_it_moves_again(quiet: Site, receiver: Receiver) -> None:
    add(quiet, receiver.url, events=["stalled"])
    experiment_id = quiet.running(participants={"edge": 1})  # and nobody joins; nor does any worker run
    stalls.announce_stalls(quiet.database, 600)
    assert deliveries(quiet) == [], "it may yet move"
    quiet.expire_all(Experiment, "created_at", 900, Experiment.id == experiment_id)
    for _ in range(2):
        stalls.announce_stalls(quiet.database, 600)
    (delivery,) = deliveries(quiet)
    assert delivery["event"] == "stalled"
    turn(quiet)
    assert "no aggregation worker is running" in receiver.got[0].message["data"]["detail"]
    assert receiver.got[0].message["type"] == "experiment.stalled"
    with quiet.database.begin() as s:
        lifecycle.pause(s, experiment_id)  # a paused one waits for nothing
    stalls.announce_stalls(quiet.database, 600)
    with quiet.database.begin() as s:
        lifecycle.resume(s, experiment_id)
    for _ in range(2):
        stalls.announce_stalls(quiet.database, 600)
    assert len(deliveries(quiet)) == 2, "since it was paused it stands still anew"


@pytest.mark.slow
def test_the_dispatcher_looks_for_standstills_itself(make_settings: Callable[..., Any], receiver: Receiver) -> None:
    assert STALL_LOOK_SECONDS <= 60
    settings = make_settings(alert_networks="127.0.0.0/8", alert_seconds=0.05, alert_stalled_seconds=0)
    with open_site(settings) as site:
        experiment_id = site.running()
        site.expire_all(Experiment, "created_at", 900, Experiment.id == experiment_id)
        add(site, receiver.url)
        eventually(lambda: receiver.got, seconds=5 * STALL_LOOK_SECONDS)


def test_without_a_mail_server_no_mail_is_promised(site: Site) -> None:
    answer = site.admin.post(URL, json={"kind": "email", "address": "ada@example.org"})
    assert (answer.status_code, answer.json()["code"]) == (409, "alert.no_mail")


def test_the_receiver_of_the_documentation_tells_genuine_messages_from_others(quiet: Site, tmp_path: Path) -> None:
    document = (Path(__file__).parents[2] / "docs/operators/alerts.md").read_text()
    (program,) = re.findall(r"```python\n(import base64.*?)```", document, re.DOTALL)
    (tmp_path / "receiver.py").write_text(program)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    alert = add(quiet, f"http://127.0.0.1:{port}")
    environment = {**os.environ, "WEBHOOK_SECRET": alert["secret"], "PORT": port}
    command = [sys.executable, "receiver.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            eventually(lambda: listens(int(port)))
            cancelled(quiet)
            turn(quiet)
            (delivery,) = deliveries(quiet)
            assert (delivery["state"], delivery["status"]) == ("delivered", 204)
            assert process.stdout is not None
            assert process.stdout.readline().split() == [delivery["id"], "experiment.cancelled"]
            forged = asyncio.run(
                webhook.post(f"http://127.0.0.1:{port}", webhook.new_secret(), "msg_1", b"{}", Allowed("127.0.0.0/8"))
            )
            assert forged == 401
        finally:
            process.terminate()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
