"""Blocks: parts of the model with separate bases and budgets (paper, section 3.2).

Three rules cut the parameters in canonical order, one after the other:

tensor   every parameter is a block.
grouped  as in the authors' code: a block is closed when the next tensor would take it beyond 0.9 × the median
         tensor. In their order a layer's norm vectors are adjacent; ours has matrices between them, so small
         tensors are collected across these: a tensor of 0.9 × the median or more is a separate block, the smaller
         ones fill blocks up to that size, each at the place of its first tensor.
L        a number: the flattened model in L contiguous ranges, l from ⌊l·d/L⌋ to ⌊(l+1)·d/L⌋ − 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from torch import Tensor

MAX_BLOCKS = 2**24

BlockRule = Literal["tensor", "grouped"] | Annotated[int, Field(ge=1, le=MAX_BLOCKS)]


class Piece(NamedTuple):
    """Elements begin … begin + length − 1 of a parameter, which are elements start … of their block."""

    parameter: str
    begin: int
    start: int
    length: int


class Block(NamedTuple):
    """A block: its place in the canonical order, its name, its d_l elements, and their places in the model.

    A ``whole`` block is sent on the identity basis, K_l = d_l, for any basis of the others.
    """

    id: int
    name: str
    size: int
    pieces: tuple[Piece, ...] = ()
    whole: bool = False


class HeldRange(NamedTuple):
    """Elements begin … end − 1 of a parameter, held by a process."""

    begin: int
    end: int


class _Range(NamedTuple):
    """Elements begin … end − 1 of a parameter."""

    parameter: str
    begin: int
    end: int


def blocks_of(parameters: Mapping[str, Tensor], rule: BlockRule = "tensor", whole_up_to: int = 0) -> list[Block]:
    """Returns the blocks of ``parameters`` in the given order, like ``cut``."""
    return cut({name: tensor.numel() for name, tensor in parameters.items()}, rule, whole_up_to)


def cut(sizes: Mapping[str, int], rule: BlockRule = "tensor", whole_up_to: int = 0) -> list[Block]:
    """Cuts parameters with these element counts into blocks, in the given order; blocks up to ``whole_up_to`` are
    whole.

    Every element is in exactly one piece. Raises ``model.invalid`` for an empty parameter, ``projection.invalid`` for
    more blocks than the model has elements or than the projection format can number.
    """
    for name, size in sizes.items():
        if size == 0:
            raise FerretError.of_field("model.invalid", name, size, "a parameter needs at least one element")
    match rule:
        case "tensor":
            parts: Iterable[Sequence[_Range]] = ([_Range(name, 0, size)] for name, size in sizes.items())
            count = len(sizes)
        case "grouped":
            parts = _grouped(sizes)
            count = len(parts)
        case int():
            parts = _equal(sizes, rule)
            count = rule
    _check_count(count, sum(sizes.values()))
    return [_block(position, part, sizes, whole_up_to) for position, part in enumerate(parts)]


def within(block: Block, held: Mapping[str, HeldRange]) -> Block:
    """Returns the part of ``block`` inside the held ranges, with offsets relative to each range.

    ``size`` remains the size of the whole block. Nothing is held of a parameter that is not in ``held``.
    """
    return block._replace(pieces=tuple(_inside(block.pieces, held)))


def _inside(pieces: Iterable[Piece], held: Mapping[str, HeldRange]) -> Iterator[Piece]:
    for piece in pieces:
        begin, end = held.get(piece.parameter, (0, 0))
        first, last = max(piece.begin, begin), min(piece.begin + piece.length, end)
        if first < last:
            yield Piece(piece.parameter, first - begin, piece.start + first - piece.begin, last - first)


def _grouped(sizes: Mapping[str, int]) -> list[list[_Range]]:
    limit = 9 * median(sizes.values())
    parts: list[list[_Range]] = []
    gathering: list[_Range] = []
    gathered = 0
    for name, size in sizes.items():
        part = [_Range(name, 0, size)]
        if 10 * size >= limit:
            parts.append(part)
        elif gathering and 10 * (gathered + size) <= limit:
            gathering += part
            gathered += size
        else:
            parts.append(part)
            gathering, gathered = part, size
    return parts


def _equal(sizes: Mapping[str, int], count: int) -> Iterator[list[_Range]]:
    total = sum(sizes.values())
    parameters = iter(sizes.items())
    name, size, begin = "", 0, 0
    for position in range(count):
        left = (position + 1) * total // count - position * total // count
        part: list[_Range] = []
        while left:
            if begin == size:
                (name, size), begin = next(parameters), 0
            end = min(begin + left, size)
            part.append(_Range(name, begin, end))
            left, begin = left - (end - begin), end
        yield part


def _block(position: int, part: Sequence[_Range], sizes: Mapping[str, int], whole_up_to: int) -> Block:
    *starts, size = accumulate((piece.end - piece.begin for piece in part), initial=0)
    pieces = tuple(
        Piece(piece.parameter, piece.begin, start, piece.end - piece.begin)
        for piece, start in zip(part, starts, strict=True)
    )
    ends = [part[0]] if len(part) == 1 else [part[0], part[-1]]
    name = " … ".join(_label(piece, sizes[piece.parameter]) for piece in ends)
    return Block(position, name, size, pieces, whole=size <= whole_up_to)


def _label(part: _Range, size: int) -> str:
    return part.parameter if part.end - part.begin == size else f"{part.parameter}[{part.begin}:{part.end}]"


def _check_count(count: int, elements: int) -> None:
    most = min(elements, MAX_BLOCKS)
    if count > most:
        reason = f"this model of {elements} elements can be cut into {most} at most"
        raise FerretError.of_field("projection.invalid", "blocks", count, reason)
