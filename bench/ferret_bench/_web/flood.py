"""Memory growth of a page that stays open during many events."""

from __future__ import annotations

from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page

from ferret_bench._api.alone import Api
from ferret_bench._web import browser as chromium
from ferret_bench.measure.background import repeated
from ferret_db.repositories import events, experiments

EVENTS_PER_MINUTE = 5000
TURN_SECONDS = 0.12
EVENTS_PER_TURN = round(EVENTS_PER_MINUTE * TURN_SECONDS / 60)
SETTLE_MILLISECONDS = 3000
LOOKS = 5
LOOK_MILLISECONDS = 1000


def heaps(browser: Browser, api: Api, tab: str, seconds: float) -> dict[str, Any]:
    """Returns bytes in use at the ``start``, at ``half`` of the time and at the ``end``, each after collecting garbage.

    Each is the median of a few readings: requests in progress at one of them hold half a megabyte.
    """
    with chromium.signed_in(browser, api) as context:
        page = context.new_page()
        page.goto(chromium.experiment(api, tab))
        page.get_by_test_id("live-badge").get_by_text("live", exact=True).wait_for()
        page.wait_for_timeout(SETTLE_MILLISECONDS)
        start, before = _heap(page), _happened(api)
        with repeated(lambda: _happen(api), TURN_SECONDS):
            half = _after(page, seconds / 2)
            end = _after(page, seconds / 2)
        return {"tab": tab, "start": start, "half": half, "end": end, "events": _happened(api) - before}


def _after(page: Page, seconds: float) -> int:
    page.wait_for_timeout(1000 * seconds)
    return _heap(page)


def _heap(page: Page) -> int:
    looks = list[int]()
    for _ in range(LOOKS):
        looks.append(chromium.heap_bytes(page))
        page.wait_for_timeout(LOOK_MILLISECONDS)
    return int(median(looks))


def _happen(api: Api) -> None:
    with api.database.begin() as s:
        for _ in range(EVENTS_PER_TURN):
            events.add(s, api.experiment, "contribution.accepted", round=1, data={"participant": "site-a"})


def _happened(api: Api) -> int:
    with api.database.read() as s:
        return experiments.get(s, api.experiment).last_event_seq
