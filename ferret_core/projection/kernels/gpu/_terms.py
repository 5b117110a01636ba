"""The terms of a round as a table for a kernel: one pass over the weights applies them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton.language as tl
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels._base import ReconstructionTerm
from ferret_core.projection.kernels.gpu._jit import jit
from ferret_core.projection.kernels.gpu._launch import launch, signed, tiles
from ferret_core.projection.kernels.gpu._launch_table import sent
from ferret_core.projection.kernels.gpu._value import Value

FIELDS = tl.constexpr(4)


def subtract(
    kernel: Any,
    weights: Tensor,
    block: Block,
    terms: Sequence[ReconstructionTerm],
    start: int,
    rounding: int,
    *more: Any,
    programs: int | None = None,
    **constants: Any,
) -> None:
    """Runs ``kernel`` over the weights, if any term changes them, by default with one program per tile."""
    rows = [row_of(term) for term in terms if len(term.coefficients)]
    if rows and len(weights):
        number, sheet = programs or tiles(start, len(weights)), sent(rows, weights.device)
        arguments = start, len(weights), sheet, len(rows), signed(rounding), block.id, *more
        launch(kernel, number, weights, *arguments, **constants)


def row_of(term: ReconstructionTerm, fourth: int = 0) -> tuple[int, int, int, int]:
    """Returns (seed, address of the coefficients, K, ``fourth``) of a term."""
    return signed(term.seed), term.coefficients.data_ptr(), term.coefficients.numel(), fourth


@jit
def nth(sheet: Value, n: Value) -> Value:
    """Returns (seed, pointer to the coefficients, K, fourth) of term ``n``."""
    row = sheet + n * FIELDS
    coefficients = tl.load(row + 1).to(tl.pointer_type(tl.float32))
    return tl.load(row), coefficients, tl.load(row + 2), tl.load(row + 3)
