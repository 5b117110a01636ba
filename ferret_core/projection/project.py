"""Projection over a whole model, block by block: neither Δ nor V is ever held whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from itertools import chain, islice
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from ferret_core.models.stretches import stretches
from ferret_core.projection.bases import basis as family
from ferret_core.projection.bases._base import Basis
from ferret_core.projection.blocks import Block, Held, Piece, within
from ferret_core.projection.kernels import kernel, squared_norm
from ferret_core.projection.kernels._base import Kernel, Term
from ferret_core.projection.rounding import stochastic
from ferret_core.projection.shared_out import any_shard, of_pieces, own_parts
from ferret_core.protocol.errors import FerretError

R = TypeVar("R")

STRETCH = 1 << 22
PART = 1 << 21
"""Elements that are moved on their way to a target: they stay in a processor's cache from reading to writing."""
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
Parameters = Mapping[str, Tensor]
"""Tensors by name: contiguous, of any type in ``FLOATS``. They are looked up piece after piece and soon let go."""


class Projected(NamedTuple):
    """Coordinates of an update: γ_l, fp32 (K_l,), of every block, under one seed; ``share`` of a shared one."""

    seed: int
    coordinates: Sequence[Tensor]
    share: int = 0


def project(
    before: Parameters,
    after: Parameters,
    blocks: Sequence[Block],
    basis: Basis,
    K: Sequence[int],
    seed: int,
    share: int = 0,
) -> Projected:
    """γ_l of Δ_l = before_l − after_l for every block l; empty where K_l is 0 (Algorithm 1, line 11).

    ``before`` may have other types than ``after`` and lie on another device, from which it comes in stretches of at
    most 16 MB. A ``whole`` block goes on the identity. Raises ``projection.invalid`` for K, a seed or a share out of
    range and for blocks that are not this model's, ``model.invalid`` for a parameter that is strided or not of a
    type in ``FLOATS``, and ``training.non_finite`` for coordinates that are NaN or infinite.
    """
    _check_below("seed", seed, 64)
    _check_below("share", share, 32)
    _check_counts(K, blocks)
    _check_complete(blocks)
    parts = _parts(before, after, blocks, basis, K, seed, share)
    gammas = [
        reduce(Tensor.add_, of_block) if count else torch.empty(0) for of_block, count in zip(parts, K, strict=True)
    ]
    _check_finite(gammas, blocks)
    return Projected(seed, gammas, share)


def norms(before: Parameters, after: Parameters, blocks: Sequence[Block]) -> list[float]:
    """‖before_l − after_l‖ of every block: differences in fp32, squares and sums in fp64. Raises as ``project``."""
    _check_complete(blocks)
    squares = list(map(list, _squares(before, after, blocks)))
    # Reading a number waits for a GPU: all are read at once.
    read = iter(torch.stack(list(chain.from_iterable(squares))).tolist() if squares else ())
    found = [math.sqrt(math.fsum(islice(read, len(of_block)))) for of_block in squares]
    for block, norm in zip(blocks, found, strict=True):
        if not math.isfinite(norm):
            raise _non_finite(block, norm)
    return found


@torch.no_grad()
def squared_lengths(parameters: Parameters, blocks: Sequence[Block]) -> list[float]:
    """‖w_l‖² of every block, in fp64."""
    return [math.fsum(length**2 for length in lengths) for lengths in _lengths(parameters, blocks)]


@torch.no_grad()
def root_mean_squares(parameters: Parameters, blocks: Sequence[Block]) -> list[float]:
    """√(‖w_l‖² / d_l) of every block, in fp64."""
    lengths = zip(_lengths(parameters, blocks), blocks, strict=True)
    return [math.hypot(*of_block) / math.sqrt(block.size) for of_block, block in lengths]


