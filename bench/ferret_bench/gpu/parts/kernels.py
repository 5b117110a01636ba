"""A bitwise comparison of the GPU's kernels with the processor's: weights and entries."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, final

import torch
from torch import Tensor

from ferret_bench.base import Table
from ferret_bench.gpu.part import Done, Found, Setup, Step
from ferret_cli.requirements_check import require_modules
from ferret_core.models.digest import model_digest
from ferret_core.projection.bases import basis, letters
from ferret_core.projection.block_views import STRETCH
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels import named
from ferret_core.projection.kernels.base import Kernel, ReconstructionTerm

CONTRACT = "tests/contract/test_kernel.py"
ONE_TEST = "uncover and gpu-G-6"
DIGEST = "digest"
DENSE = "TR"
ROUNDING, SEEDS = 2**63 + 11, (2**64 - 3, 5, 2**40)
LARGE = 2**31 + 2**20


class Size(NamedTuple):
    """A vector of a block that begins at element ``start`` of it, and how many coordinates it has."""

    elements: int
    K: int
    start: int


def size_of(letter: str, setup: Setup) -> Size:
    """Returns a size across element 2³¹. I, which has a coordinate per element of its block, and H, which has few there
    unless it has as many, get other sizes.
    """
    start = 0 if letter in "HI" else 2**31 - 4000
    if setup.miniature:
        return Size(5001, 3 if letter in DENSE else 256, start)
    return Size(1 << 20, 16, start) if letter in DENSE else Size(1 << 24, 1 << 16, start)


@final
class Part:
    title = "Kernels"
    lead = "The GPU's kernels beside the processor's: the contract's tests, and large vectors."
    seconds = 420.0

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        alike: dict[str, Step] = {f"basis {letter}": partial(_alike, letter) for letter in letters()}
        return {"contract": _contract, **alike, "more than 2^31 elements": _large, DIGEST: _digest}

    def tables(self, done: Done) -> Sequence[Table]:
        found = [
            [step, *(_word(values.get(name)) for name in ("weights", "entries")), values.get("coordinates")]
            for step, values in done.items()
            if step not in ("contract", DIGEST)
        ]
        tables = [Table("", ["step", "same weights", "same entries", "coordinates off by"], found)]
        if contract := done.get("contract"):
            tables.append(Table("The contract's tests:", ["exit code", "said"], [[contract["code"], contract["said"]]]))
        if digest := done.get(DIGEST):
            columns = ["same on both", "bytes", "GB/s on the GPU", "GB/s on the processor"]
            speeds = [digest["bytes"] / digest[name] / 1e9 for name in ("gpu_seconds", "cpu_seconds")]
            tables.append(Table("The digest of a model:", columns, [[_word(digest["same"]), digest["bytes"], *speeds]]))
        return tables


def _word(same: bool | None) -> str | None:
    return None if same is None else "yes" if same else "**no**"


def _contract(setup: Setup) -> Found:
    """The tests that every kernel must pass, without the plug-ins and settings that other tests need."""
    require_modules(["pytest", "hypothesis"], "make gpu-wheels, on a machine with an index")
    root = next(parent for parent in Path(__file__).parents if (parent / CONTRACT).exists())
    plain = ["-p", "no:cacheprovider", "--noconftest", "-o", "addopts=", "-o", "filterwarnings=", "-q", "--tb=short"]
    # Most of the time goes to compiling kernels, which several processes do at once.
    several = [] if setup.miniature or find_spec("xdist") is None else ["-n", "5", "--dist", "loadgroup"]
    chosen = ["-k", ONE_TEST if setup.miniature else "gpu"]
    command = [sys.executable, "-m", "pytest", CONTRACT, *plain, *several, *chosen]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED") or " in " in line]
    if done.returncode:
        raise AssertionError("\n".join(lines[-20:]) or done.stdout[-2000:])
    return {"code": done.returncode, "said": lines[-1]}


def _alike(letter: str, setup: Setup) -> Found:
    """Compares weights, coordinates and entries on the device and on the processor."""
    size, device, family = size_of(letter, setup), setup.device, basis(letter)
    block = Block(7, "w", size.start + size.elements)
    before, after = _vector(size.elements, 1), _vector(size.elements, 2).bfloat16()
    K = size.elements if letter == "I" else size.K
    terms = [ReconstructionTerm(seed, _vector(K, 3 + n) * 1e-2) for n, seed in enumerate(SEEDS)]
    gpu, cpu = named("gpu", family), named("cpu", family)
    moved = _applied(gpu, after, block, terms, size.start, device)
    same = torch.equal(moved, _applied(cpu, after, block, terms, size.start, torch.device("cpu")))
    begin, end = before.to(device), after.to(device)
    found = gpu.project(begin, end, block, K, SEEDS[0], start=size.start).cpu()
    expected = cpu.project(before, after, block, K, SEEDS[0], start=size.start)
    rows = size.start + torch.arange(min(4096, size.elements))
    columns = torch.arange(min(16, K))
    entries = family.entries(rows.to(device), columns.to(device), block, K, SEEDS[0]).cpu()
    return {
        "weights": same,
        "entries": torch.equal(entries, family.entries(rows, columns, block, K, SEEDS[0])),
        "coordinates": float((found - expected).abs().max() / expected.abs().max()),
    }


def _applied(
    kernel: Kernel, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], start: int, device: torch.device
) -> Tensor:
    there = [term._replace(coefficients=term.coefficients.to(device)) for term in terms]
    moved = weights.to(device, copy=True)
    kernel.apply_(moved, block, there, start=start, rounding=ROUNDING)
    return moved.cpu()


def _large(setup: Setup) -> Found:
    """Moves a tensor with more elements than 32 bits count. Compares ends and middle with the processor's."""
    elements, K = (3 * 4096 + 5, 64) if setup.miniature else (LARGE, 1 << 16)
    width = min(STRETCH, elements)
    block, device = Block(3, "w", elements), setup.device
    weights = torch.empty(elements, dtype=torch.bfloat16, device=device).uniform_(-1, 1)
    places = (0, (elements - width) // 2, elements - width)
    before = {start: weights[start : start + width].cpu() for start in places}
    term = ReconstructionTerm(SEEDS[0], _vector(K, 1))
    gpu, cpu = named("gpu", basis("G")), named("cpu", basis("G"))
    gpu.apply_(weights, block, [term._replace(coefficients=term.coefficients.to(device))], rounding=ROUNDING)
    same = list[bool]()
    for start, part in before.items():
        cpu.apply_(part, block, [term], start=start, rounding=ROUNDING)
        same.append(torch.equal(part, weights[start : start + width].cpu()))
    whole, parts = _projections(gpu, weights, block, K)
    return {"weights": all(same), "coordinates": float((whole - parts).abs().max() / whole.abs().max())}


def _digest(setup: Setup) -> Found:
    """Compares the digests of one linear layer without a bias on both devices."""
    layer = torch.nn.Linear(
        64 if setup.miniature else 1 << 15, 64 if setup.miniature else 1 << 16, bias=False
    ).bfloat16()
    begin = perf_counter()
    here = model_digest(layer)
    middle = perf_counter()
    layer.to(setup.device)
    moved = perf_counter()
    there = model_digest(layer)
    return {
        "same": here == there,
        "bytes": layer.weight.nbytes,
        "cpu_seconds": middle - begin,
        "gpu_seconds": perf_counter() - moved,
    }


def _projections(kernel: Kernel, weights: Tensor, block: Block, K: int) -> tuple[Tensor, Tensor]:
    """Projects the weights whole, and in two halves."""
    half, after = block.size // 2 + 3, torch.zeros_like(weights)
    whole = kernel.project(weights, after, block, K, SEEDS[1])
    first = kernel.project(weights[:half], after[:half], block, K, SEEDS[1])
    return whole, first + kernel.project(weights[half:], after[half:], block, K, SEEDS[1], start=half)


def _vector(size: int, seed: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))
