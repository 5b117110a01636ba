"""What ``make setup`` does, and what it refuses before it fetches anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts import Refusal, lock, setup
from scripts.environment import Environment


class Usage(NamedTuple):
    free: float


def run(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which of the long steps were taken; none is."""
    made: list[str] = []

    def libraries(environment: Environment, asked: str, name: str) -> str:
        made.append(f"libraries {asked}")
        environment.python.parent.mkdir(parents=True, exist_ok=True)
        environment.python.touch()
        return asked or "cpu"

    monkeypatch.setattr(setup, "install_libraries", libraries)
    monkeypatch.setattr(Environment, "install", lambda self, *projects: made.append(" ".join(projects)))
    monkeypatch.setattr(Environment, "compile", lambda self: None)
    monkeypatch.setattr(Environment, "check", lambda self: None)
    return made


def test_an_older_python_is_told_which_it_needs() -> None:
    done = run(lock.ROOT, "-c", "import sys; sys.version_info = (3, 10, 4); import scripts.setup")
    assert done.returncode == 1
    assert "Ferret needs Python 3.11 or newer" in done.stderr
    assert "set PYTHON=/path/to/python3.11" in done.stderr


def test_a_stale_lock_is_refused(checkout: Path) -> None:
    project = checkout / "packaging/pyproject.toml"
    project.write_text(project.read_text().replace("httpx>=0.28,<1", "httpx>=0.29,<1"))
    done = run(checkout, "-m", "scripts.setup")
    assert done.returncode == 1
    assert done.stderr.startswith("make setup: stale lock: requirements-dev.txt and the pyproject.toml files disagree")
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    "torch",
    ["gpu", pytest.param("cpu", marks=pytest.mark.skipif(sys.platform != "linux", reason="PyPI has that build here"))],
)
@pytest.mark.slow
def test_a_build_that_cannot_be_had_is_refused(torch: str, wheel, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    done = run(lock.ROOT, "-m", "scripts.setup", "--torch", torch, "--venv", str(tmp_path / "venv"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"make setup: TORCH={torch}: ")
    assert not (tmp_path / "venv").exists()


def test_a_full_disk_is_refused_with_what_is_needed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(free=5e9))
    setup.require_room({tmp_path: 4.9})
    with pytest.raises(Refusal, match=r"set-up needs 5.1 GB \(.*\) and 5.0 GB are free; make room"):
        setup.require_room({tmp_path: 4.9, tmp_path.parent: 0.2})


def test_nothing_is_done_twice(tmp_path: Path, calls: list[str]) -> None:
    for _ in range(2):
        setup.set_up(tmp_path / "venv", "", lock.RUNTIME, ["."])
    assert calls == ["libraries ", "."]


def test_the_build_stays_until_another_is_asked_for(tmp_path: Path, calls: list[str]) -> None:
    for asked in ["cuda", "", "cuda", "cpu", ""]:
        setup.set_up(tmp_path / "venv", asked, lock.RUNTIME, ["."])
    assert calls == ["libraries cuda", ".", "libraries cpu", "."]


def test_a_refusal_leaves_what_is_there(tmp_path: Path, calls: list[str], monkeypatch) -> None:
    def refuse(*arguments: object) -> str:
        raise Refusal("no disk space")

    setup.set_up(tmp_path / "venv", "cpu", lock.RUNTIME, ["."])
    with monkeypatch.context() as patch:
        patch.setattr(setup, "install_libraries", refuse)
        with pytest.raises(Refusal):
            setup.set_up(tmp_path / "venv", "cuda", lock.RUNTIME, ["."])
    setup.set_up(tmp_path / "venv", "", lock.RUNTIME, ["."])
    assert calls == ["libraries cpu", "."]


@pytest.mark.parametrize("damage", ["bin/python", setup.STAMP])
def test_a_damaged_environment_is_made_anew(damage: str, tmp_path: Path, calls: list[str]) -> None:
    setup.set_up(tmp_path / "venv", "", lock.RUNTIME, ["."])
    (tmp_path / "venv" / damage).unlink()
    setup.set_up(tmp_path / "venv", "", lock.RUNTIME, ["."])
    assert calls == ["libraries ", "."] * 2


def test_an_interrupted_set_up_starts_where_it_stopped(tmp_path: Path, calls: list[str], monkeypatch) -> None:
    def interrupted(self: Environment, *projects: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Environment, "install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            setup.set_up(tmp_path / "venv", "cpu", lock.RUNTIME, ["."])
    setup.set_up(tmp_path / "venv", "", lock.RUNTIME, ["."])
    assert calls == ["libraries cpu", "."]
