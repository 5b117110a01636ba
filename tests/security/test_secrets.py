"""Known secrets, searched for wherever they could be left: logs, command lines, the database, a browser's profile."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import sync_playwright

from ferret_core.protocol.spec import ExperimentSpec
from tests import chromium
from tests.ferret_cli.conftest import Served, clean_environment
from tests.ferret_cli.conftest import broker as broker

JOIN = [sys.executable, "-m", "ferret_cli", "join", "--yes"]

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"), pytest.mark.timeout(300)]

QUICK = {"examples": 2, "generate_examples": 0}


class Watch:
    """All command lines that were seen on this machine while it watched."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(path.read_bytes())
                except OSError:
                    continue


@pytest.fixture
def start(tmp_path: Path, broker: None) -> Iterator[Callable[..., Served]]:
    """A service whose log says all it can."""
    started: list[Served] = []

    def start(**extra: str) -> Served:
        from tests.ferret_cli.conftest import find_free_port

        started.append(Served(tmp_path / "home", find_free_port(), FERRET_LOG_LEVEL="debug", **extra))
        return started[-1]

    yield start
    for served in started:
        served.close()


def test_no_secret_is_left_in_logs_command_lines_or_the_database(
    start: Callable[..., Served], toy_spec: Callable[..., ExperimentSpec], toy_data: tuple[Path, Path], tmp_path: Path
) -> None:
    watch, home, site = Watch(), tmp_path / "home", tmp_path / "hospital"
    with watch.watching():
        served = start(FERRET_DATA_ROOTS="/", FERRET_EXPECTED_PARTICIPANTS="40", FERRET_THREADS="1")
        url, ticket = served.address().split("/#ticket=")
        token = (home / "admin.token").read_text().strip()
        with httpx.Client(base_url=url, timeout=60) as browser:
            browser.post("/api/v1/session", json={"token": ticket}).raise_for_status()
            (cookie,) = browser.cookies.values()
            assert browser.post("/api/v1/session", json={"token": "a-wrong-token-of-somebody"}).status_code == 401
        with httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {token}"}) as admin:
            spec = toy_spec("toy", name="secrets", rounds=1, participants={"edge": 1}, evaluation=QUICK).model_dump(
                mode="json"
            )
            experiment = admin.post("/api/v1/experiments", json=spec).raise_for_status().json()["id"]
            code = admin.post(f"/api/v1/experiments/{experiment}/enrolments", json={}).raise_for_status().json()["code"]
            joined = subprocess.run(
                [*JOIN, url, "--data", str(toy_data[0]), "--name", "hospital"],
                env=clean_environment(site, FERRET_CODE=code, FERRET_LOG_LEVEL="debug", OMP_NUM_THREADS="1"),
                capture_output=True,
                timeout=200,
            )
            assert joined.returncode == 0, joined.stderr
            assert admin.get(f"/api/v1/experiments/{experiment}").json()["state"] == "completed"
        (broker_config,) = (home / "broker").glob("*/server.conf")
        password = broker_config.read_text().partition("requirepass ")[2].split()[0]
        assert served.stop() == 0

    secrets = {
        "admin token": token,
        "sign-in ticket": ticket,
        "session cookie": cookie,
        "wrong token": "a-wrong-token-of-somebody",
        "enrolment code": code.partition(".")[2],
        "broker password": password,
        **{f"participant token {n}": value for n, value in enumerate(participant_tokens(site))},
    }
    assert len(secrets) >= 7
    assert all(len(secret) >= 16 for secret in secrets.values())
    said = {path: path.read_bytes() for path in [*home.glob("logs/*"), home.parent / "serve.err"]}
    assert b"GET /api/v1/experiments" in b"".join(said.values()), "the log has every request"
    said |= {Path("join's stdout"): joined.stdout, Path("join's stderr"): joined.stderr}
    said |= {path: path.read_bytes() for path in site.rglob("*.log")}
    said[Path("/proc/*/cmdline")] = b"\n".join(watch.seen)
    assert b"ferret_api" in said[Path("/proc/*/cmdline")]
    with closing(sqlite3.connect(home / "ferret.db")) as database:
        said[Path("ferret.db")] = "\n".join(database.iterdump()).encode()
    for path in home.rglob("*.db*"):
        said[path] = path.read_bytes()
    assert [
        (name, str(path)) for name, secret in secrets.items() for path in said if secret.encode() in said[path]
    ] == []


def participant_tokens(site: Path) -> list[str]:
    """What the participant shows to the server, as it keeps it."""
    kept = [json.loads(path.read_text()) for path in site.rglob("*.json") if '"token"' in path.read_text()]
    tokens = [document["token"] for document in kept if isinstance(document.get("token"), str)]
    assert tokens
    return tokens


@pytest.mark.browser
@pytest.mark.slow
def test_a_browsers_history_holds_nothing_that_signs_in(
    start: Callable[..., Served], need: Callable[[bool, str], None], tmp_path: Path
) -> None:
    """The profile is searched after the browser has written it: the address bar alone proves nothing."""
    program = shutil.which("chromium")
    need(program is not None, "no Chromium on PATH: apt-get install chromium")
    served, profile = start(), tmp_path / "profile"
    address = served.address()
    url, ticket = address.split("/#ticket=")
    token = (tmp_path / "home/admin.token").read_text().strip()
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=program, args=chromium.ARGUMENTS
        )
        page = context.new_page()
        with page.expect_response(lambda answer: answer.url.endswith("/api/v1/session")) as signed_in:
            page.goto(address)
        assert signed_in.value.status == 204
        assert ticket not in page.url
        (cookie,) = [each for each in context.cookies() if each.get("name", "").startswith("ferret_")]
        page.wait_for_timeout(1500)  # until the history is written
        context.close()
    kept = [path for path in profile.rglob("*") if path.is_file()]
    assert any(path.name == "History" for path in kept)
    assert [path for path in kept if token.encode() in path.read_bytes()] == []
    with httpx.Client(base_url=url) as thief:
        assert thief.post("/api/v1/session", json={"token": ticket}).status_code == 401
        thief.cookies.set(cookie.get("name", ""), cookie.get("value", ""))
        assert thief.get("/api/v1/info").status_code == 200, "that it was signed in by the ticket"
