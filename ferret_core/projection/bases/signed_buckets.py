"""G, signed buckets: each coordinate sums its own set of elements under random signs.

The paper's block-wise reconstruction at its limit, K blocks with one ±1 direction each: Δ~_i = s_i·γ_b, unbiased
because the signs are independent, with mean squared error (d/K − 1)‖Δ‖² when buckets are equal. One random bit per
element, at a cost independent of K.

Elements go to buckets in granules. K consecutive granules make a stripe, which gives every bucket one; a random
rotation per stripe mixes rows and columns of a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple, final

import torch
from torch import Tensor
from torch.nn.functional import pad

from ferret_core.projection.bases.base import Moments
from ferret_core.projection.blocks import Block
from ferret_core.projection.deterministic_sum import fold
from ferret_core.projection.philox import Tag, draw, sign_bits, sign_bits_at, uniform_below

MAX_GRANULE = 1024
GRANULES_PER_BUCKET = 8


@final
class Basis:
    letter: ClassVar[str] = "G"

    def project_into(self, gamma: Tensor, delta: Tensor, block: Block, start: int, seed: int) -> None:
        """Adds Σ s_i·Δ_i over the elements i of bucket b in the stretch to γ_b."""
        layout = Layout.of(block.size, len(gamma))
        signs = sign_bits(seed, block.id, start, start + len(delta), delta.device)
        signed = (delta.view(torch.int32) ^ signs).view(torch.float32)
        granules = fold(pad(signed, (0, -len(delta) % layout.granule)).view(-1, layout.granule))
        for bucket, first, last in layout.runs(seed, block.id, start, len(delta)):
            gamma[bucket : bucket + last - first] += granules[first:last]

    def reconstruct(self, coefficients: Tensor, count: int, block: Block, start: int, seed: int) -> Tensor:
        """s_i·c_b, exact: a sign put on a coefficient."""
        layout = Layout.of(block.size, len(coefficients))
        runs = layout.runs(seed, block.id, start, count)
        granules = torch.cat([coefficients[bucket : bucket + last - first] for bucket, first, last in runs])
        elements = granules.repeat_interleave(layout.granule)[:count]
        signs = sign_bits(seed, block.id, start, start + count, coefficients.device)
        return (elements.view(torch.int32) ^ signs).view(torch.float32)

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        layout = Layout.of(block.size, K)
        granules = rows // layout.granule
        buckets = (granules + layout.rotations(seed, block.id, granules // K)) % K
        signs = torch.where(sign_bits_at(seed, block.id, rows) == 0, 1.0, -1.0)
        return torch.where(buckets[:, None] == columns, signs[:, None], 0.0)

    def moments(self, d: int) -> Moments:
        """Returns the moments of the single entry ±1 per element; the other K − 1 entries of its row are zero."""
        return Moments(1.0, 1.0)


class Layout(NamedTuple):
    """The layout of a block of ``size`` elements: stripes of K granules of ``granule`` elements each."""

    size: int
    K: int
    granule: int

    @classmethod
    def of(cls, size: int, K: int) -> Layout:
        """Chooses the largest granules with at least 8 whole ones per bucket: each bucket mixes distant elements."""
        whole = max(1, size // (GRANULES_PER_BUCKET * K))
        return cls(size, K, min(MAX_GRANULE, 1 << (whole.bit_length() - 1)))

    def rotations(self, seed: int, block_id: int, stripes: Tensor) -> Tensor:
        """Returns r_t below K for each stripe number t of ``stripes``, int64 like them."""
        words = draw(seed, stripes // 4, 0, block_id, Tag.ROTATIONS)
        return torch.as_tensor(uniform_below(words.gather(-1, stripes[:, None] % 4)[:, 0], self.K))

    def runs(self, seed: int, block_id: int, start: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Yields (bucket, first, last): granules first … last − 1 of the stretch go to the buckets from ``bucket`` on.

        Granules are counted from the one at ``start``, a multiple of ``granule``.
        """
        origin = start // self.granule
        end = -(-(start + count) // self.granule)
        stripes = range(origin // self.K, -(-end // self.K))
        for t, r in zip(stripes, self.rotations(seed, block_id, torch.tensor(stripes)).tolist(), strict=True):
            wrap = (t + 1) * self.K - r
            for low, high, bucket in ((t * self.K, wrap, r), (wrap, (t + 1) * self.K, 0)):
                first, last = max(low, origin), min(high, end)
                if first < last:
                    yield bucket + first - low, first - origin, last - origin
