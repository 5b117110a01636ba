"""The dashboard's pages in the machine's own Chromium, and what is measured of them."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from ferret_api.http.dashboard import ASSETS, STATIC
from ferret_bench._api.service import TOKEN, Api
from ferret_bench.measure.background import repeated
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_db.repositories import events, experiments
from ferret_db.tables import Experiment, Metric, Round

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


def javascript() -> list[Path]:
    """Returns all scripts of the built dashboard, including lazily loaded ones."""
    return sorted((STATIC / ASSETS).glob("*.js"))


def javascript_sizes(port: int, first: set[str]) -> dict[str, Any]:
    """Returns ``gzip_bytes`` of all scripts together, and of the ones named ``first`` alone, and the share of them, 0
    to 1, that the API on ``port`` compresses.
    """
    scripts = javascript()
    sizes = {script.name: len(gzip.compress(script.read_bytes(), 9)) for script in scripts}
    return {
        "files": len(scripts),
        "bytes": sum(script.stat().st_size for script in scripts),
        "gzip_bytes": sum(sizes.values()),
        "first_load_gzip_bytes": sum(sizes[name] for name in first),
        "compressed": sum(_is_compressed(port, script) for script in scripts) / len(scripts),
    }


def _is_compressed(port: int, script: Path) -> bool:
    """Returns True if a browser receives it compressed, or it is too small to gain from that."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", f"/{ASSETS}/{script.name}", headers={"Accept-Encoding": "gzip, br"})
        answer = connection.getresponse()
        received = len(answer.read())
        return answer.status == 200 and (received < script.stat().st_size or received < 1024)
    finally:
        connection.close()


METRICS = {"eval_loss": 2.0, "train_loss": 2.1, "rouge_l": 30.0, "bytes_up": 40_000.0, "bytes_down": 60_000.0}
WATCH = """window.firstCurve = new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    if (document.querySelector('[data-points]:not([data-points="0"]) canvas') === null) return
    observer.disconnect()
    requestAnimationFrame(() => setTimeout(() => { resolve(performance.now()) }))
  }).observe(document, { childList: true, subtree: true, attributes: true })
})"""


def measured_rounds(api: Api, rounds: int) -> None:
    """Sets the experiment to running, with ``rounds`` committed rounds."""
    begin = datetime.now(UTC) - timedelta(minutes=rounds)
    with api.database.begin() as s:
        experiment = s.get_one(Experiment, api.experiment)
        experiment.state, experiment.started_at = ExperimentState.RUNNING, begin
        experiment.rounds, experiment.round = rounds + 1, rounds
        for number in range(1, rounds + 1):
            times = [begin + timedelta(minutes=number)] * 2
            s.add(
                Round(
                    experiment_id=api.experiment,
                    number=number,
                    state=RoundState.COMMITTED,
                    base_digest="0" * 64,
                    opened_at=times[0],
                    deadline_at=times[0],
                    committed_at=times[1],
                    bytes_up=40_000,
                )
            )
            s.add_all(
                Metric(experiment_id=api.experiment, name=name, round=number, value=value * (1 + 1 / number))
                for name, value in METRICS.items()
            )


def first_curve_seconds(browser: Browser, api: Api) -> float:
    """Returns the seconds with an empty browser cache."""
    with signed_in(browser, api) as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(experiment(api), wait_until="commit")
        return float(page.evaluate("window.firstCurve")) / 1000


def scripts_loaded(browser: Browser, api: Api) -> set[str]:
    """Returns the names of the loaded scripts when the first curve is drawn."""
    with signed_in(browser, api) as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(experiment(api))
        page.evaluate("window.firstCurve")
        addresses: list[str] = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
        places = (address.rpartition(f"/{ASSETS}/") for address in addresses)
        return {name for _, found, name in places if found and name.endswith(".js")}


WEB = Path(__file__).parents[2] / "web"


def redraw_milliseconds(browser: Browser, kind: str, sizes: tuple[int, int], times: int) -> list[float]:
    """Returns the milliseconds of each of ``times`` redraws of ``lines`` (series, points) or ``cells`` (rows, columns),
    until the pixels are there.
    """
    with tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_style_tag(path=WEB / "src" / "app" / "styles" / "tokens.css")
        page.add_script_tag(path=_built(Path(folder)))
        found: list[float] = page.evaluate(f"([sizes, times]) => redraw.{kind}(...sizes, times)", [sizes, times])
        page.close()
        return found


def _built(folder: Path) -> Path:
    """Builds the page. Raises ``dependency.missing`` outside a checkout with a buildable dashboard."""
    if not (WEB / "node_modules").is_dir():
        raise FerretError("dependency.missing", f"{WEB} has no node_modules; in a checkout run: make web")
    command = [
        "npx",
        "vite",
        "build",
        "--config",
        "bench/vite.config.ts",
        "--outDir",
        str(folder),
        "--logLevel",
        "error",
    ]
    subprocess.run(command, cwd=WEB, check=True, stdout=subprocess.DEVNULL)
    return folder / "redraw.js"


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
    with signed_in(browser, api) as context:
        page = context.new_page()
        page.goto(experiment(api, tab))
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
        looks.append(heap_bytes(page))
        page.wait_for_timeout(LOOK_MILLISECONDS)
    return int(median(looks))


def _happen(api: Api) -> None:
    with api.database.begin() as s:
        for _ in range(EVENTS_PER_TURN):
            events.add(s, api.experiment, "contribution.accepted", round=1, data={"participant": "site-a"})


def _happened(api: Api) -> int:
    with api.database.read() as s:
        return experiments.get(s, api.experiment).last_event_seq
