"""G, signed buckets: each coordinate sums its own set of elements under random signs.

The paper's block-wise reconstruction at its limit, K blocks with one ±1 direction each: Δ~_i = s_i·γ_b, unbiased
because the signs are independent, with mean squared error (d/K − 1)‖Δ‖² when buckets are equal. One random bit per
element, at a cost that does not depend on K.

Elements go to buckets in granules. K consecutive granules make a stripe, which gives every bucket one; a random
rotation per stripe mixes rows and columns of a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, final

import torch
from torch import Tensor
from torch.nn.functional import pad

from ferret_core.projection.bases._base import Moments, Term
from ferret_core.projection.blocks import Block
from ferret_core.projection.philox import Tag, draw_one, uniform_below
from ferret_core.projection.reduce import PairwiseSum, fold
from ferret_core.projection.signs import sign_bits

CHUNK = 1 << 18
MAX_GRANULE = 1024
GRANULES_PER_BUCKET = 8


@final
class Basis:
    letter: ClassVar[str] = "G"

    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int) -> Tensor:
        """γ_b = Σ s_i (before_i − after_i) over the elements i of bucket b."""
        if K == 0:
            return before.new_empty(0)
        layout = Layout.of(block.size, K)
        rotations = layout.rotations(seed, block.id, before.device)
        sums = PairwiseSum()
        for first, last in layout.batches():
            pieces = [
                _granule_sums(before[start:stop] - after[start:stop], seed, block.id, start, layout.granule)
                for start, stop in layout.pieces(first, last)
            ]
            granules = torch.cat(pieces)
            stripes = pad(granules, (0, (last - first) * K - len(granules))).view(-1, K)
            sums.add(_rotated(stripes, K - rotations[first:last]))
        return sums.total()

    def apply_(self, weights: Tensor, block: Block, terms: Sequence[Term]) -> None:
        for seed, coefficients in terms:
            if len(coefficients) == 0:
                continue
            layout = Layout.of(block.size, len(coefficients))
            rotations = layout.rotations(seed, block.id, weights.device)
            for first, last in layout.batches():
                granules = _rotated(coefficients.expand(last - first, -1), rotations[first:last]).view(-1)
                for start, stop in layout.pieces(first, last):
                    offset = start // layout.granule - first * layout.K
                    _subtract_(weights[start:stop], granules[offset:], seed, block.id, start, layout.granule)

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        layout = Layout.of(block.size, K)
        granules = rows // layout.granule
        rotations = layout.rotations(seed, block.id, rows.device)
        buckets = (granules + rotations[granules // K]) % K
        signs = torch.where(sign_bits(seed, block.id, 0, block.size, rows.device)[rows] == 0, 1.0, -1.0)
        return torch.where(buckets[:, None] == columns, signs[:, None], 0.0)

    def moments(self, d: int) -> Moments:
        """Of the one entry ±1 that each element has; the other K − 1 entries of its row are zero."""
        return Moments(1.0, 1.0)


class Layout(NamedTuple):
    """How a block of ``size`` elements falls into stripes of K granules of ``granule`` elements each."""

    size: int
    K: int
    granule: int
    stripes: int

    @classmethod
    def of(cls, size: int, K: int) -> Layout:
        """Granules are as large as leaves 8 whole ones per bucket, so that each bucket mixes distant elements."""
        whole = max(1, size // (GRANULES_PER_BUCKET * K))
        granule = min(MAX_GRANULE, 1 << (whole.bit_length() - 1))
        return cls(size, K, granule, -(-size // (granule * K)))

    def rotations(self, seed: int, block_id: int, device: torch.device) -> Tensor:
        """r_t below K for each stripe, int64 (stripes,)."""
        words = [word for t in range(0, self.stripes, 4) for word in draw_one(seed, t // 4, block_id, Tag.ROTATIONS)]
        return torch.tensor([uniform_below(word, self.K) for word in words[: self.stripes]], device=device)

    def batches(self) -> Iterator[tuple[int, int]]:
        """Ranges of stripes: a power of two of them, at most ``CHUNK`` elements unless one stripe alone is longer."""
        fit = max(1, CHUNK // (self.granule * self.K))
        step = 1 << (fit.bit_length() - 1)
        return ((first, min(first + step, self.stripes)) for first in range(0, self.stripes, step))

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The elements of stripes first … last−1 in ranges of at most ``CHUNK``, each starting a granule."""
        stripe = self.granule * self.K
        end = min(last * stripe, self.size)
        return ((start, min(start + CHUNK, end)) for start in range(first * stripe, end, CHUNK))


def _granule_sums(delta: Tensor, seed: int, block_id: int, start: int, granule: int) -> Tensor:
    signed = delta.view(torch.int32).bitwise_xor_(sign_bits(seed, block_id, start, start + len(delta), delta.device))
    return fold(pad(signed.view(torch.float32), (0, -len(delta) % granule)).view(-1, granule))


def _subtract_(weights: Tensor, granules: Tensor, seed: int, block_id: int, start: int, granule: int) -> None:
    """weights ← weights − s·c, where ``granules`` holds c for each granule from the first of ``weights`` on."""
    count = -(-len(weights) // granule)
    update = sign_bits(seed, block_id, start, start + count * granule, weights.device).view(count, granule)
    update ^= granules[:count, None].view(torch.int32)
    weights -= update.view(torch.float32).view(-1)[: len(weights)]


def _rotated(rows: Tensor, by: Tensor) -> Tensor:
    """Row t turned left by by[t], 0 … K: element m becomes element (m + by[t]) mod K of ``rows`` (n, K)."""
    K = rows.shape[1]
    windows = torch.cat([rows, rows], dim=1).unfold(1, K, 1)
    return windows[torch.arange(len(rows), device=rows.device), by]