def apply_(
    parameters: Parameters,
    blocks: Sequence[Block],
    basis: Basis,
    terms: Sequence[Projected],
    rounding: int = 0,
    held: Mapping[str, Held] | None = None,
) -> None:
    """w_l ← w_l − V_l·c_l in place for each term in turn, in one pass over the weights (Algorithm 1, line 6).

    Coefficients are coordinates already multiplied by server learning rate and participant's weight: at a rate of 1
    and weights that sum to 1 the step is the unbiased estimate of the mean update. Weights in half precision are
    rounded stochastically once, by the seed ``rounding``. ``blocks`` may be some of the model's, and ``held`` says
    which elements ``parameters`` hold if not all: applying the others elsewhere, even to the same mapped file at the
    same time, gives the same weights. Coordinates are asked for block by block, of so many terms at a time as have
    together no more of them than the block has weights. Raises as ``project``, and then has moved nothing. Of shards
    each process moves its own.
    """
    _check_below("rounding", rounding, 64)
    for term in terms:
        _check_below("seed", term.seed, 64)
        _check_below("share", term.share, 32)
        _check_counts([len(c) for c in term.coordinates], blocks)
        _check_finite(term.coordinates, blocks)
    _check_complete(blocks)
    target = _TARGET.get()
    if held is None and any_shard(parameters):
        parameters, held = own_parts(parameters)
    elif held is None and target is not None:
        parameters, held = _parts_of(parameters, target.held), target.held
    if held is not None:
        blocks = [within(block, held) for block in blocks]
    _check_blocks(parameters, blocks)
    for position, block in enumerate(blocks):
        move_ = _mover(position, block, basis, terms, rounding)
        for piece, (weights, start) in zip(block.pieces, _pieces(parameters, block), strict=True):
            if target is None:
                move_(weights, start)
                continue
            begin = target.held[piece.parameter].begin + piece.begin
            for first in range(0, len(weights), PART):
                part = weights[first : first + PART].clone()
                move_(part, start + first)
                target.write(piece.parameter, begin + first, part)


def _mover(
    position: int, block: Block, basis: Basis, terms: Sequence[Projected], rounding: int
) -> Callable[[Tensor, int], None]:
    """What moves elements of a block, in place, by the terms; it is told where in the block they begin."""
    turns = _turns([len(term.coordinates[position]) for term in terms], block.size)

    def of_turn(turn: slice, device: torch.device) -> list[Term]:
        return [Term(t.seed, t.coordinates[position].to(device), t.share) for t in terms[turn]]

    once: list[Term] | None = None

    def move_(weights: Tensor, start: int) -> None:
        nonlocal once
        if len(turns) == 1:
            once = once or of_turn(turns[0], weights.device)
            _kernel(block, basis, weights).apply_(weights, block, once, start=start, rounding=rounding)
            return
        moved = weights.float()
        for turn in turns:
            there = of_turn(turn, weights.device)
            _kernel(block, basis, moved).apply_(moved, block, there, start=start, rounding=rounding)
        if moved.dtype != weights.dtype:
            _round_(weights, moved, block, start, rounding)

    return move_


class Target(Protocol):
    """Where moved elements go. ``held`` are those that are wanted, by parameter."""

    held: Mapping[str, Held]

    def write(self, parameter: str, begin: int, elements: Tensor) -> None:
        """Takes elements ``begin`` … of a parameter, flat and of its type."""
        ...


_TARGET: ContextVar[Target | None] = ContextVar("target", default=None)


@contextmanager
def moved_to(target: Target) -> Generator[None]:
    """Within the block ``apply_`` leaves parameters as they are, and gives the ``target`` what it holds of them, moved.

    At most 2²¹ elements are held at a time.
    """
    token = _TARGET.set(target)
    try:
        yield
    finally:
        _TARGET.reset(token)


def _parts_of(parameters: Parameters, held: Mapping[str, Held]) -> dict[str, Tensor]:
    return {name: parameters[name].detach().view(-1)[part.begin : part.end] for name, part in held.items()}


def reconstruct_into(rows: Tensor, block: Block, basis: Basis, terms: Sequence[Term], start: int) -> None:
    """Fills ``rows``, fp32 (terms, n), with elements ``start`` … ``start + n − 1`` of V·c for each term; 0 where a term
    has no coefficients. The terms lie on the device of the rows."""
    for row, term in zip(rows, terms, strict=True):
        row.zero_()
        if len(term.coefficients):
            _kernel(block, basis, row).apply_(row, block, [term._replace(coefficients=-term.coefficients)], start=start)


def _parts(
    before: Parameters,
    after: Parameters,
    blocks: Sequence[Block],
    basis: Basis,
    K: Sequence[int],
    seed: int,
    share: int,
) -> Iterator[Iterable[Tensor]]:
    """What each piece of each block adds to the block's coordinates; nothing of blocks without."""

    def project(block: int, begin: Tensor, end: Tensor, start: int) -> Tensor:
        chosen = _kernel(blocks[block], basis, end)
        return chosen.project(begin, end, blocks[block], K[block], seed, start=start, share=share)

    wanted = [block if count else block._replace(pieces=()) for block, count in zip(blocks, K, strict=True)]
    if any_shard(after):
        return of_pieces(before, after, wanted, project, lambda block: torch.empty(K[block]))
    return _each(before, after, wanted, project)


def _squares(before: Parameters, after: Parameters, blocks: Sequence[Block]) -> Iterator[Iterable[Tensor]]:
    """‖before − after‖² of each piece of each block, fp64 ()."""

    def square(block: int, begin: Tensor, end: Tensor, start: int) -> Tensor:
        return squared_norm(begin, end)

    if any_shard(after):
        return of_pieces(before, after, blocks, square, lambda block: torch.empty((), dtype=torch.float64))
    return _each(before, after, blocks, square)


