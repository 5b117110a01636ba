"""What is particular to the CPU's kernels; that they compute what the reference does is in ``tests/contract``."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels import named, reference
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.cpu import norm
from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.kernels.cpu._threads import ranges, share_out, stretches_of_tiles, tiles_of

ROOT = Path(__file__).parents[4]
ADD_ONE = """
def add_one(x):
    return x + 1
"""
DRAW = """
from numpy import empty, uint32, zeros
from ferret_core.projection.kernels.cpu._philox import draw_signs
draw_signs(empty((4, 32), uint32), 0, uint32(0), uint32(0), zeros(2, uint32))
"""


def test_a_function_whose_source_lies_nowhere_is_compiled_without_a_cache() -> None:
    # As in an installation where neither the package's folder nor the home can be written.
    names: dict[str, Any] = {}
    exec(ADD_ONE, names)
    assert compiled(names["add_one"])(41) == 42


def compile_into(cache: Path, package: Path = ROOT) -> set[Path]:
    """The compiled files in ``cache`` after a process that ran ``DRAW``."""
    environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(package)}
    subprocess.run([sys.executable, "-P", "-c", DRAW], check=True, env=environment)
    return set(cache.rglob("*.nbc"))


@pytest.mark.slow
def test_what_one_process_compiled_the_next_one_reads_until_a_source_changes(tmp_path: Path) -> None:
    copy, cache = tmp_path / "package", tmp_path / "cache"
    shutil.copytree(ROOT / "ferret_core", copy / "ferret_core", ignore=shutil.ignore_patterns("__pycache__", "demo"))
    first = compile_into(cache, copy)
    assert first
    assert compile_into(cache, copy) == first
    shared = copy / "ferret_core" / "projection" / "kernels" / "cpu" / "_philox.py"
    shared.write_text(shared.read_text() + "\n")
    assert compile_into(cache, copy) > first


def test_several_threads_may_compute_at_once() -> None:
    torch.set_num_threads(2)
    kernel, block = named("cpu", basis("G")), Block(0, "w", 600_000)
    delta = torch.randn(600_000, generator=torch.Generator().manual_seed(1))
    expected = kernel.project(delta, torch.zeros(600_000), block, 900, 7)
    found: list[torch.Tensor] = []

    def work() -> None:
        for _ in range(5):
            found.append(kernel.project(delta, torch.zeros(600_000), block, 900, 7))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(torch.equal(gamma, expected) for gamma in found)


def test_tiles_of_many_tasks_are_each_moved_once() -> None:
    """A stretch that begins within a tile shares it with no other task, whatever the number of threads."""
    torch.set_num_threads(2)
    start, size = 1001, 1_300_000
    weights = torch.zeros(size)
    block = Block(3, "w", start + size)
    named("cpu", basis("G")).apply_(weights, block, [ReconstructionTerm(5, torch.ones(50_000))], start=start)
    assert torch.equal(weights.abs(), torch.ones(size))


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    torch.set_num_threads(2)
    with pytest.raises(ZeroDivisionError):
        share_out(lambda n: 1 // n, [(1,), (0,), (2,)])


def test_ranges_and_tiles_cover_everything_once() -> None:
    assert ranges(10, 4) == [(0, 4), (4, 8), (8, 10)]
    assert ranges(0, 4) == []
    assert tiles_of(4095, 2) == (0, 2)
    assert stretches_of_tiles(4095, 2, 1) == [(0, 1), (1, 2)]
    assert stretches_of_tiles(4096, 4096, 8) == [(1, 2)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [1, 511, 513, (1 << 20) + 77])
def test_the_norm_is_the_references_whatever_the_number_of_threads(dtype: torch.dtype, size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    before, after = (torch.randn(size, generator=generator).to(dtype) for _ in range(2))
    found = norm.squared_norm(before, after).item()
    assert found == pytest.approx(reference.squared_norm(before, after).item(), rel=1e-13)
    torch.set_num_threads(2)
    assert norm.squared_norm(before, after).item() == found


def test_a_norm_that_is_no_number_stays_none() -> None:
    zero = torch.zeros(3)
    assert math.isnan(norm.squared_norm(zero, torch.tensor([0.0, math.nan, 0.0])))
    assert norm.squared_norm(zero, torch.tensor([0.0, math.inf, 0.0])) == math.inf
