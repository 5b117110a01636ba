"""Projection of a sharded model: each piece is gathered on one process, which processes it.

A piece is a parameter, or the part of one in a block. In each turn every process takes one piece. The processes
exchange their results, which are as large as the coordinates. Every number is therefore the same as for a single
process with the same elements, and sums over the pieces of a block have the same order: the bits do not depend on the
number of processes. No process ever holds more than one whole piece, before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from torch import Tensor

from ferret_core.distributed.process_group import ProcessGroup, require, waves
from ferret_core.distributed.sharded_tensor import gathered, held, is_shard, local
from ferret_core.projection.blocks import Block, HeldRange, Piece
from ferret_core.protocol.errors import FerretError

Work = Callable[[int, Tensor, Tensor, int], Tensor]
"""Function of a block's position, a piece before and after, flat, and the place of its first element in the block."""


def any_shard(parameters: Mapping[str, Tensor]) -> bool:
    """True if other processes hold the rest of these tensors."""
    return is_shard(next(iter(parameters.values())))


def local_views(parameters: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, HeldRange]]:
    """Returns the elements of each shard that this process holds, flat, and their ranges."""
    return (
        {name: local(tensor) for name, tensor in parameters.items()},
        {name: HeldRange(*held(tensor)) for name, tensor in parameters.items()},
    )


def map_pieces(
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    blocks: Sequence[Block],
    work: Work,
    empty: Callable[[int], Tensor],
) -> Iterator[list[Tensor]]:
    """Yields the results of ``work`` for the pieces of each block, in order, on every process. Collective.

    ``empty(block's position)`` is a CPU tensor of the shape and type of a result. Raises ``projection.invalid`` for
    blocks of another model.
    """
    team = require()
    pieces = [(position, piece) for position, block in enumerate(blocks) for piece in block.pieces]
    for position, piece in pieces:
        _check(before, blocks[position], piece)
        _check(after, blocks[position], piece)
    found: list[list[Tensor]] = [[] for _ in blocks]
    for wave in waves(len(pieces), team.size):
        turn = [pieces[number] for number in wave]
        own = _own(before, after, turn, work)
        for owner, (position, _) in enumerate(turn):
            found[position].append(_told(team, own, empty(position), owner))
    return iter(found)


def _own(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], turn: Sequence[tuple[int, Piece]], work: Work
) -> Tensor | None:
    """Returns the result for this process's piece of the turn; None if it has no piece."""
    mine: tuple[int, Tensor, Tensor, int] | None = None
    for owner, (position, piece) in enumerate(turn):
        begin = _whole(before, piece, owner)
        end = begin if before is after else _whole(after, piece, owner)
        if begin is not None and end is not None:
            mine = position, begin, end, piece.start
    return None if mine is None else work(*mine)


def _told(team: ProcessGroup, own: Tensor | None, empty: Tensor, owner: int) -> Tensor:
    found = own if owner == team.rank and own is not None else empty
    return team.told(found.to(team.device), owner)


def _whole(parameters: Mapping[str, Tensor], piece: Piece, owner: int) -> Tensor | None:
    return gathered(parameters[piece.parameter], owner, piece.begin, piece.begin + piece.length)


def _check(parameters: Mapping[str, Tensor], block: Block, piece: Piece) -> None:
    there = parameters[piece.parameter].numel() if piece.parameter in parameters else None
    if there is None or piece.begin + piece.length > there:
        message = (
            f"block {block.name} needs elements of it that the model does not have: cut the blocks from this model"
        )
        raise FerretError.of_field("projection.invalid", piece.parameter, there, message)
