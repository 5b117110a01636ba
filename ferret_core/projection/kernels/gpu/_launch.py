"""Kernel launches: on the device of the kernel's vectors, with arithmetic exactly as written.

A launch takes a processor longer than most blocks take the GPU. A launch therefore processes stretches of many blocks.
Each is a row, rows have consecutive programs, and a program looks up its row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.gpu._jit import Value, jit
from ferret_core.projection.philox import TILE

KINDS = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
FIELDS = tl.constexpr(4)


def launch(kernel: Any, programs: int, vector: Tensor, *arguments: Any, **constants: Any) -> None:
    """Launches ``programs`` programs of ``kernel``, with ``vector`` as first argument, without fused operations."""
    with torch.cuda.device_of(vector):
        kernel[(programs,)](vector, *arguments, **constants, enable_fp_fusion=False)


def signed(seed: int) -> int:
    """Returns the signed 64-bit integer with the bits of ``seed``: one type for all seeds, so one compiled kernel."""
    return seed - (seed >> 63 << 64)


def tiles(start: int, count: int) -> int:
    """Returns the number of the block's tiles that hold its elements start … start + count − 1."""
    return -(-(start % TILE + count) // TILE)


def stretches(start: int, count: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields (first, last) of the parts of a vector of elements start … of a block, cut at multiples of size."""
    first = 0
    while first < count:
        last = min(count, first + size - (start + first) % size)
        yield first, last
        first = last


def aligned(start: int, *vectors: Tensor) -> bool:
    """True if elements ``start`` … of a block begin and end at multiples of 16 elements and of 16 bytes."""
    return not any((start | vector.numel() | vector.data_ptr()) & 15 for vector in vectors)


def sent(rows: Iterable[Sequence[int]], device: torch.device) -> Tensor:
    """Concatenates ``rows`` as int64 on the device, without waiting for it."""
    numbers = torch.frombuffer(array("q", chain.from_iterable(rows)), dtype=torch.int64)
    return numbers.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else numbers


def starts(counts: Iterable[int]) -> list[int]:
    """Returns the offsets of parts with these lengths, and the sum of all."""
    return list(accumulate(counts, initial=0))


@jit
def own_row(table: Value, rows: Value, WIDTH: tl.constexpr, COLUMN: tl.constexpr) -> Value:
    """Returns (pointer to this program's row, the program's number in it); ``COLUMN`` has the first program of each
    row.

    The table may be some rows of a longer one.
    """
    program = tl.load(table + COLUMN) + tl.program_id(0)
    low, high = rows * 0, rows
    while high - low > 1:
        middle = (low + high) // 2
        after = tl.load(table + middle * WIDTH + COLUMN) <= program
        low, high = tl.where(after, middle, low), tl.where(after, high, middle)
    row = table + low * WIDTH
    return row, program - tl.load(row + COLUMN)


@jit
def number(row: Value, COLUMN: tl.constexpr, ALIGNED: Value = False) -> Value:
    """Returns a column's value; ``ALIGNED`` hints that it is a multiple of 16: 16 bytes are moved together."""
    value = tl.load(row + COLUMN)
    if ALIGNED:
        value = tl.multiple_of(value, 16)
    return value


@jit
def pointer(row: Value, COLUMN: tl.constexpr, KIND: Value, ALIGNED: Value = False) -> Value:
    """Returns the address in a column, of elements of type ``KIND``; aligned like ``number``."""
    address = tl.load(row + COLUMN).to(tl.pointer_type(KIND))
    if ALIGNED:
        address = tl.multiple_of(address, 16)
    return address


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
