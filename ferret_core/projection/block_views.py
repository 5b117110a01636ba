"""Views of a model's parameters as the pieces of its blocks, checks of both, and batches of them for one kernel call: a
launch on a GPU takes as long as a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from ferret_core.projection.bases import basis as family
from ferret_core.projection.bases.base import Basis
from ferret_core.projection.blocks import Block, Piece
from ferret_core.projection.kernels import kernel
from ferret_core.projection.kernels.base import Batched, Kernel, ProjectionInput, UpdateInput
from ferret_core.protocol.errors import FerretError

STRETCH = 1 << 22
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
Parameters = Mapping[str, Tensor]
"""Tensors by name: contiguous, of any type in ``FLOATS``. They are read one piece at a time and soon released."""
Vector = tuple[Tensor, int]
"""A piece, flat, and the place of its first element in its block."""
MOST = 1 << 29
"""Maximum elements per call: the launch no longer matters, and the GPU works while the next call is collected."""
V = TypeVar("V", ProjectionInput, UpdateInput)


def kernel_of(block: Block, basis: Basis, weights: Tensor) -> Kernel:
    """Returns the kernel for ``basis`` on the device of the weights; the identity's for a block that is sent whole."""
    return kernel(family("I") if block.whole else basis, weights.device)


def pieces(parameters: Parameters, block: Block) -> Iterator[Vector]:
    """Yields the block's pieces, which share the parameters' memory."""
    for piece in block.pieces:
        yield _vector(parameters, block, piece), piece.start


def _vector(parameters: Parameters, block: Block, piece: Piece) -> Tensor:
    name, end = piece.parameter, piece.begin + piece.length
    try:
        tensor = parameters[name].detach()
    except KeyError as error:
        raise _mismatch(name, None, f"the model has no such parameter, which block {block.name} needs") from error
    if tensor.dtype not in FLOATS:
        raise _unusable(name, str(tensor.dtype), "can be float32, bfloat16 or float16: convert the model")
    if not tensor.is_contiguous():
        raise _unusable(name, tensor.stride(), "is strided: call .contiguous() first")
    if end > tensor.numel():
        raise _mismatch(name, tensor.numel(), f"block {block.name} needs {end} elements of it")
    vector = tensor.view(-1)
    return vector if piece.length == vector.numel() else vector[piece.begin : end]


def pairs(before: Parameters, after: Parameters, block: Block) -> Iterator[tuple[Tensor, Tensor, int]]:
    """Yields the block's pieces before and after, on the device of ``after``, with the place of their first element."""
    for (begin, start), (end, _) in zip(pieces(before, block), pieces(after, block), strict=True):
        if begin.device == end.device:
            yield begin, end, start
            continue
        for first in range(0, len(end), STRETCH):
            yield begin[first : first + STRETCH].to(end.device), end[first : first + STRETCH], start + first


def check_complete(blocks: Sequence[Block]) -> None:
    """Raises ``projection.invalid`` for a block that its pieces do not cover."""
    for block in blocks:
        held = sum(piece.length for piece in block.pieces)
        if held != block.size:
            raise _mismatch(block.name, held, f"its pieces must hold its {block.size} elements")


def check_below(field: str, value: int, bits: int) -> None:
    """Raises ``projection.invalid`` unless the value is an unsigned integer of ``bits`` bits."""
    if not 0 <= value < 1 << bits:
        raise FerretError.of_field("projection.invalid", field, value, f"must be between 0 and 2^{bits} − 1")


def check_counts(K: Sequence[int], blocks: Sequence[Block]) -> None:
    """Raises ``projection.invalid`` for an impossible number of coordinates of a block."""
    if len(K) != len(blocks):
        raise FerretError.of_field("projection.invalid", "K", len(K), f"one number for each of {len(blocks)} blocks")
    for count, block in zip(K, blocks, strict=True):
        if not 0 <= count <= block.size:
            raise FerretError.of_field(
                "projection.invalid", f"K of {block.name}", count, f"must be between 0 and its {block.size} elements"
            )
        if block.whole and count not in (0, block.size):
            raise FerretError.of_field(
                "projection.invalid", f"K of {block.name}", count, f"it is sent whole: {block.size} coordinates, or 0"
            )


