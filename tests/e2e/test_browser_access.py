"""Every page for everybody: axe finds nothing, on a screen and on a phone, in both themes; no phone scrolls sideways.

Pages are read from the router and tabs from the page, so that a new one is looked at, or fails for want of an address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PHONE, SCREEN = ({"width": width, "height": 900} for width in (390, 1440))
RUN = """async (rules) => {
  const { violations } = await axe.run(document, { resultTypes: ['violations'], ...rules })
  const told = ({ target, failureSummary }) => `${target}: ${failureSummary}`
  return violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes.map(told) }))
}"""
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
FIT_MILLISECONDS = 5000
ROUTES = "Object.keys(__TSR_ROUTER__.routesByPath)"
ADDRESSES = {
    "/": "/",
    "/experiments/$id": "/experiments/{id}",
    "/compare": "/compare?ids={id}",
    "/new": "/new",
    "/alerts": "/alerts",
    "/system": "/system",
    "/people": "/people",
    "/account": "/account",
}


@pytest.fixture
def context(browser: Browser, need: Callable[[bool, str], None]) -> Iterator[BrowserContext]:
    """The page's policy refuses foreign scripts, axe among them: here it does not count."""
    need(AXE.is_file(), "axe-core: npm ci in web/")
    context = browser.new_context(bypass_csp=True, viewport=SCREEN, reduced_motion="reduce")
    context.add_init_script(path=AXE)
    yield context
    context.close()


@pytest.mark.slow
def test_every_page_and_tab_is_for_everybody(signed_in: Page, served: Served, finished: Any) -> None:
    page, found = signed_in, list[str]()
    assert set(ADDRESSES) == set(page.evaluate(ROUTES)), "each page of the router has an address here"
    for address in ADDRESSES.values():
        page.goto(served.url + address.format(id=finished.id))
        settle(page)
        tabs = page.get_by_role("tab").all_inner_texts()
        for tab in tabs or [None]:
            if tab is not None:
                page.get_by_role("tab", name=tab, exact=True).click()
                settle(page)
            found += [f"{address} {tab or ''} {complaint}" for complaint in complaints_about(page)]
    assert found == [], "\n".join(found)


def test_the_list_and_a_run_are_for_everybody(signed_in: Page, served: Served, finished: Any) -> None:
    settle(signed_in)
    assert complaints_about(signed_in) == []
    signed_in.goto(f"{served.url}/experiments/{finished.id}")
    settle(signed_in)
    assert complaints_about(signed_in) == []


def test_signing_in_is_for_everybody(page: Page, served: Served) -> None:
    page.goto(served.url)
    expect(page.get_by_test_id("sign-in")).to_be_visible()
    assert complaints_about(page) == []


def test_the_list_of_shortcuts_is_for_everybody(signed_in: Page) -> None:
    signed_in.keyboard.press("?")
    expect(signed_in.get_by_test_id("shortcuts")).to_be_visible()
    assert complaints_about(signed_in) == []


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_on_the_rest_api_is_for_everybody(page: Page, served: Served, theme: Any) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(f"{served.url}/docs")
    page.locator(".opblock").first.wait_for()
    assert [found for found in page.evaluate(RUN, {}) if found["impact"] in {"serious", "critical"}] == []
    page.set_viewport_size(PHONE)
    page.wait_for_function(FITS, timeout=FIT_MILLISECONDS)


def settle(page: Page) -> None:
    page.locator("main").wait_for()
    page.wait_for_load_state("networkidle")


def complaints_about(page: Page) -> list[str]:
    """On a screen and on a phone: in the light theme all rules, in the dark one those about colours; and its width."""
    found = list[str]()
    for size, viewport in (("screen", SCREEN), ("phone", PHONE)):
        page.set_viewport_size(viewport)
        try:
            page.wait_for_function(FITS, timeout=FIT_MILLISECONDS)  # charts follow their width
        except TimeoutError:
            found.append(f"wider than a {size}")
        for theme, rules in (("light", {}), ("dark", {"runOnly": {"type": "rule", "values": ["color-contrast"]}})):
            page.emulate_media(color_scheme=theme)
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            found += [f"{size}, {theme}: {each['id']} {each['where'][:3]}" for each in page.evaluate(RUN, rules)]
    page.set_viewport_size(SCREEN)
    return found
