"""H, randomized Hadamard: random signs, a Hadamard transform in chunks, one transformed value per coordinate.

The subsampled transform of Ailon and Chazelle ("The fast Johnson–Lindenstrauss transform", SIAM J. Comput. 2009): y =
H·(s∘Δ)/√m has d elements of equal expected size, and K of them, one from each of K strata, represent all. The mean
squared error is (d/K − 1)‖Δ‖²; at K = d it is 0. Cost: twelve additions per element, for any K.

A block is cut into chunks of m = 4096 elements, and its rest by binary digits, the largest first. So nothing is padded,
Σ m = d, and every chunk starts at a multiple of its length.

:func:`rotate` is the same without sampling, in chunks of 4,096 only: y = H·(s∘x)/√m, with the inverse s∘(H·y/√m). It
preserves lengths and angles. The entries of a chunk become similar and almost normally
distributed, unless a few of them dominate it. The last chunk is padded with zeros.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, final

import torch
from torch import Tensor
from torch.nn.functional import pad

from ferret_core.projection.bases.base import Moments
from ferret_core.projection.blocks import Block
from ferret_core.projection.philox import MINUS, Tag, draw, sign_bits, sign_bits_at, uniform_below

CHUNK = 4096
STRETCH = 256 * CHUNK


@final
class Basis:
    letter: ClassVar[str] = "H"

    def project_into(self, gamma: Tensor, delta: Tensor, block: Block, start: int, seed: int) -> None:
        """Adds n·y_p to γ_k for every coordinate with its place p in the stretch; n is the size of its stratum."""
        chunks = Chunks.over(block.size, start, start + len(delta))
        signs = sign_bits(seed, block.id, start, start + len(delta), delta.device)
        signed = (delta.view(torch.int32) ^ signs).view(torch.float32)
        y = chunks.transform(pad(signed, (0, chunks.elements - len(delta))))
        sample = Sample.within(start, start + len(y), block, len(gamma), seed, delta.device)
        gamma[sample.columns] += sample.strata * y[sample.places - start]

    def reconstruct(self, coefficients: Tensor, count: int, block: Block, start: int, seed: int) -> Tensor:
        """s∘(H·c/√m), each coefficient at its place. The format fixes the order of the additions."""
        chunks = Chunks.over(block.size, start, start + count)
        placed = coefficients.new_zeros(chunks.elements)
        sample = Sample.within(start, start + len(placed), block, len(coefficients), seed, placed.device)
        placed[sample.places - start] = coefficients[sample.columns]
        signs = sign_bits(seed, block.id, start, start + count, placed.device)
        return (chunks.transform(placed)[:count].view(torch.int32) ^ signs).view(torch.float32)

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        """±1/√m in the chunk of the column's place, zero elsewhere."""
        places = Sample.of(columns, block, K, seed).places
        m = _length_at(places, block.size)
        minus = _parity(rows[:, None] & places & (m - 1)) * MINUS ^ sign_bits_at(seed, block.id, rows)[:, None]
        values = (1 / m.double().sqrt()).float().view(torch.int32) ^ minus
        return torch.where(rows[:, None] // m == places // m, values.view(torch.float32), 0.0)

    def moments(self, d: int) -> Moments:
        """Returns the moments of the non-zero entries, over all places: a place in a chunk of m has m of them, each
        ±1/√m.

        So ρ = d/Σm² and κ = (number of chunks)·Σm²/d²: 1/4096 and 1 in blocks of whole chunks.
        """
        chunks = Chunks.over(d, 0, d).runs
        squares = sum(number * m * m for number, m in chunks)
        return Moments(d / squares, sum(number for number, _ in chunks) * squares / d**2)


class Chunks(NamedTuple):
    """Consecutive chunks, equal ones together: (number, length) for each run, no two runs of the same length."""

    runs: tuple[tuple[int, int], ...]

    @classmethod
    def over(cls, size: int, start: int, stop: int) -> Chunks:
        """Returns the chunks of a block of ``size`` elements that overlap start … stop − 1; one begins at ``start``."""
        rest = size - size % CHUNK
        runs = [(-(-(min(stop, rest) - start) // CHUNK), CHUNK)] if start < rest else []
        begin = max(start, rest)
        for m in (1 << bit for bit in reversed(range(CHUNK.bit_length() - 1)) if size >> bit & 1):
            if begin < stop:
                runs.append((1, m))
                begin += m
        return cls(tuple(runs))

    @property
    def elements(self) -> int:
        return sum(number * m for number, m in self.runs)

    def transform(self, values: Tensor) -> Tensor:
        """Returns H_m·x/√m of every chunk x of ``values``, fp32 (elements,)."""
        parts = values.split([number * m for number, m in self.runs])
        return torch.cat([_hadamard(part.view(-1, m)).view(-1) for part, (_, m) in zip(parts, self.runs, strict=True)])


class Sample(NamedTuple):
    """Some coordinates: their numbers k, their places in the d transformed values, and their strata's sizes n.

    Stratum k of K holds places ⌊k·d/K⌋ … ⌊(k + 1)·d/K⌋ − 1. All three are int64, of one shape.
    """

    columns: Tensor
    places: Tensor
    strata: Tensor

    @classmethod
    def of(cls, columns: Tensor, block: Block, K: int, seed: int) -> Sample:
        """Samples the place of each coordinate, uniformly distributed over its stratum."""
        first = _stratum_start(columns, block.size, K)
        strata = _stratum_start(columns + 1, block.size, K) - first
        words = draw(seed, columns // 4, 0, block.id, Tag.HADAMARD_ROWS).gather(-1, columns[:, None] % 4)[:, 0]
        return cls(columns, first + uniform_below(words, strata), strata)

    @classmethod
    def within(cls, start: int, stop: int, block: Block, K: int, seed: int, device: torch.device) -> Sample:
        """Samples all coordinates with places in start … stop − 1."""
        low, high = (((place + 1) * K - 1) // block.size for place in (start, stop - 1))
        near = cls.of(torch.arange(low, high + 1, device=device), block, K, seed)
        inside = (near.places >= start) & (near.places < stop)
        return cls(*(values[inside] for values in near))


def _stratum_start(k: Tensor, d: int, K: int) -> Tensor:
    """Returns ⌊k·d/K⌋ without the product, which could overflow 64 bits."""
    return k * (d // K) + k * (d % K) // K


def _length_at(places: Tensor, d: int) -> Tensor:
    """Returns the length of the chunk around each place: the highest binary digit in which the place differs from d."""
    digits = torch.frexp((places ^ d).double()).exponent
    return torch.ones_like(places) << digits.clamp(max=CHUNK.bit_length()) - 1


def _parity(x: Tensor) -> Tensor:
    """Returns the number of ones in x ≥ 0, below 2¹⁶, modulo 2, as int32."""
    for shift in (8, 4, 2, 1):
        x = x ^ x >> shift
    return (x & 1).to(torch.int32)


def _hadamard(rows: Tensor) -> Tensor:
    """Returns H_m·x/√m of each row x, fp32 (…, m): butterflies of distance 1, 2, 4 …, then one multiplication."""
    m = rows.shape[-1]
    for h in (1 << bit for bit in range(m.bit_length() - 1)):
        a, b = rows.unflatten(-1, (-1, 2, h)).unbind(-2)
        rows = torch.stack([a + b, a - b], dim=-2).flatten(-3)
    return rows * (1 / math.sqrt(m))


def rotate(vector: Tensor, seed: int) -> Tensor:
    """Returns y of ``vector``, fp32 (d,): fp32 (⌈d/4096⌉, 4096), the same bits for any number of threads."""
    filled = pad(vector, (0, -len(vector) % CHUNK))
    parts = filled.split(STRETCH)
    return torch.cat([_transform(_signed(part, n, seed)) for n, part in enumerate(parts)]).view(-1, CHUNK)


def rotate_back(rotated: Tensor, seed: int, d: int) -> Tensor:
    """Returns the vector, fp32 (d,), that ``rotate`` maps to ``rotated``, fp32 (⌈d/4096⌉, 4096)."""
    parts = rotated.reshape(-1).split(STRETCH)
    return torch.cat([_signed(_transform(part), n, seed) for n, part in enumerate(parts)])[:d]


def _signed(part: Tensor, number: int, seed: int) -> Tensor:
    start = number * STRETCH
    signs = sign_bits(seed, 0, start, start + len(part), part.device)
    return (part.view(torch.int32) ^ signs).view(torch.float32)


def _transform(part: Tensor) -> Tensor:
    return Chunks(((len(part) // CHUNK, CHUNK),)).transform(part)
