"""The pages of who looks after the service, and what others see of them."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ferret_core.protocol.roles import Role

pytestmark = pytest.mark.browser
Served = Any  # tests/served.py
PASSWORD = "correct horse battery staple"


def sign_in_as(page: Page, served: Served, role: Role) -> str:
    """Name of a new user of the first project, who is then signed in."""
    name = f"{role}-{secrets.token_hex(4)}"
    user = served.service.people.add(name, role, PASSWORD)
    served.service.projects.add_member("default", user)
    page.goto(served.url)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password or admin token").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_test_id("account-menu").wait_for()
    return name


def choose(page: Page, entry: str) -> None:
    """Opens a page by the menu with one's name, with the keyboard."""
    page.get_by_test_id("account-menu").press("Enter")
    page.get_by_role("link", name=entry, exact=True).press("Enter")


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


def test_hosts_are_shown_to_administrators_only(page: Page, served: Served, complaints: list[str]) -> None:
    complaints.append("403")
    sign_in_as(page, served, Role.RESEARCHER)
    page.get_by_test_id("account-menu").click()
    expect(page.get_by_role("link", name="Your account")).to_be_visible()
    expect(page.get_by_role("link", name="System", exact=True)).to_have_count(0)
    page.goto(f"{served.url}/system")
    expect(page.get_by_role("alert")).to_contain_text("is a researcher, and this is for a admin")
    expect(page.get_by_test_id("worker-row")).to_have_count(0)
