"""The committed lock, and when it is stale."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import lock


def test_the_committed_lock_is_fresh() -> None:
    assert lock.stale() == []


@pytest.mark.parametrize("name", lock.SOURCES)
def test_every_package_is_pinned_with_its_hashes(name: str) -> None:
    pins = lock.pins(name)
    lines = [line for line in (lock.ROOT / name).read_text().splitlines() if not line.startswith(("#", " "))]
    assert len(pins) == len(lines) > 100
    assert [pin.name for pin in pins if not re.search(r"--hash=sha256:[0-9a-f]{64}$", pin.lines.rstrip())] == []


def test_every_direct_dependency_of_the_three_distributions_is_locked() -> None:
    pinned = {canonicalize_name(pin.name): pin.version for pin in lock.pins(lock.DEVELOPMENT)}
    for path in lock.PROJECTS:
        project = tomllib.loads((lock.ROOT / path).read_text())["project"]
        for text in chain(project["dependencies"], *project.get("optional-dependencies", {}).values()):
            wanted = Requirement(text)
            if wanted.name not in lock.OURS:
                assert wanted.specifier.contains(pinned[canonicalize_name(wanted.name)]), text


def test_tests_run_on_the_versions_that_run_the_service() -> None:
    tested = {(pin.name, pin.version) for pin in lock.pins(lock.DEVELOPMENT)}
    assert {(pin.name, pin.version) for pin in lock.pins(lock.RUNTIME)} <= tested


@pytest.mark.parametrize("name", lock.PROJECTS)
def test_a_new_requirement_makes_it_stale(name: str, checkout: Path) -> None:
    text = (checkout / name).read_text()
    (checkout / name).write_text(text.replace("dependencies = [", 'dependencies = ["left-pad>=1", ', 1))
    assert lock.stale(checkout) == list(lock.SOURCES)
    done = subprocess.run(
        [sys.executable, "-m", "scripts.lock", "--check"], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("stale lock: requirements.txt, requirements-dev.txt and the pyproject.toml files")
    assert "run `make lock`" in done.stderr


def test_what_is_not_required_does_not(checkout: Path) -> None:
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("[tool.other]\nline-length = 1\n")
    assert lock.stale(checkout) == []


def test_a_missing_file_is_stale(checkout: Path) -> None:
    (checkout / lock.RUNTIME).unlink()
    assert lock.stale(checkout) == [lock.RUNTIME]
