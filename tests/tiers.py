"""How many of the tests run: ``pytest --tier fast``, ``usual`` (if none is named) or ``all``.

``slow`` tests run in ``all`` only. ``fast`` also leaves out ``heavy`` tests, which start processes, use a database or
compute for seconds. A test is heavy if it has that mark or one of ``HEAVY``, uses a fixture of ``STARTERS``, or is in a
folder of ``FOLDERS``.

What runs on ``EITHER_DATABASE`` does so in ``all``. Otherwise it runs on SQLite alone, unless it is marked
``about_database``: its subject is locks, dialect, migrations or concurrency.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

HERE = Path(__file__).parent
LEFT_OUT = {"fast": {"slow", "heavy"}, "usual": {"slow"}, "all": set[str]()}
HEAVY = {"heavy", "postgresql", "redis", "browser"}
"""Marks."""
FOLDERS = {
    *("api", "bench", "chaos", "contract", "e2e", "scripts", "security", "worker"),
    *("ferret_cli/tune", "ferret_core/aggregation", "ferret_core/evaluation"),
    *("ferret_db/engine", "ferret_db/repositories"),
}
STARTERS = {
    "api",
    "broker",
    "bucket",
    "environment",
    "ferret",
    "hub",
    "participant_command",
    "serve",
    "served",
    "start_served",
}
"""Fixtures."""
STARTING = {"subprocess.Popen", "os.fork", "os.posix_spawn"}
"""Audit events."""
EITHER_DATABASE = ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.repeated])]
"""Parameters of a fixture or a test."""


def slow(*values: Any) -> list[ParameterSet]:
    """Parameters that are left to ``all``."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=LEFT_OUT, default="usual", help="how many of the tests run (default: usual)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast tier does not import the tests of heavy folders."""
    return (config.getoption("tier") == "fast" and in_heavy_folder(collection_path)) or None


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """What shares a fixture of its module runs in one process of pytest-xdist, so that the fixture is made once."""
    if item.get_closest_marker("xdist_group") is not None or "served" in getattr(item, "fixturenames", ()):
        return
    definitions = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    if any(definition[-1].scope == "module" for definition in definitions):
        item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    not_wanted = LEFT_OUT[str(config.getoption("tier"))]
    heavy, light, left_out = list[pytest.Item](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks & HEAVY or starts_processes(item):
            marks.add("heavy")
        if "repeated" in marks and "about_database" not in marks:
            marks.add("slow")
        kept = heavy if "heavy" in marks else light
        (left_out if marks & not_wanted else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    # The long ones come first: a process of pytest-xdist that begins one last keeps the others waiting.
    items[:] = [*heavy, *light]


def starts_processes(item: pytest.Item) -> bool:
    """Whether the test may start processes, as far as its folder and its fixtures tell."""
    return bool(STARTERS & set(getattr(item, "fixturenames", ()))) or in_heavy_folder(item.path)


def in_heavy_folder(path: Path) -> bool:
    return path.is_relative_to(HERE) and any(path.is_relative_to(HERE / folder) for folder in FOLDERS)


def pytest_collection_finish(session: pytest.Session) -> None:
    """In the fast tier no test may start a process unnoticed."""
    if session.config.getoption("tier") == "fast":
        sys.addaudithook(_refuse_processes)


def _refuse_processes(event: str, arguments: tuple[object, ...]) -> None:
    if event in STARTING:
        raise AssertionError(f"{event} {arguments[:2]}: mark this test with pytest.mark.heavy")


@pytest.fixture(scope="session")
def amount(pytestconfig: pytest.Config) -> Callable[[int, int], int]:
    """``amount(1, 5)``: once in most runs of the tests, five times in ``make test-all``."""
    return lambda usual, everything: everything if pytestconfig.getoption("tier") == "all" else usual
