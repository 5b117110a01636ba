"""One form for all that is logged in a process, with the ids of what it is about."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context

import pytest

from ferret_runtime import log_setup
from ferret_runtime.log_setup import LogFormat

Logged = Callable[[LogFormat, Callable[[], None]], list[str]]


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch, own_logging: None) -> Logged:
    """``logged("json", act)``: the lines that ``act`` logs."""

    def run(format: LogFormat, act: Callable[[], None]) -> list[str]:
        monkeypatch.setattr(sys, "stderr", written := io.StringIO())
        log_setup.configure("info", format)
        act()
        return written.getvalue().splitlines()

    return run


def test_a_line_of_json_carries_the_ids_that_are_bound(logged: Logged) -> None:
    def act() -> None:
        with (
            log_setup.bound(worker="aggregate-1", task="ferret.aggregate"),
            log_setup.bound(experiment="exp_1", round=3),
        ):
            logging.getLogger("celery.worker").info("received %s", "a task")
        logging.getLogger("ferret").warning("idle")

    inside, outside = map(json.loads, logged("json", act))
    assert inside.pop("timestamp").endswith("Z")
    assert inside == {
        "event": "received a task",
        "level": "info",
        "logger": "celery.worker",
        "experiment": "exp_1",
        "round": 3,
        "task": "ferret.aggregate",
        "worker": "aggregate-1",
    }
    assert outside.keys() == {"event", "level", "logger", "timestamp"}


def test_text_is_for_people(logged: Logged) -> None:
    def act() -> None:
        with log_setup.bound(request="abcdef12"):
            logging.getLogger("ferret_api").info("all of %s", "it")

    (line,) = logged("text", act)
    assert line.partition(" ")[2] == "[info] all of it [ferret_api] request=abcdef12"


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_traceback_is_there_once(logged: Logged, format: LogFormat) -> None:
    def act() -> None:
        try:
            raise KeyError("w")
        except KeyError:
            logging.getLogger("ferret_worker").exception("failed")

    lines = logged(format, act)
    assert "\n".join(lines).count("Traceback") == 1
    assert format == "text" or json.loads(lines[0])["exception"].endswith("KeyError: 'w'")


def test_below_the_level_and_of_the_talkative_nothing_is_logged(logged: Logged) -> None:
    def act() -> None:
        logging.getLogger("ferret_worker").debug("a detail")
        logging.getLogger("alembic.runtime.migration").info("Context impl SQLiteImpl.")

    assert logged("json", act) == []


def test_a_thread_that_is_given_the_context_logs_under_its_ids(logged: Logged) -> None:
    def act() -> None:
        with log_setup.bound(experiment="exp_1"):
            thread = threading.Thread(target=copy_context().run, args=(logging.getLogger("lease").info, "extended"))
            thread.start()
            thread.join()

    assert json.loads(logged("json", act)[0])["experiment"] == "exp_1"


@pytest.mark.heavy
def test_a_process_logs_as_its_settings_say() -> None:
    program = (
        "import logging; from ferret_db import bootstrap; from ferret_runtime.settings import ServiceSettings;"
        "bootstrap.schema_version.check = lambda url: None; bootstrap.prepare(ServiceSettings.read());"
        "logging.getLogger('x').warning('y')"
    )
    environment = {"FERRET_LOG_FORMAT": "json", "FERRET_LOG_LEVEL": "error"}
    for level, lines in (("error", 0), ("warning", 1)):
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, env=environment | {"FERRET_LOG_LEVEL": level}, capture_output=True, text=True, check=True
        )
        assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["y"] * lines
