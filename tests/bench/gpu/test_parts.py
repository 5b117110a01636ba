"""Every part runs, at toy size and on a processor; what a GPU would find is not asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferret_bench.gpu import page, runner
from ferret_bench.gpu.setup import Setup


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    return Setup(miniature=True, data=None, scratch=tmp_path_factory.mktemp("scratch"))


@pytest.mark.parametrize("name", runner.PARTS)
def test_every_step_of_a_part_finds_what_the_page_shows(name: str, setup: Setup, tmp_path: Path) -> None:
    document = runner.run(name, setup, tmp_path)
    assert {step: ended.get("error") for step, ended in document["steps"].items()} == dict.fromkeys(document["steps"])
    assert json.loads((tmp_path / f"{name}.json").read_bytes()) == document
    written = page.markdown(tmp_path)
    assert "toy sizes" in written
    assert all(f"| {step} |" in written for step in document["steps"])
    if name == "kernels":
        found = [ended["found"] for step, ended in document["steps"].items() if step != "contract"]
        assert all(step["weights"] and step.get("entries", True) and step["coordinates"] < 1e-4 for step in found)
