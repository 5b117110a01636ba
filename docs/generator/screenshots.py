"""Makes the pictures in ``docs/screenshots``: every page of the dashboard, from a real run of the demo.

Each page in both themes, as wide as a screen and as a phone; ``--wide`` adds pictures of 2,560 pixels beside them in
another folder, to look at.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from ferret_cli import spec_input
from ferret_core import sample
from ferret_core.sample import tasks
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service

FOLDER = Path(__file__).parents[1] / "screenshots"
SIZES = {"screen": (1440, 900), "phone": (390, 844)}
WIDE = {"wide": (2560, 1440)}
MOST_BYTES = 60_000
SEEDS = (7, 8)
STOP_SECONDS = 30


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the pictures of the documentation.")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--wide", action="store_true", help="2,560 pixels wide, and no other size")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ferret-screenshots-") as home, _served(Path(home)) as (url, token):
        runs = _runs(Service(url, token), Path(home) / "data")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for size, (width, height) in (WIDE if arguments.wide else SIZES).items():
                for theme in ("light", "dark"):
                    page = _signed_in(browser, f"{url}/#token={token}", theme, width, height)
                    for name, address in _pages(page, runs).items():
                        _shoot(page, url + address, arguments.folder / f"{name}-{size}-{theme}.webp")
                    page.context.close()
            browser.close()


@contextmanager
def _served(home: Path) -> Generator[tuple[str, str]]:
    """A running service's address and token."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ferret_cli", "serve", "--home", str(home), "--port", str(port)]
    roots = os.pathsep.join((str(home), str(sample.model_path())))
    environment = os.environ | {"FERRET_DATA_ROOTS": roots, "FERRET_EXPECTED_PARTICIPANTS": "40"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = process.stdout.readline().partition("/#")[0]
        try:
            yield url, (home / "admin.token").read_text().strip()
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _runs(service: Service, data: Path) -> list[Run]:
    """The demo's experiment with other seeds, ended."""
    data.mkdir()
    tasks.write(data)
    os.environ.update(FERRET_DEMO_MODEL=str(sample.model_path()), FERRET_DEMO_DATA=str(data))
    spec = spec_input.load(Path(sample.__file__).with_name("demo.toml"))
    simulated = spec.participants.model_copy(update={"edge": 0})
    runs = [
        service.submit(spec.model_copy(update={"name": f"demo, seed {seed}", "seed": seed, "participants": simulated}))
        for seed in SEEDS
    ]
    return [run.wait() for run in runs]


def _pages(page: Page, runs: list[Run]) -> dict[str, str]:
    """Addresses by the names of their pictures: the router's pages, and the tabs of an experiment."""
    ids = ",".join(run.id for run in runs)
    found = dict[str, str]()
    for route in page.evaluate("Object.keys(__TSR_ROUTER__.routesByPath)"):
        name = re.sub(r"[^a-z]+", "-", route.replace("$id", "")).strip("-") or "list"
        found[name] = route.replace("$id", runs[0].id) + (f"?ids={ids}" if name == "compare" else "")
    page.goto(page.url.split("/experiments")[0].rstrip("/") + f"/experiments/{runs[0].id}")
    page.get_by_role("tab").first.wait_for()
    for tab in page.get_by_role("tab").all():
        tab.click()
        if "?tab=" in page.url:
            key = page.url.partition("?tab=")[2]
            found[f"experiments-{key}"] = f"/experiments/{runs[0].id}?tab={key}"
    return found


def _signed_in(browser: Browser, address: str, theme: str, width: int, height: int) -> Page:
    context = browser.new_context(
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    page.get_by_test_id("account-menu").wait_for()
    return page


def _shoot(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    page.locator("main").wait_for()
    page.wait_for_load_state("networkidle")
    if "?tab=" in address:
        page.get_by_role("tablist").evaluate("list => innerWidth < 600 && list.scrollIntoView()")
    expect(page.get_by_text("Loading…")).to_have_count(0, timeout=30_000)
    page.wait_for_timeout(300)  # charts follow their width
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    for quality in (80, 60, 40):
        picture.save(path, "WEBP", quality=quality, method=6)
        if path.stat().st_size <= MOST_BYTES:
            break


if __name__ == "__main__":
    main()
