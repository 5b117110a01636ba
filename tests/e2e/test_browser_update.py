"""The tab of a round's update: whether K suffices, and what was inside, as the service computed it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ferret_core.protocol.spec import ExperimentSpec

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py


@pytest.fixture(scope="module")
def projected(served: Served, toy_spec: Callable[..., ExperimentSpec]) -> Any:
    """The run of three rounds with far fewer coordinates than weights."""
    run = served.service.submit(toy_spec("ferret", name="projected", options={"K": 2000}))
    run.wait()
    return run


def test_the_update_of_a_round_is_shown_from_inside(signed_in: Page, served: Served, projected: Any) -> None:
    page, inside = signed_in, projected.update_statistics()
    page.goto(f"{served.url}/experiments/{projected.id}")
    page.get_by_role("tab", name="Inside", exact=True).click()
    shown = page.get_by_test_id("update")
    expect(shown).to_have_attribute("data-round", "3")
    expect(page.get_by_test_id("update-k")).to_have_attribute("data-points", str(len(inside.blocks)))

    answer = page.get_by_test_id("update-answer")
    assert inside.projection_noise.advice
    helps = any(way.startswith("algorithm.K = ") for way in inside.projection_noise.advice)
    expect(answer).to_contain_text("K is smaller than advised" if helps else "The noise is larger than advised")
    for way in inside.projection_noise.advice:
        expect(answer).to_contain_text(way)
    expect(page.get_by_test_id("cosines")).to_contain_text(f"{inside.agreement.cosines[0]:.2f} ±")

    page.get_by_role("button", name="Previous round").click()
    expect(page).to_have_url(re.compile(r"tab=inside&round=2$"))
    expect(shown).to_have_attribute("data-round", "2")
    page.reload()
    expect(shown).to_have_attribute("data-round", "2")


def test_blocks_are_read_by_keys_and_saved(signed_in: Page, served: Served, projected: Any, tmp_path: Path) -> None:
    page, inside = signed_in, projected.update_statistics(2)
    page.goto(f"{served.url}/experiments/{projected.id}?tab=inside&round=2")
    chart = page.get_by_test_id("update-blocks")
    slider = chart.get_by_role("slider")
    slider.focus()
    slider.press("End")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(re.escape(inside.blocks[-1])))
    slider.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(re.escape(inside.blocks[0])))
    with page.expect_download() as saved:
        chart.get_by_role("button", name="CSV").click()
    saved.value.save_as(tmp_path / "blocks.csv")
    head, *rows = (tmp_path / "blocks.csv").read_text().splitlines()
    assert head == "block,weights,step,noise,update"
    assert len(rows) == len(inside.blocks)
    assert float(rows[0].split(",")[2]) == inside.step[0]


def test_the_update_fits_a_phone(signed_in: Page, served: Served, projected: Any) -> None:
    signed_in.set_viewport_size({"width": 390, "height": 844})
    signed_in.goto(f"{served.url}/experiments/{projected.id}?tab=inside")
    expect(signed_in.get_by_test_id("cosines")).to_be_visible()
    wide = signed_in.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
