"""Tables of a kernel's work: many terms, or many stretches, in one launch.

A launch takes a processor longer than most blocks take the GPU. A launch therefore processes stretches of many blocks.
Each is a row, rows have consecutive programs, and a program looks up its row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import torch
import triton.language as tl
from torch import Tensor

from ferret_core.projection.kernels.gpu._jit import jit
from ferret_core.projection.kernels.gpu._value import Value

KINDS = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}


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
    """Returns the value in a column; ``ALIGNED`` hints that it is a multiple of 16, so that 16 bytes are moved
    together."""
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
