"""Wheels on disk in place of an index, so that pip is asked for real and no network is."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import lock


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """``wheel(name, version)``: the hash of an empty package, which is all that pip finds, beside others made so."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)

    def make(name: str, version: str) -> str:
        path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{info}/RECORD", "")
        return hashlib.sha256(path.read_bytes()).hexdigest()

    return make


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the lock is made of."""
    for name in [*lock.PROJECTS, *lock.SOURCES]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(lock.ROOT / name, tmp_path / name)
    shutil.copytree(lock.ROOT / "scripts", tmp_path / "scripts")
    return tmp_path
