"""A real virtual environment and its pip."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.environment import Environment
from scripts.lock import Pin


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("environment"))
    made.create()
    return made


def pin(name: str, version: str, digest: str) -> Pin:
    return Pin(name, version, f"{name}=={version} \\\n    --hash=sha256:{digest}\n")


@pytest.mark.slow
def test_only_a_file_with_a_hash_of_the_lock_is_installed(environment: Environment, wheel, capfd) -> None:
    environment.install_locked([pin("honest", "1.0", wheel("honest", "1.0"))])
    wheel("forged", "1.0")
    with pytest.raises(subprocess.CalledProcessError):
        environment.install_locked([pin("forged", "1.0", "0" * 64)])
    assert "HASHES" in capfd.readouterr().err
    (libraries,) = Path(environment.folder).glob("lib/*/site-packages")
    assert [path.name for path in libraries.glob("*-1.0.dist-info")] == ["honest-1.0.dist-info"]


@pytest.mark.slow
def test_what_compiles_is_compiled_and_the_rest_is_no_error(environment: Environment, capfd) -> None:
    (libraries,) = Path(environment.folder).glob("lib/*/site-packages")
    (libraries / "fine.py").write_text("x = 1\n")
    (libraries / "older.py").write_text("print 'of another Python'\n")
    environment.compile()
    assert [path.name.partition(".")[0] for path in (libraries / "__pycache__").glob("*.pyc")] == ["fine"]
    assert capfd.readouterr() == ("", "")


def test_the_small_build_is_offered_by_the_links_that_pip_is_configured_with(environment: Environment, wheel) -> None:
    wheel("torch", "2.13.0")
    assert not environment.offers("torch", "2.13.0+cpu")
    wheel("torch", "2.13.0+cpu")
    assert environment.offers("torch", "2.13.0+cpu")
