"""The pages of who looks after the service, and what others see of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from ferret_core.protocol.resources.alerts import AlertKind
from ferret_core.protocol.roles import Role
from tests.api.receiver import Receiver, is_signed

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py
PASSWORD = "correct horse battery staple"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


@pytest.fixture
def no_alerts(served: Served) -> Iterator[None]:
    """The first project has none, before the test and after it."""
    yield
    for alert in served.service.alerts.of("default"):
        served.service.alerts.delete("default", alert.id)


def sign_in_as(page: Page, served: Served, role: Role) -> str:
    """Name of a new user of the first project, who is then signed in."""
    name = f"{role}-{secrets.token_hex(4)}"
    user = served.service.people.create(name, role, PASSWORD)
    served.service.projects.add_member("default", user)
    page.goto(served.url)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password or admin token").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_test_id("account-menu").wait_for()
    return name


def choose(page: Page, entry: str) -> None:
    """Opens a page from the top bar, with the keyboard."""
    page.get_by_role("link", name=entry, exact=True).press("Enter")
    expect(page.get_by_role("link", name=entry, exact=True)).to_have_attribute("aria-current", "page")


def test_an_administrator_sees_parts_queues_and_workers(signed_in: Page, served: Served) -> None:
    page = signed_in
    choose(page, "System")
    expect(page.get_by_role("heading", name="System")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="every queue has a worker")).to_be_visible()
    expect(page.get_by_test_id("parts")).to_contain_text("sqlite")
    expect(page.get_by_test_id("queue-row")).to_have_count(3)
    hosts = [worker.host for worker in served.service.system().workers if worker.alive]
    expect(page.get_by_test_id("worker-row")).to_have_count(len(hosts))
    page.get_by_role("button", name="playground", exact=True).click()
    expect(page.get_by_test_id("worker-row")).to_have_count(1)
    page.reload()
    expect(page.get_by_test_id("worker-row")).to_have_count(1)
    expect(page.get_by_test_id("worker-row")).to_contain_text(hosts[0])
    assert page.url.endswith("/system?queue=playground")


def test_hosts_and_people_are_for_administrators_only(page: Page, served: Served, complaints: list[str]) -> None:
    complaints.append("403")
    sign_in_as(page, served, Role.RESEARCHER)
    expect(page.get_by_role("link", name="Alerts", exact=True)).to_be_visible()
    for name in ("System", "People"):
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    page.goto(f"{served.url}/system")
    expect(page.get_by_role("alert")).to_contain_text("has the role researcher, and this needs the role admin")
    expect(page.get_by_test_id("worker-row")).to_have_count(0)
    page.goto(f"{served.url}/people")
    expect(page.get_by_role("heading", name="For administrators")).to_be_visible()


def test_what_an_experiment_takes_is_below_its_curves(signed_in: Page, served: Served, finished: Any) -> None:
    page = signed_in
    page.goto(f"{served.url}/experiments/{finished.id}")
    for phase in ("Open for contributions", "Aggregation", "Evaluation"):
        expect(page.get_by_test_id("phases").get_by_text(phase, exact=True)).to_be_visible()
    expect(page.get_by_test_id("line-local_seconds")).to_have_attribute("data-points", "3")
    expect(page.get_by_test_id("line-peak_memory_bytes")).to_have_attribute("data-points", "3")
    expect(page.get_by_role("heading", name="Workers on this experiment")).to_have_count(0)  # it has ended


@pytest.mark.usefixtures("no_alerts")
@pytest.mark.slow
def test_somebody_is_told_tested_and_told_no_more(
    signed_in: Page, served: Served, receiver: Receiver, complaints: list[str]
) -> None:
    page = signed_in
    complaints.append("422")  # the first address is none that a webhook may lead to
    choose(page, "Alerts")
    command = "ferret alert create --project default --webhook https://example.org/hook"
    expect(page.get_by_text(command, exact=True)).to_be_visible()

    page.get_by_role("button", name="New alert").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Address").fill("http://169.254.1.1/hook")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_role("alert")).to_contain_text("address")
    form.get_by_label("Address").fill(f"{receiver.url}/a-secret-path")
    form.get_by_label("is cancelled").uncheck()
    form.get_by_label("Address").press("Enter")
    secret = page.get_by_test_id("alert-secret").locator("pre").inner_text()
    assert secret.startswith("whsec_")
    card = page.get_by_test_id("alert")
    expect(card).to_contain_text(receiver.url)
    expect(card).not_to_contain_text("a-secret-path")
    expect(card).not_to_contain_text("cancelled")

    card.get_by_role("button", name="Send a test").press("Enter")
    expect(card.get_by_test_id("delivery")).to_contain_text("delivered")
    expect(card.get_by_test_id("delivery")).to_contain_text("204")
    assert is_signed(receiver.got[0], secret)
    page.reload()
    expect(card.get_by_test_id("delivery")).to_contain_text("delivered")
    expect(page.get_by_test_id("alert-secret")).to_have_count(0)

    receiver.stop()
    card.get_by_role("button", name="Send a test").click()
    expect(card.get_by_test_id("delivery").first).to_contain_text("waiting")
    expect(card.get_by_test_id("delivery").first.locator(".cell-answer")).not_to_have_text("–")

    card.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Keep it").click()
    expect(card).to_have_count(1)
    card.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text(command, exact=True)).to_be_visible()
    assert served.service.alerts.of("default") == []


@pytest.mark.usefixtures("no_alerts")
def test_a_viewer_reads_and_changes_nothing(
    page: Page, served: Served, receiver: Receiver, finished: Any, waiting: Any
) -> None:
    served.service.alerts.create("default", AlertKind.WEBHOOK, receiver.url)
    sign_in_as(page, served, Role.VIEWER)
    page.goto(f"{served.url}/new?from={finished.id}")
    expect(page.get_by_test_id("only-reads")).to_contain_text("Only researchers can submit")
    expect(page.get_by_role("button", name="Submit")).to_have_count(0)
    page.goto(f"{served.url}/experiments/{waiting.id}?tab=rounds")
    expect(page.get_by_test_id("participants")).to_be_visible()
    expect(page.get_by_test_id("invitations")).to_have_count(0)
    page.goto(f"{served.url}/experiments/{finished.id}")
    expect(page.get_by_test_id("phases")).to_be_visible()
    expect(page.get_by_role("heading", name="Workers on this experiment")).to_have_count(0)
    page.get_by_role("link", name="Alerts", exact=True).click()
    expect(page.get_by_test_id("alert")).to_contain_text(receiver.url)
    assert page.url.endswith("/alerts")
    for name in ("New alert", "Send a test", "Delete"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_an_administrator_looks_after_users_and_reads_what_was_done(
    signed_in: Page, served: Served, complaints: list[str]
) -> None:
    page, name = signed_in, f"ada-{secrets.token_hex(4)}"
    complaints.append("409")  # the first name is taken
    choose(page, "People")
    page.get_by_role("button", name="New user").press("Enter")
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill("admin")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_role("alert")).to_contain_text("is taken")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Role").select_option("researcher")
    form.get_by_label("Password").fill(PASSWORD)
    form.get_by_label("Password").press("Enter")
    row = page.get_by_test_id("user-row").filter(has_text=name)
    expect(row).to_contain_text("researcher")
    row.get_by_role("button", name="Role").click()
    page.get_by_role("dialog").get_by_label("Role").select_option("viewer")
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    expect(row).to_contain_text("viewer")
    row.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(row).to_contain_text("enabled")
    row.get_by_role("button", name="Disable").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("disabled")
    assert not served.service.people.user(name).enabled
    row.get_by_role("button", name="Enable").press("Enter")
    expect(row.get_by_role("button", name="Disable")).to_be_visible()
    self = page.get_by_test_id("user-row").filter(has_text="you")
    expect(self.get_by_role("button")).to_have_count(0)

    page.get_by_role("tab", name="Audit log").click()
    user = served.service.people.user(name)
    page.get_by_role("button", name=user.id).first.click()
    rows = page.get_by_test_id("audit-row")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("enabled: true")
    rows.last.get_by_role("button", name="user.created").click()
    expect(rows).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    assert page.url.endswith(f"/people?tab=audit&subject={user.id}&action=user.created")
    page.get_by_label("Subject", exact=True).fill("exp_nobody")
    page.get_by_label("Subject", exact=True).press("Enter")
    expect(page.get_by_text("No entry matches")).to_be_visible()


def test_a_participant_is_invited_and_revoked(page: Page, served: Served, waiting: Any) -> None:
    sign_in_as(page, served, Role.RESEARCHER)
    page.goto(f"{served.url}/experiments/{waiting.id}?tab=rounds")
    section = page.get_by_test_id("invitations")
    expect(section).to_contain_text(f"ferret code create {waiting.id}")
    for group in ("north", "south"):
        section.get_by_role("button", name="Invite").click()
        page.get_by_role("dialog").get_by_label("Group").fill(group)
        page.get_by_role("dialog").get_by_role("button", name="Create a code").click()
        expect(section.get_by_test_id("invitation-row").filter(has_text=group)).to_be_visible()
        code = page.get_by_test_id("new-invitation").locator("pre").first.inner_text()
    expect(page.get_by_test_id("new-invitation")).to_contain_text("ferret join")
    with httpx.Client(base_url=served.url) as site:
        joined = site.post("/api/v1/participants", json={"code": code, "display_name": "St. Anna"})
        assert joined.status_code == 201
    used = section.get_by_test_id("invitation-row").filter(has_text="south")
    expect(used).to_contain_text("used by St. Anna")
    north = section.get_by_test_id("invitation-row").filter(has_text="north")
    north.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(north).to_contain_text("revoked")

    participant = page.get_by_test_id("participants").get_by_role("row").filter(has_text="St. Anna")
    participant.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("the wrong hospital")
    page.get_by_role("dialog").get_by_role("button", name="Revoke it").click()
    expect(participant).to_contain_text("the wrong hospital")
    expect(participant.get_by_role("button", name="Revoke")).to_have_count(0)
