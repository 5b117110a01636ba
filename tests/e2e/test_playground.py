"""A person asks a round's model in Chromium, beside the base model."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ferret_core.protocol.spec import ExperimentSpec

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py
PATIENCE_MS = 120_000


@pytest.mark.slow
def test_a_model_is_asked_beside_its_base(page: Page, served: Served, toy_spec: Callable[..., ExperimentSpec]) -> None:
    run = served.service.submit(toy_spec(name="asked", rounds=3))
    run.wait()
    page.goto(served.address.replace("/#", f"/experiments/{run.id}?tab=models&tokens=12#"))
    question = page.get_by_role("textbox", name="Question", exact=True)
    page.get_by_role("button", name="Draw a held-out example").click()
    reference = page.get_by_test_id("reference")
    expect(reference).to_be_visible(timeout=PATIENCE_MS)
    expect(question).to_have_value("Repeat.")
    assert page.get_by_role("textbox", name="Input").input_value() in reference.inner_text()

    question.press("Control+Enter")
    for side in ("tuned", "base"):
        card = page.get_by_test_id(f"answer-{side}")
        expect(card.get_by_role("status")).to_contain_text("token", timeout=PATIENCE_MS)
        assert card.get_attribute("aria-busy") == "false"
    expect(page.get_by_test_id("answer-tuned")).to_contain_text("Round ")
    assert "Repeat" not in page.url

    page.get_by_label("Temperature").fill("1.5")
    page.get_by_role("combobox", name="Model").select_option("Base model")
    expect(page).to_have_url(re.compile("temperature=1.5&model=0"))
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_test_id("answer-base").get_by_role("status")).to_contain_text("token", timeout=PATIENCE_MS)
    expect(page.get_by_test_id("answer-tuned")).to_have_count(0)

    question.fill("Name a colour.")
    expect(reference).to_have_count(0)  # it is the answer to another question
    question.fill("fish " * 500)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("shorten it", timeout=PATIENCE_MS)
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
