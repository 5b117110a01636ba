"""Batching of vectors of many blocks into one kernel call: a launch on a GPU takes as long as a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

from ferret_core.projection.bases._base import Basis
from ferret_core.projection.block_views import Parameters, kernel_of
from ferret_core.projection.kernels._base import Batched, Kernel, ProjectionInput, UpdateInput

MOST = 1 << 29
"""Maximum elements per call: the launch no longer matters, and the GPU works while the next call is collected."""
V = TypeVar("V", ProjectionInput, UpdateInput)


def max_batch(before: Parameters, after: Parameters) -> int:
    """Returns the number of an update's elements to collect; 0 if ``before`` is copied to the device of ``after``."""
    devices = {tensor.device for parameters in (before, after) for tensor in islice(parameters.values(), 1)}
    return MOST if len(devices) == 1 else 0


def project_all(
    pairs: Iterable[ProjectionInput], basis: Basis, seed: int, most: int
) -> Iterator[tuple[ProjectionInput, Tensor]]:
    """Yields each pair with its contribution to its block's γ; at most ``most`` elements are collected."""
    for kernel, group in _gathered(pairs, basis, most):
        if isinstance(kernel, Batched):
            yield from zip(group, kernel.project_all(group, seed), strict=True)
            continue
        for pair in group:
            before, after, block, K, start = pair
            yield pair, kernel.project(before, after, block, K, seed, start=start)


def apply_all_(moves: Iterable[UpdateInput], basis: Basis, rounding: int) -> None:
    """Applies all moves, in place."""
    for kernel, group in _gathered(moves, basis, MOST):
        if isinstance(kernel, Batched):
            kernel.apply_all_(group, rounding)
            continue
        for weights, block, terms, start in group:
            kernel.apply_(weights, block, terms, start=start, rounding=rounding)


def _gathered(vectors: Iterable[V], basis: Basis, most: int) -> Iterator[tuple[Kernel, list[V]]]:
    """Yields each kernel with its next vectors: one, or many if the kernel is batched."""
    kernels: dict[tuple[bool, torch.device], tuple[Kernel, bool]] = {}
    gathering: Kernel | None = None
    group, held = list[V](), 0
    for vector in vectors:
        moved = vector.moved
        kind = vector.block.whole, moved.device
        if kind not in kernels:
            kernel = kernel_of(vector.block, basis, moved)
            kernels[kind] = kernel, isinstance(kernel, Batched)
        kernel, batched = kernels[kind]
        if not batched:
            yield kernel, [vector]
            continue
        held += moved.numel()
        if gathering is not None and (kernel is not gathering or held > most):
            yield gathering, group
            group, held = [], moved.numel()
        gathering = kernel
        group.append(vector)
    if gathering is not None:
        yield gathering, group
