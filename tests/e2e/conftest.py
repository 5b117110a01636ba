"""Real participants of the served service, and pages that are signed in to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from ferret_core.protocol.spec import ExperimentSpec
from tests import chromium

Served = Any  # tests/shared_service.py
STOP_SECONDS = 30
PATIENCE_MILLISECONDS = 60_000


def join(served: Served, code: str, data: Path, home: Path) -> subprocess.Popen[bytes]:
    """A real participant as its owner starts it."""
    arguments = ["join", "--yes", served.service.url, "--data", str(data), "--name", "hospital"]
    environment = os.environ | {"FERRET_CODE": code, "FERRET_HOME": str(home), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "ferret_cli", *arguments], env=environment)


@pytest.fixture(scope="session")
def toy_spec(toy_spec: Callable[..., ExperimentSpec]) -> Callable[..., ExperimentSpec]:
    """As everywhere, of the algorithm that takes no step unless another is named: training is not the subject here."""
    return lambda algorithm="toy", /, **changes: toy_spec(algorithm, **changes)


@pytest.fixture
def join_process() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts real participants and sees that none outlives its test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: Any) -> subprocess.Popen[bytes]:
        started.append(join(*arguments))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait(STOP_SECONDS)


@pytest.fixture(scope="module")
def browser(need: Callable[[bool, str], None]) -> Iterator[Browser]:
    with chromium.started(need) as browser:
        yield browser


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Of one test: it shares nothing with the others, and is not signed in."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    yield context
    context.close()


@pytest.fixture
def complaints() -> list[str]:
    """Parts of what the console may say as an error; 401 is how a page learns that nobody is signed in."""
    return ["401"]


@pytest.fixture
def page(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    page.unroute_all(behavior="ignoreErrors")  # a handler of the test may be at work on what the page polls
    assert [problem for problem in problems if not any(part in problem for part in complaints)] == []


@pytest.fixture
def signed_in(page: Page, served: Served) -> Page:
    """At the list of experiments."""
    page.goto(served.address)
    page.get_by_test_id("account-menu").wait_for()
    return page


@pytest.fixture(scope="session")
def finished(served: Served, toy_spec: Callable[..., ExperimentSpec]) -> Any:
    """The run of an experiment of three rounds that many tests read and none changes."""
    run = served.service.submit(toy_spec(name="finished"))
    run.wait()
    return run


@pytest.fixture
def waiting(served: Served, toy_spec: Callable[..., ExperimentSpec]) -> Iterator[Any]:
    """The run of an experiment that waits for a participant that never comes."""
    run = served.service.submit(toy_spec(name="waiting", participants={"edge": 1}))
    yield run
    run.cancel()
