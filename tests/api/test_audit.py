"""What administrators do is written down with it; the log is listed, and whoever reads it can verify it."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.audit import AuditEntry, Head, verify
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources import system
from ferret_db.repositories import audit
from ferret_sdk.http.transport import read_model
from tests.refusals import refused

URL = "/api/v1/audit"
SPEC = {
    "name": "x",
    "model": {"source": "/m", "revision": "1" * 40},
    "dataset": {"name": "jsonl", "train": "/d"},
    "participants": {"simulated": 1},
}


def entries(site: Any, **query: Any) -> list[dict[str, Any]]:
    """All, the oldest first, by pages of three."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        query = {"order": "oldest", "limit": 3, **query} | ({"cursor": cursor} if cursor else {})
        page = site.admin.get(URL, params=query).json()
        found += page["items"]
        if (cursor := page["next_cursor"]) is None:
            return found


def told(site: Any, **query: Any) -> list[str]:
    return [entry["action"] for entry in entries(site, **query)]


def submit(site: Any, **headers: str) -> str:
    return site.admin.post("/api/v1/experiments", json=SPEC, headers=headers).json()["id"]


@pytest.fixture
def open_roots(make_settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferret_api.experiments.service.require_roots", lambda *_: None)


@pytest.mark.usefixtures("open_roots")
def test_every_action_on_an_experiment_is_told_once(site: Any) -> None:
    first = submit(site, **{"Idempotency-Key": "once"})
    assert submit(site, **{"Idempotency-Key": "once"}) == first
    site.start(first)
    for verb in ("pause", "pause", "resume", "resume"):
        site.move(first, verb).raise_for_status()
    for _ in range(2):
        site.move(first, "extend", json={"rounds": 2, "expected_rounds": site.show(first)["rounds"]})
    clone = site.admin.post(
        f"/api/v1/experiments/{first}:clone", json={}, headers={"Content-Type": "application/merge-patch+json"}
    )
    for verb in ("cancel", "cancel", "archive", "archive", "unarchive", "unarchive"):
        site.move(first, verb).raise_for_status()
    site.admin.delete(f"/api/v1/experiments/{first}").raise_for_status()
    assert told(site, subject=first) == [
        f"experiment.{done}"
        for done in (
            "submitted",
            "paused",
            "resumed",
            "extended",
            "extended",
            "cancelled",
            "archived",
            "unarchived",
            "deleted",
        )
    ]
    (cloned,) = entries(site, action="experiment.cloned")
    assert (cloned["subject"], cloned["detail"]["cloned_from"]) == (clone.json()["id"], first)
    (submitted,) = entries(site, action="experiment.submitted")
    assert submitted["actor"] == "admin"
    assert submitted["detail"]["model"] == "/m"
    assert submitted["detail"]["revision"] == "1" * 40


@pytest.mark.usefixtures("open_roots")
def test_what_is_refused_or_fails_is_not_told(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment_id = submit(site)
    assert site.move(experiment_id, "archive").status_code == 409
    monkeypatch.setattr(audit, "record", fail)
    assert site.move(experiment_id, "cancel").status_code == 500
    monkeypatch.undo()
    assert site.show(experiment_id)["state"] == "queued", "no action without its entry"
    assert told(site) == ["experiment.submitted"]


def fail(*_: Any, **__: Any) -> None:
    raise FerretError("internal", "the log cannot be written")


def test_sessions_are_told_by_a_name_that_opens_nothing(site: Any) -> None:
    browser = site.browser()
    for _ in range(2):
        browser.delete("/api/v1/session")
    opened, closed = entries(site)
    assert (opened["action"], closed["action"]) == ("session.opened", "session.closed")
    assert opened["subject"] == closed["subject"]
    assert opened["subject"].startswith("ses_")
    assert opened["detail"] == {"address": "testclient", "link": False}
    assert site.context.admin.value not in site.admin.get(URL).text


def test_failed_sign_ins_are_told_once_a_minute_for_each_address(site: Any) -> None:
    for _ in range(5):
        assert site.client().post("/api/v1/session", json={"token": "wrong" * 8}).status_code == 401
    (failed,) = entries(site)
    assert (failed["action"], failed["actor"]) == ("sign_in.failed", "nobody")
    assert failed["detail"] == {"address": "testclient", "unlisted": 0}
    assert site.context.failed_sign_ins.count("203.0.113.9") == 4
    assert "wrong" not in site.admin.get(URL).text


def test_many_addresses_do_not_make_the_log_long(site: Any) -> None:
    told = [site.context.failed_sign_ins.count(f"203.0.113.{i}") for i in range(100)]
    assert sum(each is not None for each in told) == 60


def test_the_log_is_listed_newest_first_and_filtered(site: Any) -> None:
    site.browser()
    site.browser()
    site.client().post("/api/v1/session", json={"token": "wrong" * 8})
    newest = site.admin.get(URL).json()["items"]
    assert [entry["number"] for entry in newest] == [3, 2, 1]
    assert told(site, actor="admin") == ["session.opened"] * 2
    assert told(site, actor="somebody") == []
    assert site.admin.get(URL, params={"order": "sideways"}).status_code == 422
    assert site.client(site.enrol(site.running())).get(URL).status_code == 403


def test_what_the_api_answers_verifies_and_a_change_of_any_word_shows(either_site: Any) -> None:
    for _ in range(4):
        either_site.browser()
    found = [read_model(system.AuditEntry, entry) for entry in entries(either_site)]
    chain = [AuditEntry(*(getattr(entry, name) for name in AuditEntry._fields)) for entry in found]
    head = Head(**either_site.admin.get(f"{URL}/head").json())
    assert verify(chain, head) == len(chain) >= 4
    changed = chain[1]._replace(detail={**chain[1].detail, "address": "192.0.2.1"})
    with refused("audit.broken", "number = 2"):
        verify([chain[0], changed, *chain[2:]], head)
