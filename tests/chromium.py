"""A page in the machine's own Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

# Several test processes share the cores with the services that they start.
expect.set_options(timeout=20_000)


@contextmanager
def started(need: Callable[[bool, str], None], *more: str) -> Iterator[Browser]:
    """A browser started with ``more`` arguments; ``need`` is the fixture of that name."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    need(program is not None, "no Chromium on PATH: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*ARGUMENTS, *more])
        yield browser
        browser.close()


@contextmanager
def opened(need: Callable[[bool, str], None], *more: str) -> Iterator[Page]:
    """An empty page, in a browser of its own."""
    with started(need, *more) as browser:
        yield browser.new_page()
