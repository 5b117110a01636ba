"""Commands at a server with real workers, and an experiment to submit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Ferret = Callable[..., subprocess.CompletedProcess[str]]  # tests/ferret_cli/conftest.py


@pytest.fixture
def home(served) -> Path:
    """The commands find the server by its home."""
    return served.home


@pytest.fixture
def cli(ferret_in_process: Ferret) -> Ferret:
    """Most commands run here; ``ferret`` is for those whose process is part of the test."""
    return ferret_in_process


@pytest.fixture
def toy_file(toy_spec, tmp_path) -> Path:
    """The toy experiment as a file; JSON's values are TOML's here."""
    spec = toy_spec(rounds=2).model_dump(mode="json", exclude_none=True)
    file = tmp_path / "toy.toml"
    tables = {name: value for name, value in spec.items() if isinstance(value, dict)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in spec.items() if name not in tables]
    lines += [f"{name}.{key} = {_toml(value)}" for name, table in tables.items() for key, value in table.items()]
    file.write_text("\n".join(lines))
    return file


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def document(done: subprocess.CompletedProcess[str]):
    """The one JSON document on stdout."""
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    return json.loads(line)
