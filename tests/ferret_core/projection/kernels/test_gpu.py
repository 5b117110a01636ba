"""What is particular to the GPU's kernels; that they compute what the reference does is in ``tests/contract``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ferret_core.projection.bases import basis
from ferret_core.projection.bases.hadamard import Sample
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels import named, reference, squared_norm
from ferret_core.projection.kernels.base import ReconstructionTerm

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# The interpreter accepts what a compiler refuses, so everything is compiled as well, for a GPU that need not be there.
# Elements count from 0 and from 1 in turn: the compiler treats multiples of 16, and the number 1, as special.
COMPILE = """
import re
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from ferret_core.projection.bases import basis, letters
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels import named
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.gpu import norm as on_gpu


class Hopper:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


run = JITFunction.run


def only_compile(self, *arguments, grid, warmup, **options):
    compiled = run(self, *arguments, grid=grid, warmup=True, **options)
    fused = re.findall("fma[.]rn[.]f32", compiled.asm["ptx"])
    print(self.fn.__module__.rpartition(".")[2], self.fn.__name__, len(compiled.asm["cubin"]) > 0, len(fused))
    return compiled


driver.set_active(Hopper())
JITFunction.run = only_compile
for position, letter in enumerate(letters()):
    kernel, start = named("gpu", basis(letter)), position % 2
    block, count = Block(3, "w", 5001), 1 if start else 5000
    weights = torch.zeros(count, dtype=torch.float16 if start else torch.bfloat16)
    kernel.project(weights.float(), weights, block, 5001, 2**64 - 1, start=start)
    terms = [ReconstructionTerm(seed, torch.zeros(5001)) for seed in (2**64 - 1, 7)]
    kernel.apply_(weights, block, terms, start=start)
many, block = named("gpu", basis("G")), Block(3, "w", 1 << 15)
for dtype, K in ((torch.bfloat16, 4), (torch.float32, 1 << 10)):
    weights = torch.zeros(block.size, dtype=dtype)
    many.project(weights, weights.clone(), block, K, 7)
    many.apply_(weights, block, [ReconstructionTerm(7, torch.zeros(K))])
on_gpu.squared_norm(torch.zeros(5000), torch.zeros(5000, dtype=torch.bfloat16))
"""
KERNELS = {
    ("signed_buckets", "_sum_granules"),
    ("signed_buckets", "_sum_buckets"),
    ("signed_buckets", "_sum_parts"),
    ("_apply_buckets", "_subtract"),
    ("hadamard", "_project"),
    ("hadamard", "_subtract"),
    ("identity", "_subtract"),
    ("_dense", "_sum"),
    ("_dense", "subtract_columns"),
    ("norm", "_squares"),
}


@pytest.mark.slow
def test_every_kernel_compiles_and_fuses_no_product_with_a_sum(tmp_path: Path) -> None:
    environment = os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    compiled = [line.split() for line in done.stdout.splitlines()]
    assert {(module, name) for module, name, _, _ in compiled} == KERNELS
    assert all(binary == "True" and fused == "0" for _, _, binary, fused in compiled), done.stdout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_squared_lengths_are_the_references(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_KERNEL", "gpu")
    generator = torch.Generator().manual_seed(1)
    before, after = (torch.randn(10_007, generator=generator) for _ in range(2))
    expected = reference.squared_norm(before, after.to(dtype)).item()
    assert squared_norm(before.to(DEVICE), after.to(dtype).to(DEVICE)).item() == pytest.approx(expected, rel=1e-13)


def test_a_stratum_may_be_longer_than_31_bits() -> None:
    """H with one coordinate for a block of 2³³ elements: its place is a product of 65 bits."""
    block = Block(3, "w", 2**33 + 77)
    place = Sample.of(torch.tensor([0]), block, 1, seed=9).places.item()
    start = int(place) - int(place) % 4096
    weights, unit = torch.zeros(4096), torch.ones(1)
    found = weights.to(DEVICE, copy=True)
    named("gpu", basis("H")).apply_(found, block, [ReconstructionTerm(9, unit.to(DEVICE))], start=start)
    named("reference", basis("H")).apply_(weights, block, [ReconstructionTerm(9, unit)], start=start)
    assert weights.abs().sum() == 64
    assert torch.equal(found.cpu(), weights)
