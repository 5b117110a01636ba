"""The distributions as they are installed: what they hold, their version, and the participant's without the others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path

import pytest
import typer

from ferret_core import __version__

pytestmark = pytest.mark.heavy
ROOT = Path(__file__).parents[1]
LIBRARIES = Path(typer.__file__).parents[1]
PARTICIPANT, SERVER, BENCH = "packaging", ".", "bench"
"""The folders of the distributions."""

CONTENTS = {
    PARTICIPANT: {"ferret_core", "ferret_sdk", "ferret_cli"},
    SERVER: {"ferret_runtime", "ferret_db", "ferret_api", "ferret_worker"},
    BENCH: {"ferret_bench"},
}
DATA = {
    PARTICIPANT: {"ferret_core/sample/model/model.safetensors", "ferret_core/sample/demo.toml"},
    SERVER: {
        "ferret_api/static/index.html",
        "ferret_db/migrations/env.py",
        "ferret_db/migrations/script.py.mako",
        "ferret_db/migrations/versions/0001_initial.py",
    },
    BENCH: {f"ferret_bench/reproduce/reruns/{name}.toml" for name in ("rows", "datasets", "printed")},
}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The built wheel of each distribution's folder."""
    out = tmp_path_factory.mktemp("wheels")
    for folder in CONTENTS:
        build(ROOT / folder, "wheel", out / folder)
    return {folder: next((out / folder).glob("*.whl")) for folder in CONTENTS}


@pytest.fixture
def installed(wheels: dict[str, Path], tmp_path: Path) -> Callable[..., Run]:
    """``installed(PARTICIPANT)`` is a Python that has these distributions, and the libraries, and no others."""
    # -S leaves out the links of the development install; the libraries are found all the same.
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{LIBRARIES}",
        "FERRET_HOME": str(tmp_path / "home"),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", *arguments]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    def install(*folders: str) -> Run:
        for folder in folders:
            zipfile.ZipFile(wheels[folder]).extractall(tmp_path)
        return run

    return install


def build(folder: Path, target: str, out: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def names(path: Path) -> set[str]:
    return set(zipfile.ZipFile(path).namelist())


@pytest.mark.parametrize("folder", CONTENTS)
def test_each_wheel_holds_its_packages_and_no_other(wheels: dict[str, Path], folder: str) -> None:
    found = {name.split("/")[0] for name in names(wheels[folder])}
    assert [name for name in found if not name.startswith("ferret_")] == [], "names that other projects use too"
    assert {name for name in found if not name.endswith(".dist-info")} == CONTENTS[folder]
    assert names(wheels[folder]) >= DATA[folder], "files that Python does not import"
    assert names(wheels[folder]) >= {f"{package}/py.typed" for package in CONTENTS[folder]}, "type checkers ignore it"


@pytest.mark.parametrize("folder", [PARTICIPANT, SERVER])
def test_participants_and_servers_get_neither_benchmarks_nor_reruns(wheels: dict[str, Path], folder: str) -> None:
    files = (Path(name) for name in names(wheels[folder]))
    assert [
        str(file) for file in files if {"bench", "paper", "reproduce"} & {part.split(".")[0] for part in file.parts}
    ] == []


def test_all_wheels_have_one_version_and_need_each_other_at_it(wheels: dict[str, Path]) -> None:
    for wheel in wheels.values():
        (metadata,) = (name for name in names(wheel) if name.endswith(".dist-info/METADATA"))
        about = message_from_bytes(zipfile.ZipFile(wheel).read(metadata))
        assert about["Version"] == __version__
        needed = [need for need in about.get_all("Requires-Dist", []) if need.startswith("ferret-")]
        assert [need for need in needed if "extra ==" not in need and f"=={__version__}" not in need] == []


def test_everything_else_that_tells_the_version_tells_the_same() -> None:
    (newest, *_) = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest == __version__
    assert json.loads((ROOT / "openapi.json").read_text())["info"]["version"] == __version__
    assert "version" not in json.loads((ROOT / "web/package.json").read_text()), (
        "the dashboard is released with the API"
    )


@pytest.mark.parametrize(
    "folder",
    [PARTICIPANT, *(pytest.param(folder, marks=pytest.mark.slow) for folder in CONTENTS if folder != PARTICIPANT)],
)
def test_a_source_distribution_builds_the_same_wheel(wheels: dict[str, Path], folder: str, tmp_path: Path) -> None:
    build(ROOT / folder, "sdist", tmp_path)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    build(next(tmp_path.glob("*/")), "wheel", tmp_path)
    (again,) = tmp_path.glob("*.whl")
    assert contents(again) == contents(wheels[folder])


def test_a_participant_without_the_server_is_told_what_to_install(installed: Callable[..., Run]) -> None:
    run = installed(PARTICIPANT)
    assert run("-m", "ferret_cli", "join", "--help").returncode == 0
    for command, install in (("serve", "pip install ."), ("bench", "./bench"), ("paper", "./bench")):
        refused = run("-m", "ferret_cli", command)
        assert refused.returncode == 1
        assert "not installed" in refused.stderr
        assert install in refused.stderr
    assert run("-c", "import ferret_sdk.service.service, sys; sys.exit('torch' in sys.modules)").returncode == 0


def test_the_benchmarks_distribution_brings_its_commands(installed: Callable[..., Run]) -> None:
    alone = installed(PARTICIPANT)("-m", "ferret_cli", "--help").stdout
    assert "join" in alone
    assert "bench" not in alone
    run = installed(PARTICIPANT, SERVER, BENCH)
    listed = run("-m", "ferret_cli", "--help").stdout
    assert "bench" in listed
    assert "paper" in listed
    tables = run("-m", "ferret_cli", "paper", "table", "--help")
    assert "codealpaca_gsm8k, cost, memory, ni_dolly" in tables.stdout, tables.stderr
