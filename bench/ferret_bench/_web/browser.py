"""Pages of the dashboard in the machine's own Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from ferret_bench._api.alone import TOKEN, Api
from ferret_core.protocol.errors import FerretError

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SIZE = {"width": 1440, "height": 900}


@contextmanager
def started() -> Generator[Browser]:
    """Starts Chromium. Raises ``dependency.missing`` without it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise FerretError("dependency.missing", "no Chromium on PATH; install it with: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def signed_in(browser: Browser, api: Api) -> Generator[BrowserContext]:
    """A context that has never seen the dashboard, with a session at ``api``."""
    context = browser.new_context(viewport={"width": SIZE["width"], "height": SIZE["height"]})
    answer = context.request.post(f"{url(api)}/api/v1/session", data={"token": TOKEN}, headers={"Origin": url(api)})
    if not answer.ok:
        raise RuntimeError(f"signing in was answered with {answer.status}: {answer.text()}")
    yield context
    context.close()


def url(api: Api) -> str:
    return f"http://127.0.0.1:{api.port}"


def experiment(api: Api, tab: str = "overview") -> str:
    """Returns the address of its page, at a tab."""
    return f"{url(api)}/experiments/{api.experiment}" + ("" if tab == "overview" else f"?tab={tab}")


def heap_bytes(page: Page) -> int:
    """JavaScript heap in use, after all garbage was collected."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return int(used)