def check_finite(coordinates: Sequence[Tensor], blocks: Sequence[Block]) -> None:
    """Raises ``training.non_finite`` for coordinates that are not finite.

    One check per device. Sums, or norms, are checked first: they are cheap, and finite for finite numbers unless these
    are huge. On a GPU few launches check all blocks. Elsewhere each block is checked separately, because its
    coordinates may be computed on access.
    """
    for device in {values.device for values in coordinates}:
        own = (values for values in coordinates if values.device == device)
        found = get_total_norm(own) if device.type == "cuda" else torch.stack([values.sum() for values in own])
        if bool(found.isfinite().all()):
            continue
        for block, values in zip(blocks, coordinates, strict=True):
            for wrong in values[~values.isfinite()].tolist():
                raise non_finite(block, wrong)


def non_finite(block: Block, value: float) -> FerretError:
    """Creates the error about an update with this value in ``block``."""
    return FerretError.of_field(
        "training.non_finite", block.name, str(value), "its update is not finite: lower the learning rate"
    )


def _mismatch(field: str, value: int | None, message: str) -> FerretError:
    return FerretError.of_field("projection.invalid", field, value, f"{message}: cut the blocks from this model")


def _unusable(name: str, value: str | tuple[int, ...], message: str) -> FerretError:
    return FerretError.of_field("model.invalid", name, value, message)


def max_batch(before: Parameters, after: Parameters) -> int:
    """Returns the number of an update's elements to collect; 0 if ``before`` is copied to the device of ``after``."""
    devices = {tensor.device for parameters in (before, after) for tensor in islice(parameters.values(), 1)}
    return MOST if len(devices) == 1 else 0


def project_all(
    pairs: Iterable[ProjectionInput], basis: Basis, seed: int, most: int
) -> Iterator[tuple[ProjectionInput, Tensor]]:
    """Yields each pair with its contribution to its block's γ; at most ``most`` elements are collected."""
    for chosen, group in _gathered(pairs, basis, most):
        if isinstance(chosen, Batched):
            yield from zip(group, chosen.project_all(group, seed), strict=True)
            continue
        for pair in group:
            before, after, block, K, start = pair
            yield pair, chosen.project(before, after, block, K, seed, start=start)


def apply_all_(moves: Iterable[UpdateInput], basis: Basis, rounding: int) -> None:
    """Applies all moves, in place."""
    for chosen, group in _gathered(moves, basis, MOST):
        if isinstance(chosen, Batched):
            chosen.apply_all_(group, rounding)
            continue
        for weights, block, terms, start in group:
            chosen.apply_(weights, block, terms, start=start, rounding=rounding)


def _gathered(vectors: Iterable[V], basis: Basis, most: int) -> Iterator[tuple[Kernel, list[V]]]:
    """Yields each kernel with its next vectors: one, or many if the kernel is batched."""
    kernels: dict[tuple[bool, torch.device], tuple[Kernel, bool]] = {}
    gathering: Kernel | None = None
    group, held = list[V](), 0
    for vector in vectors:
        moved = vector.moved
        kind = vector.block.whole, moved.device
        if kind not in kernels:
            chosen = kernel_of(vector.block, basis, moved)
            kernels[kind] = chosen, isinstance(chosen, Batched)
        chosen, batched = kernels[kind]
        if not batched:
            yield chosen, [vector]
            continue
        held += moved.numel()
        if gathering is not None and (chosen is not gathering or held > most):
            yield gathering, group
            group, held = [], moved.numel()
        gathering = chosen
        group.append(vector)
    if gathering is not None:
        yield gathering, group
