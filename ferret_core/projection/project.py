"""Projection over a whole model, block by block: neither Δ nor V is ever held whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, islice
from typing import NamedTuple

import torch
from torch import Tensor

from ferret_core.models.parameters import chunks
from ferret_core.projection.bases.base import Basis
from ferret_core.projection.block_views import (
    Parameters,
    check_below,
    check_complete,
    check_counts,
    check_finite,
    kernel_of,
    max_batch,
    non_finite,
    pairs,
    project_all,
)
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels import squared_norm
from ferret_core.projection.kernels.base import ProjectionInput
from ferret_core.projection.sharded import Work, any_shard, map_pieces

Sent = tuple[Block, int]
"""A block and its K_l ≥ 1."""
Part = tuple[int, Tensor]
"""A block's id, and a piece's contribution to γ_l."""


class Projected(NamedTuple):
    """Coordinates of an update: γ_l, fp32 (K_l,), of every block, under one seed."""

    seed: int
    coordinates: Sequence[Tensor]


def project(
    before: Parameters, after: Parameters, blocks: Sequence[Block], basis: Basis, K: Sequence[int], seed: int
) -> Projected:
    """Returns γ_l of Δ_l = before_l − after_l for every block l; empty if K_l is 0 (Algorithm 1, line 11).

    ``before`` may have other types than ``after`` and be on another device; it is then copied in stretches of at most
    16 MB. A ``whole`` block uses the identity. Raises ``projection.invalid`` for K or a seed out of range and for
    blocks of another model, ``model.invalid`` for a parameter that is strided or not of a type in ``FLOATS``, and
    ``training.non_finite`` for coordinates that are NaN or infinite.
    """
    check_below("seed", seed, 64)
    check_counts(K, blocks)
    check_complete(blocks)

    sent = {block.id: (block, count) for block, count in zip(blocks, K, strict=True) if count}
    found = {number: list[Tensor]() for number in sent}
    if sent:
        parts = _of_shards if any_shard(after) else _of_whole
        for number, gamma in parts(before, after, list(sent.values()), basis, seed):
            found[number].append(gamma)
    gammas = [reduce(Tensor.add_, found[block.id]) if block.id in found else torch.empty(0) for block in blocks]
    check_finite(gammas, blocks)
    return Projected(seed, gammas)


def _of_whole(before: Parameters, after: Parameters, sent: Sequence[Sent], basis: Basis, seed: int) -> Iterator[Part]:
    every = (
        ProjectionInput(begin, end, block, K, start)
        for block, K in sent
        for begin, end, start in pairs(before, after, block)
    )
    for pair, gamma in project_all(every, basis, seed, max_batch(before, after)):
        yield pair.block.id, gamma


def _of_shards(before: Parameters, after: Parameters, sent: Sequence[Sent], basis: Basis, seed: int) -> Iterator[Part]:
    """Projects a model in shards: each piece is processed by one process."""

    def of_piece(number: int, begin: Tensor, end: Tensor, start: int) -> Tensor:
        block, K = sent[number]
        return kernel_of(block, basis, end).project(begin, end, block, K, seed, start=start)

    blocks = [block for block, _ in sent]
    parts = map_pieces(before, after, blocks, of_piece, lambda number: torch.empty(sent[number][1]))
    return ((block.id, gamma) for block, of_block in zip(blocks, parts, strict=True) for gamma in of_block)


def norms(before: Parameters, after: Parameters, blocks: Sequence[Block]) -> list[float]:
    """Returns ‖before_l − after_l‖ of every block: differences in fp32, squares and sums in fp64. Raises like
    ``project``."""
    check_complete(blocks)
    squares = _numbers(before, after, blocks, lambda block, begin, end, start: squared_norm(begin, end))
    found = [math.sqrt(math.fsum(of_block)) for of_block in squares]
    for block, norm in zip(blocks, found, strict=True):
        if not math.isfinite(norm):
            raise non_finite(block, norm)
    return found


@torch.no_grad()
def squared_lengths(parameters: Parameters, blocks: Sequence[Block]) -> list[float]:
    """Returns ‖w_l‖² of every block, in fp64."""
    return [math.fsum(length**2 for length in lengths) for lengths in _lengths(parameters, blocks)]


@torch.no_grad()
def root_mean_squares(parameters: Parameters, blocks: Sequence[Block]) -> list[float]:
    """Returns √(‖w_l‖² / d_l) of every block, in fp64."""
    lengths = zip(_lengths(parameters, blocks), blocks, strict=True)
    return [math.hypot(*of_block) / math.sqrt(block.size) for of_block, block in lengths]


def _lengths(parameters: Parameters, blocks: Sequence[Block]) -> list[list[float]]:
    """Returns the L2 norm of each piece of each block, in fp64."""
    check_complete(blocks)
    return _numbers(parameters, parameters, blocks, lambda block, begin, end, start: _length(end))


def _length(vector: Tensor) -> Tensor:
    parts = [torch.linalg.vector_norm(part, dtype=torch.float64) for part in chunks(vector)]
    return parts[0] if len(parts) == 1 else torch.linalg.vector_norm(torch.stack(parts))


def _numbers(before: Parameters, after: Parameters, blocks: Sequence[Block], work: Work) -> list[list[float]]:
    """Returns the results of ``work``, fp64 (), by block and piece; read together, because a read waits for the GPU."""
    found = list(map(list, _found(before, after, blocks, work, lambda _: torch.empty((), dtype=torch.float64))))
    read = iter(torch.stack(list(chain.from_iterable(found))).tolist() if found else ())
    return [list(islice(read, len(of_block))) for of_block in found]


def _found(
    before: Parameters, after: Parameters, blocks: Sequence[Block], work: Work, empty: Callable[[int], Tensor]
) -> Iterator[Iterable[Tensor]]:
    """Returns the results of ``work`` by block and piece; ``empty`` is passed to :func:`map_pieces` for shards."""
    if any_shard(after):
        return map_pieces(before, after, blocks, work, empty)
    return (
        (work(position, begin, end, start) for begin, end, start in pairs(before, after, block))
        for position, block in enumerate(blocks)
    )
