"""Ways to project an update and to apply it: the project's families, and the paper's published code.

All have one interface over a model's parameters cut into blocks, so that the same code measures them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, final

import torch
from torch import Tensor
from torch.nn.init import trunc_normal_

from ferret_core.projection import kernels, project
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block, Piece
from ferret_core.projection.variance import truncated_normal_moments
from ferret_core.protocol.digest import derive_seed

Parameters = Mapping[str, Tensor]


class Contribution(NamedTuple):
    """A seed and c_l, fp32 (K_l,), for every block: coordinates already multiplied by rate and weight."""

    seed: int
    coefficients: Sequence[Tensor]


class Way(Protocol):
    name: str

    def project(
        self, before: Parameters, after: Parameters, blocks: Sequence[Block], K: Sequence[int], seed: int
    ) -> Sequence[Tensor]:
        """Returns γ of before_l − after_l for every block l."""
        ...

    def apply_(self, parameters: Parameters, blocks: Sequence[Block], contributions: Sequence[Contribution]) -> None:
        """Computes w_l ← w_l − V_l·c_l for each contribution."""
        ...


@final
class Family:
    """A family of ``ferret_core.projection`` on the kernel that a user gets."""

    def __init__(self, letter: str) -> None:
        self.name, self.basis = letter, basis(letter)

    def kernel(self, device: torch.device) -> str:
        """Returns the name of the kernel on the device."""
        module = type(kernels.kernel(self.basis, device)).__module__
        return module.removeprefix(f"{kernels.__name__}.")

    def project(
        self, before: Parameters, after: Parameters, blocks: Sequence[Block], K: Sequence[int], seed: int
    ) -> Sequence[Tensor]:
        return project.project(before, after, blocks, self.basis, K, seed).coordinates

    def apply_(self, parameters: Parameters, blocks: Sequence[Block], contributions: Sequence[Contribution]) -> None:
        terms = [project.Projected(sent.seed, sent.coefficients) for sent in contributions]
        reconstruct_(parameters, blocks, self.basis, terms)


@final
class Naive:
    """The authors' algorithm: for each column a generator with a separate seed fills a vector as long as the block.

    Projecting takes its dot product with the update, reconstructing adds its multiple to the weights. Moments are the
    paper's ρ, so that γ is unbiased like T's, which has entries with the same distribution.
    """

    name = "naive"

    def project(
        self, before: Parameters, after: Parameters, blocks: Sequence[Block], K: Sequence[int], seed: int
    ) -> Sequence[Tensor]:
        return [
            self._project(_pieces(before, block), _pieces(after, block), block, count, seed)
            for block, count in zip(blocks, K, strict=True)
        ]

    def _project(self, before: Sequence[Tensor], after: Sequence[Tensor], block: Block, K: int, seed: int) -> Tensor:
        deltas = [begin - end for begin, end in zip(before, after, strict=True)]
        gamma = torch.empty(K, device=deltas[0].device)
        for k, vector in enumerate(_columns(seed, block, K, deltas[0])):
            gamma[k] = sum(torch.dot(part, delta) for part, delta in zip(_split(vector, block), deltas, strict=True))
        return gamma / (truncated_normal_moments(block.size)[0] * K)

    def apply_(self, parameters: Parameters, blocks: Sequence[Block], contributions: Sequence[Contribution]) -> None:
        for sent in contributions:
            for block, coefficients in zip(blocks, sent.coefficients, strict=True):
                weights = _pieces(parameters, block)
                columns = _columns(sent.seed, block, len(coefficients), weights[0])
                for coefficient, vector in zip(coefficients.tolist(), columns, strict=True):
                    for part, piece in zip(_split(vector, block), weights, strict=True):
                        piece.sub_(part, alpha=coefficient)


def one_block(size: int) -> Block:
    """Returns a whole parameter called ``w``."""
    return Block(0, "w", size, (Piece("w", 0, 0, size),))


def _columns(seed: int, block: Block, K: int, like: Tensor) -> Iterator[Tensor]:
    bound = block.size**-0.5
    generator = torch.Generator(like.device)
    for k in range(K):
        generator.manual_seed(derive_seed(seed, block.id, k))
        yield trunc_normal_(like.new_empty(block.size), a=-bound, b=bound, generator=generator)


def _pieces(parameters: Parameters, block: Block) -> list[Tensor]:
    return [parameters[p.parameter].detach().view(-1)[p.begin : p.begin + p.length] for p in block.pieces]


def _split(vector: Tensor, block: Block) -> Iterator[Tensor]:
    return (vector[piece.start : piece.start + piece.length] for piece in block.pieces)


WEIGHT_BYTES = 4


class Vectors(NamedTuple):
    """A block before and after training, every page touched."""

    before: Tensor
    after: Tensor

    @classmethod
    def random(cls, elements: int, device: torch.device) -> Vectors:
        before = torch.empty(elements, device=device).uniform_(-0.05, 0.05)
        return cls(before, before + 1e-3)

    def action(self, way: Way, operation: str, K: int, contributions: int = 1) -> Callable[[], Any]:
        """Returns one call of ``project`` or ``apply``, its coefficients drawn beforehand."""
        block, before, after = one_block(len(self.before)), {"w": self.before}, {"w": self.after}
        if operation == "project":
            return lambda: way.project(before, after, [block], [K], 1)
        sent = [Contribution(seed, [torch.randn(K, device=self.after.device) * 1e-6]) for seed in range(contributions)]
        return lambda: way.apply_(after, [block], sent)
