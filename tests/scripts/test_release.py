"""A release's files, without building the wheels: ``tests/test_packaging.py`` does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts import bill_of_materials, lock, release


def test_the_bill_names_wheels_and_locked_packages(tmp_path: Path) -> None:
    wheel = tmp_path / "ferret_service-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"")
    text = bill_of_materials.of("0.1.0", [wheel])
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    components = {component["purl"]: component for component in json.loads(text)["components"]}
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert components["pkg:pypi/ferret-service@0.1.0"]["hashes"] == [{"alg": "SHA-256", "content": empty}]
    assert components.keys() >= {f"pkg:pypi/{pin.name}@{pin.version}" for pin in lock.pins(lock.RUNTIME)}
    assert {"licenses": [{"license": {"id": "MIT"}}], "name": "react"}.items() <= next(
        component for purl, component in components.items() if purl.startswith("pkg:npm/react@")
    ).items()
    assert [purl for purl in components if "vite" in purl] == [], "the dashboard's build holds none of its tools"


def test_the_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"a")
    release.write_sums(tmp_path)
    subprocess.run(["sha256sum", "--strict", "--check", release.SUMS], cwd=tmp_path, check=True)
    assert (tmp_path / release.SUMS).read_text().endswith("  a.whl\n")


@pytest.mark.parametrize(("runs", "sentence"), [(True, "image ferret:1 built by docker"), (False, "image left out")])
def test_the_image_is_built_where_an_engine_runs(runs: bool, sentence: str, tmp_path: Path, monkeypatch) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\nexit {0 if runs else 1}\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(release, "ENGINES", ("docker",))
    assert release.build_image("ferret:1").startswith(sentence)
    built = f"build --tag ferret:1 {lock.ROOT}" in (tmp_path / "calls").read_text()
    assert built == runs