def _each(
    before: Parameters, after: Parameters, blocks: Sequence[Block], work: Callable[[int, Tensor, Tensor, int], R]
) -> Iterator[Iterator[R]]:
    """``work(block's position, before, after, start)`` of each piece of each block."""
    return (
        (work(position, begin, end, start) for begin, end, start in _pairs(before, after, block))
        for position, block in enumerate(blocks)
    )


def _turns(counts: Sequence[int], most: int) -> list[slice]:
    """Consecutive terms, one at least, whose ``counts`` of coordinates add up to ``most`` at most."""
    turns, first, held = list[slice](), 0, 0
    for position, count in enumerate(counts):
        if position > first and held + count > most:
            turns.append(slice(first, position))
            first, held = position, 0
        held += count
    return [*turns, slice(first, len(counts))]


def _round_(weights: Tensor, moved: Tensor, block: Block, start: int, rounding: int) -> None:
    """Writes fp32 ``moved`` into weights of half precision, a stretch at a time."""
    for first in range(0, len(weights), STRETCH):
        part = moved[first : first + STRETCH]
        weights[first : first + STRETCH] = stochastic(part, weights.dtype, rounding, block.id, start + first)


def _kernel(block: Block, basis: Basis, weights: Tensor) -> Kernel:
    return kernel(family("I") if block.whole else basis, weights.device)


def _pairs(before: Parameters, after: Parameters, block: Block) -> Iterator[tuple[Tensor, Tensor, int]]:
    """The block's pieces before and after, on the device of ``after``, with their first element's place in it."""
    for (begin, start), (end, _) in zip(_pieces(before, block), _pieces(after, block), strict=True):
        step = len(end) if begin.device == end.device else STRETCH
        for first in range(0, len(end), step):
            yield begin[first : first + step].to(end.device), end[first : first + step], start + first


def _lengths(parameters: Parameters, blocks: Sequence[Block]) -> Iterator[Iterable[float]]:
    """The L2 norm of each piece of each block, in fp64."""
    _check_complete(blocks)
    if any_shard(parameters):
        found = of_pieces(
            parameters,
            parameters,
            blocks,
            lambda block, begin, end, start: torch.tensor([_length((begin, start))], dtype=torch.float64),
            lambda block: torch.empty(1, dtype=torch.float64),
        )
        return (map(float, of_block) for of_block in found)
    return (map(_length, _pieces(parameters, block)) for block in blocks)


def _length(piece: tuple[Tensor, int]) -> float:
    return math.hypot(*(float(torch.linalg.vector_norm(part, dtype=torch.float64)) for part in stretches(piece[0])))


def _pieces(parameters: Parameters, block: Block) -> Iterator[tuple[Tensor, int]]:
    """The block's pieces as vectors that share the parameters' memory, with their first element's place in it."""
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
    return tensor.view(-1)[piece.begin : end]


def _check_complete(blocks: Sequence[Block]) -> None:
    for block in blocks:
        held = sum(piece.length for piece in block.pieces)
        if held != block.size:
            raise _mismatch(block.name, held, f"its pieces must hold its {block.size} elements")


def _check_blocks(parameters: Parameters, blocks: Sequence[Block]) -> None:
    """Meets, before anything is moved, every error that the walk over the blocks would."""
    for block in blocks:
        for _ in _pieces(parameters, block):
            continue


def _check_below(field: str, value: int, bits: int) -> None:
    if not 0 <= value < 1 << bits:
        raise FerretError.of_field("projection.invalid", field, value, f"must be between 0 and 2^{bits} − 1")


def _check_counts(K: Sequence[int], blocks: Sequence[Block]) -> None:
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


def _check_finite(coordinates: Sequence[Tensor], blocks: Sequence[Block]) -> None:
    """Sums first, one look per device: a sum of finite numbers is finite unless they are huge, and costs nothing."""
    for device in {values.device for values in coordinates}:
        sums = torch.stack([values.sum() for values in coordinates if values.device == device])
        if bool(sums.isfinite().all()):
            continue
        for block, values in zip(blocks, coordinates, strict=True):
            for wrong in values[~values.isfinite()].tolist():
                raise _non_finite(block, wrong)


def _non_finite(block: Block, value: float) -> FerretError:
    return FerretError.of_field(
        "training.non_finite", block.name, str(value), "its update is not finite: lower the learning rate"
    )


def _mismatch(field: str, value: int | None, message: str) -> FerretError:
    return FerretError.of_field("projection.invalid", field, value, f"{message}: cut the blocks from this model")


def _unusable(name: str, value: str | tuple[int, ...], message: str) -> FerretError:
    return FerretError.of_field("model.invalid", name, value, message)
