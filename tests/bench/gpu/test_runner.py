"""Steps that fail, hang or were done before; where they run matters to none of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ferret_bench.base import Table
from ferret_bench.gpu import page, runner
from ferret_bench.gpu.part import Done, Found, Setup, Step


class Part:
    """Counts how often its first step runs; the second fails, the third finds what JSON cannot hold."""

    title = "A part"
    lead = "It fails."
    seconds = 60.0
    runs = 0

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        return {"first": self._first, "second": self._second, "third": lambda _: {"loss": float("nan")}}

    def tables(self, done: Done) -> Sequence[Table]:
        return [Table("Found:", ["a", "b"], [[found["a"], None] for found in done.values()])]

    def _first(self, setup: Setup) -> Found:
        Part.runs += 1
        return {"a": 1.23456}

    def _second(self, setup: Setup) -> Found:
        raise RuntimeError("CUDA error: device-side | assert")


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    monkeypatch.setattr(runner, "part", lambda _: Part())
    monkeypatch.setattr(page, "part", lambda _: Part())
    monkeypatch.setattr(Part, "runs", 0)
    return Setup(miniature=True, data=None, scratch=tmp_path)


def test_a_step_that_fails_costs_the_others_nothing(setup: Setup, tmp_path: Path) -> None:
    steps = runner.run("kernels", setup, tmp_path)["steps"]
    assert steps["first"]["found"] == {"a": 1.23456}
    assert steps["second"]["error"]["detail"] == "RuntimeError: CUDA error: device-side | assert"
    assert "not JSON compliant" in steps["third"]["error"]["detail"]
    written = page.markdown(tmp_path)
    assert "| 1.235 | – |" in written
    assert "device-side \\| assert" in written


def test_what_was_found_is_not_run_again_unless_asked_for_or_on_another_gpu(setup: Setup, tmp_path: Path) -> None:
    for again, runs in ((False, 1), (False, 1), (True, 2)):
        runner.run("kernels", setup, tmp_path, again=again)
        assert Part.runs == runs
    file = runner.file_of("kernels", tmp_path)
    elsewhere = json.loads(file.read_bytes())
    elsewhere["machine"]["gpu"] = "another"
    file.write_text(json.dumps(elsewhere))
    runner.run("kernels", setup, tmp_path)
    assert Part.runs == 3


def test_a_part_whose_time_is_over_leaves_its_steps_to_the_next_run(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Part, "seconds", 0.0)
    assert runner.run("kernels", setup, tmp_path)["steps"] == {}


@pytest.mark.slow
def test_a_step_in_a_process_of_its_own_comes_back_through_a_file(tmp_path: Path) -> None:
    setup = Setup(miniature=True, data=None, scratch=tmp_path)
    ended = runner.apart("frontier", "base", setup, 300)
    assert ended["found"]["tokens"] > 0
    assert (tmp_path / "pretrained-toy" / "config.json").exists()


def test_a_step_that_takes_too_long_or_whose_process_dies_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = Setup(miniature=True, data=None, scratch=tmp_path)
    assert "longer than the 0 s" in runner.apart("frontier", "base", setup, 0.01)["error"]["detail"]
    killer = tmp_path / "python"
    killer.write_text(f"#!/bin/sh\nkill -{signal.SIGKILL} $$\n")
    killer.chmod(0o700)
    monkeypatch.setattr(runner.sys, "executable", str(killer))
    assert "ended with -9" in runner.apart("frontier", "base", setup, 60)["error"]["detail"]


def test_without_documents_the_page_says_how_to_make_them(tmp_path: Path) -> None:
    assert "Nothing of Ferret has run on a GPU yet" in page.markdown(tmp_path)
    assert "](../gpu.md)" in page.markdown(tmp_path)
