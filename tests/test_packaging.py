"""The two distributions as they are installed: what they hold, and the participant's without the server."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


CONTENTS = {
    "participant": {"ferret_core", "ferret_sdk", "ferret_cli"},
    ".": {"ferret_db", "api", "worker", "migrations", "bench"},
}
DATA = {
    "participant": {"ferret_core/demo/model/model.safetensors", "ferret_core/demo/demo.toml"},
    ".": {"api/static/index.html", "migrations/script.py.mako", "migrations/versions/0001_initial.py"},
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The built wheel of each distribution's folder."""
    out = tmp_path_factory.mktemp("wheels")
    for folder in CONTENTS:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out / folder)]
        subprocess.run(command, cwd=ROOT / folder, check=True, capture_output=True)
    return {folder: next((out / folder).glob("*.whl")) for folder in CONTENTS}


def names(path: Path) -> set[str]:
    return set(zipfile.ZipFile(path).namelist())


@pytest.mark.parametrize("folder", CONTENTS)
def test_each_wheel_holds_its_packages_and_no_other(wheels: dict[str, Path], folder: str) -> None:
    found = {name.split("/")[0] for name in names(wheels[folder]) if ".dist-info" not in name}
    assert found == CONTENTS[folder]
    assert names(wheels[folder]) >= DATA[folder], "files that Python does not import"


def test_a_participant_without_the_server_is_told_what_to_install(wheels: dict[str, Path], tmp_path: Path) -> None:
    zipfile.ZipFile(wheels["participant"]).extractall(tmp_path)
    # -S leaves out the links of the development install; the libraries are found all the same.
    libraries = sysconfig.get_paths()["purelib"]
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{libraries}",
        "FERRET_HOME": str(tmp_path / "home"),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", *arguments]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run("-m", "ferret_cli", "join", "--help").returncode == 0
    for command in (["serve"], ["bench", "projection"]):
        refused = run("-m", "ferret_cli", *command)
        assert refused.returncode == 1
        assert "pip install" in refused.stderr
    assert run("-c", "import ferret_sdk.service, sys; sys.exit('torch' in sys.modules)").returncode == 0
