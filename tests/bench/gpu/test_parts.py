"""Every part runs, at toy size and on a processor; what a GPU would find is not asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ferret_bench.gpu import page, reruns, runner
from ferret_bench.gpu.part import GSM8K, Setup
from ferret_bench.gpu.parts import federation, frontier, tables
from ferret_bench.reproduce.reruns.grid import Cell
from ferret_bench.reproduce.reruns.records import Record
from ferret_core import sample


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    return Setup(miniature=True, data=None, scratch=tmp_path_factory.mktemp("scratch"))


@pytest.mark.slow
@pytest.mark.parametrize("name", runner.PARTS)
def test_every_step_of_a_part_finds_what_the_page_shows(name: str, setup: Setup, tmp_path: Path) -> None:
    document = runner.run(name, setup, tmp_path)
    assert {step: ended.get("error") for step, ended in document["steps"].items()} == dict.fromkeys(document["steps"])
    assert json.loads((tmp_path / f"{name}.json").read_bytes()) == document
    written = page.markdown(tmp_path)
    assert "toy sizes" in written
    assert all(f"| {step} |" in written for step in document["steps"])
    if name == "kernels":
        assert document["steps"]["digest"]["found"]["same"]
        found = [ended["found"] for step, ended in document["steps"].items() if step not in ("contract", "digest")]
        assert all(step["weights"] and step.get("entries", True) and step["coordinates"] < 1e-4 for step in found)


@pytest.mark.slow
def test_the_service_ends_an_experiment(setup: Setup, need: Callable[[bool, str], None]) -> None:
    need(shutil.which("redis-server") is not None, "redis-server: apt-get install redis-server")
    full = runner.part("federation").steps(setup._replace(miniature=False))
    found = full["service"](setup)
    assert found["state"] == "completed"
    assert federation.Part().tables({"service": found})[-1].rows == [["completed", found["seconds"]]]


@pytest.mark.parametrize("name", ["tables", "frontier"])
def test_every_row_of_full_size_is_a_valid_experiment(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[Cell]()

    def ended(cells: Sequence[Cell]) -> list[tuple[Cell, Record]]:
        seen.extend(cells)
        return []

    monkeypatch.setattr(reruns, "simulated", ended)
    monkeypatch.setattr(tables, "model_of", lambda *_: sample.model_path())
    monkeypatch.setattr(frontier, "_folder", lambda _: sample.model_path())
    for part in GSM8K:
        (tmp_path / part).write_text("")
    full = Setup(miniature=False, data=tmp_path, scratch=tmp_path)
    steps = [step for step in runner.part(name).steps(full).items() if step[0] != "base"]
    for _, step in steps:
        assert step(full) == {"runs": {}}
    assert len(seen) >= len(steps)
    assert all(cell.spec.rounds >= 2 for cell in seen)
