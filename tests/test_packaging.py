"""The distributions as they are installed: contents, version, the demo, and the participant's without the others."""

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
from email.message import Message
from pathlib import Path

import pytest
import typer
import yaml

from ferret_core import __version__
from scripts import release
from tests.ferret_core import manifest_reader

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
    return release.build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def installed(wheels: dict[str, Path], tmp_path: Path) -> Callable[..., Run]:
    """``installed(PARTICIPANT)`` runs programs of a new environment with these wheels and the locked libraries."""
    folder = tmp_path / "environment"
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("FERRET_", "PYTHON"))}
    variables |= {"FERRET_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}

    def run(program: str, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        command = [str(folder / "bin" / program), *arguments]
        return subprocess.run(command, env=variables | extra, cwd=tmp_path, capture_output=True, text=True, check=False)

    def install(*folders: str) -> Run:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (packages,) = folder.glob("lib/*/site-packages")
        pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(folder)]
        chosen = [str(wheels[name]) for name in folders]
        subprocess.run([*pip, "install", "--no-index", "--no-deps", *chosen], check=True)
        # Python reads no *.pth there, so the links of the development install stay outside.
        (packages / "libraries.pth").write_text(str(LIBRARIES))
        subprocess.run([*pip, "check"], check=True)
        return run

    return install


def build_source(folder: Path, out: Path) -> Path:
    """The wheel that is built from the source distribution of ``folder``."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(out), "-t"]
    subprocess.run([*build, "sdist"], cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(out.glob("*.tar.gz"))) as archive:
        archive.extractall(out)
    subprocess.run([*build, "wheel"], cwd=next(out.glob("*/")), check=True, capture_output=True)
    return next(out.glob("*.whl"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def names(path: Path) -> set[str]:
    return set(zipfile.ZipFile(path).namelist())


def metadata(wheel: Path) -> Message:
    (path,) = (name for name in names(wheel) if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(zipfile.ZipFile(wheel).read(path))


@pytest.mark.parametrize("folder", CONTENTS)
def test_each_wheel_holds_its_packages_and_no_other(wheels: dict[str, Path], folder: str) -> None:
    found = {name.split("/")[0] for name in names(wheels[folder])}
    assert [name for name in found if not name.startswith("ferret_")] == [], "names that other projects use too"
    assert {name for name in found if not name.endswith(".dist-info")} == CONTENTS[folder]
    assert names(wheels[folder]) >= DATA[folder], "files that Python does not import"
    assert wheels[folder].name.endswith("-py3-none-any.whl"), "one for every machine"
    assert names(wheels[folder]) >= {f"{package}/py.typed" for package in CONTENTS[folder]}, "type checkers ignore it"


@pytest.mark.parametrize("folder", [PARTICIPANT, SERVER])
def test_participants_and_servers_get_neither_benchmarks_nor_reruns(wheels: dict[str, Path], folder: str) -> None:
    files = (Path(name) for name in names(wheels[folder]))
    assert [
        str(file) for file in files if {"bench", "paper", "reproduce"} & {part.split(".")[0] for part in file.parts}
    ] == []


def test_each_wheel_names_its_licence_and_holds_it(wheels: dict[str, Path]) -> None:
    for wheel in wheels.values():
        assert metadata(wheel)["License-Expression"] == "Apache-2.0"
        (text,) = (text for name, text in contents(wheel).items() if name.endswith(".dist-info/licenses/LICENSE"))
        assert text == (ROOT / "LICENSE").read_bytes()


def test_an_older_python_gets_no_wheel(wheels: dict[str, Path]) -> None:
    for wheel in wheels.values():
        options = [
            "--dry-run",
            "--no-deps",
            "--no-index",
            "--target=unused",
            "--only-binary=:all:",
            "--python-version=3.10",
        ]
        command = [sys.executable, "-m", "pip", "install", *options, str(wheel)]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert "requires a different Python: 3.10.0 not in '>=3.11'" in refused.stderr


def test_all_wheels_have_one_version_and_need_each_other_at_it(wheels: dict[str, Path]) -> None:
    for wheel in wheels.values():
        about = metadata(wheel)
        assert about["Version"] == __version__
        needed = [need for need in about.get_all("Requires-Dist", []) if need.startswith("ferret-")]
        assert [need for need in needed if "extra ==" not in need and f"=={__version__}" not in need] == []


def test_everything_else_that_tells_the_version_tells_the_same() -> None:
    (newest, *_) = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest == __version__
    assert json.loads((ROOT / "openapi.json").read_text())["info"]["version"] == __version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    assert "version" not in json.loads((ROOT / "web/package.json").read_text()), (
        "the dashboard is released with the API"
    )


@pytest.mark.parametrize(
    "folder",
    [PARTICIPANT, *(pytest.param(folder, marks=pytest.mark.slow) for folder in CONTENTS if folder != PARTICIPANT)],
)
def test_a_source_distribution_builds_the_same_wheel(wheels: dict[str, Path], folder: str, tmp_path: Path) -> None:
    assert contents(build_source(ROOT / folder, tmp_path)) == contents(wheels[folder])


def test_a_participant_without_the_server_is_told_what_to_install(installed: Callable[..., Run]) -> None:
    run = installed(PARTICIPANT)
    assert run("ferret", "join", "--help").returncode == 0
    for command, install in (("serve", "ferret-service"), ("dev bench", "ferret-bench"), ("dev paper", "ferret-bench")):
        refused = run("ferret", *command.split())
        assert refused.returncode == 1
        assert "not installed" in refused.stderr
        assert install in refused.stderr
    assert (
        run("python", "-c", "import ferret_sdk.service.service, sys; sys.exit('torch' in sys.modules)").returncode == 0
    )


def test_the_benchmarks_distribution_brings_its_commands(installed: Callable[..., Run]) -> None:
    assert "bench" not in installed(PARTICIPANT)("ferret", "dev", "--help").stdout
    run = installed(PARTICIPANT, SERVER, BENCH)
    listed = run("ferret", "dev", "--help").stdout
    assert "bench" in listed
    assert "paper" in listed
    tables = run("ferret", "dev", "paper", "table", "--help")
    assert "codealpaca_gsm8k, cost, memory, ni_dolly" in tables.stdout, tables.stderr


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_the_demo_learns_and_ends_with_one_document(installed: Callable[..., Run], tmp_path: Path) -> None:
    run = installed(PARTICIPANT, SERVER)("ferret", "demo", "--once", "--json", "--home", str(tmp_path / "demo"))
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout.splitlines()[-1])
    assert set(result) == {
        *("id", "state", "rounds", "eval_loss", "rouge_l"),
        *("bytes_up", "bytes_down", "seconds", "checkpoint", "digest"),
    }
    assert (result["state"], result["rounds"]) == ("completed", 12)
    assert result["rouge_l"]["last"] - result["rouge_l"]["first"] >= 20
    assert result["eval_loss"]["last"] < result["eval_loss"]["first"]
    assert 8_192 < result["bytes_up"] < 10_000
    assert manifest_reader.checked(Path(result["checkpoint"])).digest == result["digest"]


@pytest.mark.slow
def test_a_participant_without_the_server_takes_part(installed, served, toy_spec, toy_data) -> None:
    run = installed(PARTICIPANT)
    where = run("python", "-c", "import ferret_sdk; print(ferret_sdk.__file__)")
    assert "/environment/" in where.stdout
    spec = toy_spec(rounds=2, participants={"simulated": 0, "edge": 1})
    experiment = served.service.submit(spec)
    code = experiment.create_code().code
    joined = run("ferret", "join", "--yes", served.service.url, "--data", str(toy_data[0]), FERRET_CODE=code)
    assert joined.returncode == 0, joined.stderr
    assert experiment.refresh().state == "completed"
