"""Participants over rounds: drawn, read by keys and mouse, recoloured, enlarged, and the same as a table."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py

COLOURS = """canvas => {
  const { width, height } = canvas
  const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, width, height).data.buffer)
  return [...new Set(pixels)].length
}"""


@pytest.fixture
def heat_map(signed_in: Page, served: Served, finished: Any) -> Locator:
    signed_in.goto(f"{served.url}/experiments/{finished.id}?tab=rounds")
    shown = signed_in.get_by_role("application", name=re.compile("^Participants over rounds"))
    shown.wait_for()
    return shown


def picture(heat_map: Locator) -> str:
    return heat_map.locator("canvas").evaluate("canvas => canvas.toDataURL()")


def test_a_cell_is_read_by_keys_and_opened(signed_in: Page, heat_map: Locator, finished: Any) -> None:
    page, names = signed_in, sorted({made.participant for made in finished.contributions()})
    expect(page.get_by_test_id("participation")).to_have_attribute("data-cells", str(3 * len(names)))
    readout = page.get_by_test_id("cell-readout")
    heat_map.focus()
    for key, row, round_ in (
        ("Home", 0, 1),
        ("ArrowRight", 0, 2),
        ("ArrowDown", 1, 2),
        ("End", 1, 3),
    ):
        page.keyboard.press(key)
        if key == "Home":
            page.keyboard.press("Home")  # the first key only shows where one is
        expect(readout).to_contain_text(names[row])
        expect(readout).to_contain_text(f"round {round_}")
    page.keyboard.press("Enter")
    timeline = page.get_by_test_id("timeline")
    expect(timeline.get_by_role("heading")).to_contain_text(names[1])
    expect(timeline.locator("[data-selected=true]")).to_contain_text("accepted")
    expect(timeline.locator("tbody tr")).to_have_count(3)
    timeline.get_by_role("button", name="Close").click()
    expect(timeline).to_have_count(0)


def test_cells_are_painted_recoloured_and_enlarged(signed_in: Page, heat_map: Locator) -> None:
    page = signed_in
    assert heat_map.locator("canvas").evaluate(COLOURS) > 2  # the ground, the names, the cells
    by_state, width = picture(heat_map), heat_map.locator("canvas").evaluate("canvas => canvas.width")
    page.get_by_role("group", name="Colour by").get_by_role("button", name="Bytes").click()
    expect(page).to_have_url(re.compile("cells=bytes"))
    expect(heat_map).to_have_accessible_name(re.compile("coloured by bytes$"))
    page.wait_for_function("before => document.querySelector('.heat-map canvas').toDataURL() !== before", arg=by_state)
    by_bytes = picture(heat_map)
    page.get_by_role("button", name="Larger cells").click()
    expect(page).to_have_url(re.compile("zoom=1"))
    page.wait_for_function("before => document.querySelector('.heat-map canvas').toDataURL() !== before", arg=by_bytes)
    assert heat_map.locator("canvas").evaluate("canvas => canvas.width") >= width


def test_the_mouse_reads_what_it_points_at(signed_in: Page, heat_map: Locator) -> None:
    heat_map.locator("canvas").scroll_into_view_if_needed()
    canvas = heat_map.locator("canvas").bounding_box()
    assert canvas is not None
    signed_in.mouse.move(canvas["x"] + canvas["width"] - 8, canvas["y"] + canvas["height"] - 8)
    expect(signed_in.get_by_test_id("cell-readout")).to_contain_text("round 3")
    signed_in.mouse.move(5, 5)
    expect(signed_in.get_by_test_id("cell-readout")).to_have_count(0)
