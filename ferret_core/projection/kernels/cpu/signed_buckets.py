"""G on the CPU: one pass over the weights at memory speed, for any K and any number of contributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from numpy import float32, int64, uint32, uint64
from numpy.typing import NDArray
from torch import Tensor

from ferret_core.projection.bases.signed_buckets import Layout
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.kernels.cpu._philox import MINUS, ROWS, draw_signs, fold, keys, philox, signed, stream
from ferret_core.projection.kernels.cpu._threads import ranges, share_out, tiles_of
from ferret_core.projection.kernels.cpu._tile_io import inside, opened, packed, rounding_of, store, stored, widen
from ferret_core.projection.philox import LANES, TILE, Tag

RUN = 1 << 17
SEGMENT = 1 << 22
"""Elements of a stripe's run, and minimum of a segment, that one task projects."""
STRETCH = 64
"""Tiles that one task moves."""
GROUP, CACHED = 256, 1 << 17
"""Tiles that stay together when tiles are sorted by bucket, and the smallest K with sorted tiles."""
QUARTER = TILE // 4
"""Elements with signs in one of a tile's four rows of words: the size of the largest granule."""
ROW = 5
"""log2 of the elements in a row of lanes: larger granules are whole rows, smaller ones share a row."""


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        """Sums each bucket stripe after stripe, by one thread; long blocks in segments that are added in order."""
        layout = Layout.of(block.size, K)
        stripe = K * layout.granule
        t0, t1 = start // stripe, -(-(start + len(after)) // stripe)
        tiles = ranges(K, max(1, RUN // layout.granule))
        segments = ranges(t1 - t0, -(-(t1 - t0) // max(1, len(after) // SEGMENT // len(tiles))))
        sums = np.zeros((len(segments), K), float32)
        source = stored(before), stored(after), start, K, layout.granule.bit_length() - 1
        draws = keys([seed])[0], stream(block.id, Tag.SIGNS), stream(block.id, Tag.ROTATIONS)
        tasks = [
            (*source, *draws, t0 + first, t0 + last, low, sums[n, low:high])
            for n, (first, last) in enumerate(segments)
            for low, high in tiles
        ]
        share_out(_project, tasks)
        return torch.from_numpy(sums[0] if len(segments) == 1 else np.add.reduce(sums, axis=0))

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        """Applies all terms in one pass: a tile of weights stays in the first-level cache meanwhile."""
        sent = packed(terms)
        if sent is None:
            return
        layouts = [Layout.of(block.size, int(K)) for K in sent.counts]
        shifts = np.array([layout.granule.bit_length() - 1 for layout in layouts], int64)
        coefficients = sent.coefficients.view(uint32), sent.offsets, sent.counts, shifts
        draws = sent.keys, stream(block.id, Tag.SIGNS), stream(block.id, Tag.ROTATIONS)
        tiles = _ordered(*tiles_of(start, len(weights)), layouts[0], sent.keys[0], draws[2])
        tasks = [
            (stored(weights), start, tiles[i:j], *coefficients, *draws, *rounding_of(rounding, block.id))
            for i, j in ranges(len(tiles), STRETCH)
        ]
        share_out(_apply, tasks)


def _ordered(first: int, last: int, layout: Layout, key: NDArray[np.uint32], rotations: np.uint32) -> NDArray[np.int64]:
    """Returns the tiles; if coefficients outgrow a cache, in groups of near buckets, which the next finds cached."""
    if layout.K <= CACHED:
        return np.arange(first, last)
    groups = np.arange(first, last, GROUP)
    buckets = np.empty_like(groups)
    _fill_buckets(buckets, groups, layout.K, layout.granule, key, rotations)
    tiles = groups[np.argsort(buckets, kind="stable"), None] + np.arange(GROUP)
    return tiles[tiles < last]


@compiled
def _fill_buckets(buckets: Any, tiles: Any, K: Any, granule: Any, key: Any, rotations: Any) -> None:
    """Fills in the first bucket of each tile."""
    for n in range(len(tiles)):
        j = tiles[n] * TILE // granule
        buckets[n] = (j % K + _rotation(j // K, K, key, rotations)) % K


@compiled
def _rotation(t: Any, K: Any, key: Any, rotations: Any) -> Any:
    """r_t."""
    words = philox(uint32(t // 4), uint32(0), rotations, key[0], key[1])
    return int64(uint64(words[t % 4]) * uint64(K) >> uint64(32))


@compiled
def _project(
    before: Any,
    after: Any,
    start: Any,
    K: Any,
    shift: Any,
    key: Any,
    signs: Any,
    rotations: Any,
    t0: Any,
    t1: Any,
    low: Any,
    gamma: Any,
) -> None:
    """Adds stripes t0 … t1 − 1 to ``gamma``, for the buckets from ``low`` on.

    In each stripe these are at most two runs of granules: the rotation may wrap between them.
    """
    words, delta, sums = np.empty((4, LANES), uint32), np.empty(QUARTER, float32), np.empty(TILE, float32)
    high, drawn = low + len(gamma), -1
    for t in range(t0, t1):
        r = _rotation(t, K, key, rotations)
        for first, last, granule in (
            (max(low, r), max(high, r), t * K + max(low, r) - r),
            (min(low, r), min(high, r), t * K + min(low, r) - r + K),
        ):
            begin = max(granule, start >> shift)
            end = min(granule + last - first, -(-(start + len(after)) >> shift))
            for tile in range((begin << shift) // TILE, -(-(end << shift) // TILE) if begin < end else 0):
                if tile != drawn:
                    draw_signs(words, tile, uint32(0), signs, key)
                    _sum_granules(sums, delta, words, before, after, tile * TILE - start, shift)
                    drawn = tile
                origin = tile * TILE >> shift
                j0, j1 = max(begin, origin), min(end, origin + (TILE >> shift))
                _add(gamma[first - low + j0 - granule :], sums[j0 - origin : j1 - origin])


@compiled
def _sum_granules(sums: Any, delta: Any, words: Any, before: Any, after: Any, origin: Any, shift: Any) -> None:
    """Computes sums[j] ← Σ s·(before − after) over granule j of the tile at the vectors' index ``origin``.

    Elements outside of the vectors count as zero. Neighbours are added to neighbours; if a granule holds eight rows,
    each lane's eight first.
    """
    first, last = inside(origin, len(after))
    if last - first == TILE:
        b, a = before[origin : origin + TILE].reshape(ROWS), after[origin : origin + TILE].reshape(ROWS)
        _sum_quarters(sums, delta, words, b, a, shift)
    else:
        padded_b, padded_a = np.zeros(TILE, before.dtype), np.zeros(TILE, after.dtype)
        padded_b[first:last] = before[origin + first : origin + last]
        padded_a[first:last] = after[origin + first : origin + last]
        _sum_quarters(sums, delta, words, padded_b.reshape(ROWS), padded_a.reshape(ROWS), shift)


@compiled
def _sum_quarters(sums: Any, delta: Any, words: Any, b: Any, a: Any, shift: Any) -> None:
    quarters = sums[: TILE >> shift].reshape((4, -1))
    for w in range(4):
        if shift >= ROW + 3:
            _sign_eights(delta, words, b, a, w)
            fold(quarters, w, delta, QUARTER // 8, shift - 3)
        else:
            _sign(delta, words, b, a, w)
            fold(quarters, w, delta, QUARTER, shift)


@compiled
def _sign(delta: Any, words: Any, b: Any, a: Any, w: Any) -> None:
    for bit in range(32):
        for lane in range(LANES):
            delta[bit * LANES + lane] = signed(widen(b[w, bit, lane]) - widen(a[w, bit, lane]), words[w, lane], bit)


@compiled
def _sign_eights(sums: Any, words: Any, b: Any, a: Any, w: Any) -> None:
    """Computes the same with eight rows added up."""
    for eight in range(4):
        for lane in range(LANES):
            total = float32(0)
            for row in range(8):
                bit = 8 * eight + row
                total += signed(widen(b[w, bit, lane]) - widen(a[w, bit, lane]), words[w, lane], bit)
            sums[eight * LANES + lane] = total


@compiled
def _add(target: Any, values: Any) -> None:
    for j in range(len(values)):
        target[j] += values[j]


@compiled
def _apply(
    weights: Any,
    start: Any,
    tiles: Any,
    coefficients: Any,
    offsets: Any,
    counts: Any,
    shifts: Any,
    keys: Any,
    signs: Any,
    rotations: Any,
    rounding_key: Any,
    rounding_stream: Any,
) -> None:
    """Computes weights ← weights − s·c term by term over ``tiles``; coefficients are integers, to apply signs."""
    words, buffer = np.empty((4, LANES), uint32), np.zeros(TILE, float32)
    spread, elements, chances = np.empty(TILE, uint32), np.empty((2, QUARTER), uint32), np.empty(TILE, uint32)
    for tile in tiles:
        values = opened(weights, tile * TILE - start, buffer)
        for n in range(len(counts)):
            draw_signs(words, tile, uint32(0), signs, keys[n])
            c = coefficients[offsets[n] : offsets[n] + counts[n]]
            granules = _granules(spread[: TILE >> shifts[n]], c, tile * TILE >> shifts[n], keys[n], rotations)
            _subtract(values.reshape(ROWS), words, granules.reshape((4, -1)), elements, shifts[n])
        store(weights, tile * TILE - start, values, chances, tile, rounding_key, rounding_stream)


@compiled
def _granules(spread: Any, c: Any, first: Any, key: Any, rotations: Any) -> Any:
    """Returns the coefficients of granules ``first`` … up to the size of ``spread``; not copied if contiguous."""
    K, done = len(c), 0
    while done < len(spread):
        t = (first + done) // K
        position = first + done - t * K
        r = _rotation(t, K, key, rotations)
        b = position + r - (K if position + r >= K else 0)
        run, part = c[b : min(b + K - position, b + len(spread) - done, K)], spread[done:]
        if len(run) == len(spread):
            return run
        for j in range(len(run)):
            part[j] = run[j]
        done += len(run)
    return spread


@compiled
def _subtract(values: Any, words: Any, granules: Any, elements: Any, shift: Any) -> None:
    """Computes values (4, 32, 32) ← values − s·c, for the c of each granule, a quarter of the tile at a time."""
    for w in range(4):
        if shift >= ROW:
            _subtract_rows(values, words, granules, w, shift - ROW)
        elif shift == 0:
            _subtract_elements(values, words, granules, w, w)
        else:
            _double(elements, 1, granules, w, QUARTER >> shift)
            for level in range(1, shift):
                _double(elements, (level + 1) & 1, elements, level & 1, QUARTER >> (shift - level))
            _subtract_elements(values, words, elements, w, shift & 1)


@compiled
def _double(target: Any, to: Any, source: Any, row: Any, count: Any) -> None:
    """Writes the first ``count`` values of a row of ``source``, each twice."""
    for j in range(count):
        target[to, 2 * j] = source[row, j]
        target[to, 2 * j + 1] = source[row, j]


@compiled
def _subtract_rows(values: Any, words: Any, granules: Any, w: Any, shift: Any) -> None:
    for bit in range(32):
        c = granules[w, bit >> shift]
        for lane in range(LANES):
            sign = uint32(words[w, lane] << uint32(bit)) & MINUS
            values[w, bit, lane] -= uint32(c ^ sign).view(float32)


@compiled
def _subtract_elements(values: Any, words: Any, elements: Any, w: Any, row: Any) -> None:
    for bit in range(32):
        for lane in range(LANES):
            sign = uint32(words[w, lane] << uint32(bit)) & MINUS
            values[w, bit, lane] -= uint32(elements[row, bit * LANES + lane] ^ sign).view(float32)
