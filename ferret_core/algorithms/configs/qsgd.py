"""QSGD's options and contributions: one level per parameter, and one norm per bucket.

Levels are whole numbers from −s to s: digits of base 2s + 1, packed into words of 64 bits. A word holds p = ⌊64 /
log₂(2s + 1)⌋ numbers, the first in the lowest digit; 2s + 1 is added to negative numbers. For s = 1 that is 1.6 bits
per number, where three values need 1.585. The last word is padded with zeros.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs.base import ContributionSize, check_layouts, check_metadata, size_of
from ferret_core.algorithms.configs.norms import Norms, dense_norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.limits import MAX_ELEMENTS
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Array, Arrays, Contribution, malformed
from ferret_core.training.config import LOCAL, LocalConfig

WORD = np.dtype(np.uint64)


def level_layout(s: int, count: int) -> Layout:
    """Returns the layout of ``count`` numbers."""
    return Layout(WORD, (-(-count // _digits(s)),))


def pack_levels(levels: Array, s: int) -> Array:
    """Packs ``levels``, whole numbers from −s to s."""
    base, width = 2 * s + 1, _digits(s)
    filled = np.pad(levels.astype(np.int64) % base, (0, -len(levels) % width)).astype(WORD).reshape(-1, width)
    words = np.zeros(len(filled), WORD)
    for digit in reversed(range(width)):
        words = words * WORD.type(base) + filled[:, digit]
    return words


def unpack_levels(words: Array, s: int, count: int) -> Array:
    """Returns the ``count`` numbers, int8, from an array of the right layout.

    Raises ``contribution.malformed`` for an array that ``pack_levels`` would not have made.
    """
    base, width = 2 * s + 1, _digits(s)
    digits = np.empty((len(words), width), np.int16)
    for digit in range(width):
        words, digits[:, digit] = np.divmod(words, WORD.type(base))
    levels = digits.reshape(-1)
    if words.any():
        raise malformed("levels", int(words.max()), f"a word holds more than {width} digits of base {base}")
    if levels[count:].any():
        raise malformed("levels", None, f"numbers after the first {count} are not zero")
    return np.where(levels > s, levels - base, levels)[:count].astype(np.int8)


def _digits(s: int) -> int:
    """Returns p: the largest number of digits of base 2s + 1 that always fit into a word."""
    width, most = 0, 1
    while (most := most * (2 * s + 1)) <= 1 << 64:
        width += 1
    return width


class Config(StrictModel):
    """QSGD's options."""

    levels: int = Field(
        default=1,
        ge=1,
        le=127,
        description="s: an entry becomes one of −s … s; 1 takes 1.6 bits, 2 takes 2.4, 3 takes 2.9, 7 takes 4",
    )
    bucket: int = Field(default=512, ge=1, le=MAX_ELEMENTS, description="Consecutive entries that share a norm")
    norm: Literal["max", "l2"] = Field(
        default="max", description="max: the largest |entry|, as in the paper's experiments; l2: as in its theory"
    )
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        d, arrays = count(shapes), contribution.arrays
        check_metadata(contribution, {"K": (d,)})
        check_layouts(arrays, self._layouts(d))
        unpack_levels(arrays["levels"], self.levels, d)
        if bool(np.signbit(arrays["norms"]).any()):
            raise malformed("norms", float(arrays["norms"].min()), "is negative")

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(self._layouts(count(shapes)), numbers=1)

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        return dense_norms(self.decoded(contribution.arrays, count(shapes)), shapes)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, aggregation_vectors=5, decodable=True)

    def decoded(self, arrays: Arrays, d: int) -> Array:
        """Returns Q(m), fp32 (d,), with no entry above its bucket's norm; raises like ``unpack_levels``."""
        shares = unpack_levels(arrays["levels"], self.levels, d) / np.float32(self.levels)
        return shares * np.repeat(arrays["norms"], self.bucket_of(d))[:d]

    def bucket_of(self, d: int) -> int:
        """Returns the entries in a bucket; at most the number of the model's parameters."""
        return min(self.bucket, d)

    def _layouts(self, d: int) -> dict[str, Layout]:
        norms = Layout(np.dtype(np.float32), (-(-d // self.bucket_of(d)),))
        return {"levels": level_layout(self.levels, d), "norms": norms}
