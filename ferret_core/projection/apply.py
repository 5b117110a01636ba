"""Application of updates to a whole model, block by block, from their coordinates: in place or into a target."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, final

import torch
from torch import Tensor

from ferret_core.projection.bases.base import Basis
from ferret_core.projection.block_views import (
    STRETCH,
    Parameters,
    Vector,
    apply_all_,
    check_below,
    check_complete,
    check_counts,
    check_finite,
    kernel_of,
    pieces,
)
from ferret_core.projection.blocks import Block, HeldRange, within
from ferret_core.projection.kernels.base import ReconstructionTerm, UpdateInput
from ferret_core.projection.project import Projected
from ferret_core.projection.sharded import any_shard, local_views
from ferret_core.projection.stochastic_rounding import stochastic

PART = 1 << 21
"""Elements that are moved at a time on the way to a target: they stay in the processor's cache until they are
written."""


class UpdateWriter(Protocol):
    """A destination of moved elements. ``held``: the wanted elements, by parameter."""

    held: Mapping[str, HeldRange]

    def write(self, parameter: str, begin: int, elements: Tensor) -> None:
        """Takes elements ``begin`` … of a parameter, flat and of its type."""
        ...


_TARGET: ContextVar[UpdateWriter | None] = ContextVar("target", default=None)


@contextmanager
def moved_to(target: UpdateWriter) -> Generator[None]:
    """Makes ``reconstruct_`` leave parameters unchanged within the block, and write the moved elements to ``target``.

    At most 2²¹ elements are held at a time. The weights do not depend on the distribution over processes.
    """
    token = _TARGET.set(target)
    try:
        yield
    finally:
        _TARGET.reset(token)


def reconstruct_(
    parameters: Parameters, blocks: Sequence[Block], basis: Basis, terms: Sequence[Projected], rounding: int = 0
) -> None:
    """Computes w_l ← w_l − V_l·c_l in place for each term in turn, in one pass over the weights (Algorithm 1, line 6).

    Coefficients are coordinates already multiplied by the server's learning rate and the participant's weight. With a
    rate of 1, and weights that sum to 1, the step is the unbiased estimate of the mean update. Half-precision weights
    are rounded stochastically once, by the seed ``rounding``. ``blocks`` may be some of the model's; applying the
    others elsewhere gives the same weights. With shards each process moves its own part. Coordinates are read block by
    block, for as many terms at a time as fit into the number of the block's weights, or into 2²². Raises like
    ``project``, before anything is moved.
    """
    check_below("rounding", rounding, 64)
    for term in terms:
        check_below("seed", term.seed, 64)
        check_counts([c.numel() for c in term.coordinates], blocks)
        check_finite(term.coordinates, blocks)
    check_complete(blocks)
    target = _TARGET.get()
    if target is not None:
        parameters, held = _parts_of(parameters, target.held), target.held
        blocks = [within(block, held) for block in blocks]
    elif any_shard(parameters):
        parameters, held = local_views(parameters)
        blocks = [within(block, held) for block in blocks]
    # All errors in pieces are found before anything is moved.
    vectors = [list(pieces(parameters, block)) for block in blocks]
    # One after the other, because each keeps the coordinates that it has read.
    updates = (_Update(position, block, basis, terms, rounding) for position, block in enumerate(blocks))
    if target is None:
        moves = (move for update, of_block in zip(updates, vectors, strict=True) for move in update.moves(of_block))
        apply_all_(moves, basis, rounding)
        return
    for update, of_block in zip(updates, vectors, strict=True):
        update.write(of_block, target)


def reconstruct_into(rows: Tensor, block: Block, basis: Basis, terms: Sequence[ReconstructionTerm], start: int) -> None:
    """Fills ``rows``, fp32 (terms, n), with elements ``start`` … ``start + n − 1`` of V·c for each term.

    A term without coefficients gives 0. The terms are on the device of the rows.
    """
    for row, term in zip(rows, terms, strict=True):
        row.zero_()
        if len(term.coefficients):
            kernel_of(block, basis, row).apply_(
                row, block, [term._replace(coefficients=-term.coefficients)], start=start
            )


def _parts_of(parameters: Parameters, held: Mapping[str, HeldRange]) -> dict[str, Tensor]:
    return {name: parameters[name].detach().view(-1)[part.begin : part.end] for name, part in held.items()}


@final
class _Update:
    """The update of one block; terms of a single turn are fetched once for all of its pieces."""

    def __init__(self, position: int, block: Block, basis: Basis, terms: Sequence[Projected], rounding: int) -> None:
        self._position, self._block, self._basis, self._terms, self._rounding = position, block, basis, terms, rounding
        self._turns = _turns([term.coordinates[position].numel() for term in terms], max(block.size, STRETCH))
        self._only: list[ReconstructionTerm] | None = None

    def moves(self, vectors: Iterable[Vector]) -> Iterator[UpdateInput]:
        """Yields the moves of these vectors for a batch; a block of several turns is moved here instead."""
        for weights, start in vectors:
            if len(self._turns) > 1:
                self._in_turns_(weights, start)
                continue
            if self._only is None:
                self._only = self._of_turn(self._turns[0], weights.device)
            yield UpdateInput(weights, self._block, self._only, start)

    def write(self, vectors: Sequence[Vector], target: UpdateWriter) -> None:
        """Writes the target's part of the block, moved, in parts."""
        for piece, (weights, start) in zip(self._block.pieces, vectors, strict=True):
            begin = target.held[piece.parameter].begin + piece.begin
            for first in range(0, len(weights), PART):
                part = weights[first : first + PART].clone()
                apply_all_(self.moves([(part, start + first)]), self._basis, self._rounding)
                target.write(piece.parameter, begin + first, part)

    def _in_turns_(self, weights: Tensor, start: int) -> None:
        moved = weights.float()
        for turn in self._turns:
            terms = self._of_turn(turn, weights.device)
            kernel_of(self._block, self._basis, moved).apply_(moved, self._block, terms, start=start)
        if moved.dtype != weights.dtype:
            _round_(weights, moved, self._block, start, self._rounding)

    def _of_turn(self, turn: slice, device: torch.device) -> list[ReconstructionTerm]:
        return [ReconstructionTerm(t.seed, t.coordinates[self._position].to(device)) for t in self._terms[turn]]


def _turns(counts: Sequence[int], most: int) -> list[slice]:
    """Returns slices of consecutive terms, at least one each, with a sum of ``counts`` up to ``most``."""
    turns, first, held = list[slice](), 0, 0
    for position, count in enumerate(counts):
        if position > first and held + count > most:
            turns.append(slice(first, position))
            first, held = position, 0
        held += count
    return [*turns, slice(first, len(counts))]


def _round_(weights: Tensor, moved: Tensor, block: Block, start: int, rounding: int) -> None:
    """Writes fp32 ``moved`` into half-precision weights, a stretch at a time."""
    for first in range(0, len(weights), STRETCH):
        part = moved[first : first + STRETCH]
        weights[first : first + STRETCH] = stochastic(part, weights.dtype, rounding, block.id, start + first)
